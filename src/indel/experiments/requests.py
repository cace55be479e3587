"""What is asked of an experiment: how large, with which parts, and where to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from indel import checks
from indel.experiments.paper_numbers import RATES
from indel.training import SCALES

RUNS = "runs"


class Interrupted(Exception):
    """A signal ended a run; the same command goes on from there."""


@dataclass(frozen=True)
class Request:
    """One call of `indel reproduce`."""

    scale: str
    out: Path
    seeds: int | None = None
    """Runs of each row of a table; None: what the table does at this scale."""
    rates: tuple[float, ...] = RATES
    data: Path | None = None
    """Where text8 lies; None: it is fetched. Not needed at scale tiny."""
    used: Mapping[float, Path] = field(default_factory=dict)
    """Folders of runs or models from elsewhere that serve for a rate, instead of training."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Settings of every training run, by dotted name."""
    console: Console = field(default_factory=lambda: Console(stderr=True))

    def __post_init__(self) -> None:
        checks.choice("scale", self.scale, SCALES)
        if self.seeds is not None:
            checks.integer("seeds", self.seeds, least=1)
        if not self.rates or len(set(self.rates)) != len(self.rates):
            raise ValueError(f"rates must be different numbers, got {list(self.rates)}")
        for rate in (*self.rates, *self.used):
            if rate != 1.0:
                checks.number("rates", rate, least=0.0, below=1.0)

    @property
    def folder(self) -> Path:
        """Where the results of this scale go."""
        return self.out / self.scale

    def say(self, text: str) -> None:
        """Tell the user what is going on."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)
