"""A comparison: every process with every seed, trained and measured once."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from indel import checks
from indel.comparison.interface import Method
from indel.comparison.measures import Measures, of_data
from indel.comparison.registry import build_method, process_of
from indel.comparison.report import write_results
from indel.comparison.scales import Scale, scale_of
from indel.comparison.training import (
    CHECKPOINT,
    Clock,
    Progress,
    TrainingPlan,
    as_module,
    load_trained,
    train_method,
)
from indel.data import BatchStream, open_data
from indel.experiments.files import read_json, write_json
from indel.training.metrics import read_metrics
from indel.vocabularies import IntegerVocabulary

SETTINGS = "comparison.json"
RUNS = "runs"
RECORD = "record.json"
_WHERE = ("path", "cache")
"""Options that say where the data lies; what it is, its fingerprint says."""


@dataclass(frozen=True)
class Comparison:
    """One call of `indel compare`."""

    data: str
    processes: Sequence[str]
    budget: float
    """Minutes of processor time for the training of each process with each seed."""
    seeds: int
    out: Path
    scale: str = "laptop"
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the data, besides those of the scale."""
    console: Console = field(default_factory=lambda: Console(stderr=True))
    clock: Clock = time.process_time

    def __post_init__(self) -> None:
        checks.number("--budget", self.budget, least=0.0, more=True)
        checks.integer("--seeds", self.seeds, least=1, most=1000)
        scale_of(self.scale)
        if not self.processes or len(set(self.processes)) != len(self.processes):
            raise ValueError(f"--processes must be different names, got {list(self.processes)}")
        for name in self.processes:
            process_of(name).build()

    @cached_property
    def sizes(self) -> Scale:
        """The settings of the scale."""
        return scale_of(self.scale)

    @cached_property
    def data_options(self) -> dict[str, Any]:
        """The options of the data, those of the scale included."""
        return {**self.sizes.data_options.get(self.data, {}), **self.options}

    def open(self, seed: int) -> BatchStream:
        """The data of a seed."""
        return open_data(self.data, **{**self.data_options, "seed": seed})

    def run(self) -> None:
        """Do what is missing; tables and curves are written after each process."""
        first = self.open(0)
        self._check_order(first)
        self._agree_on_settings(first)
        for seed in range(self.seeds):
            for name in self.processes:
                if not (self._folder(name, seed) / RECORD).is_file():
                    self._do(name, seed)
                    write_results(self.out)
        write_results(self.out)

    def say(self, text: str) -> None:
        """Tell the user what is going on."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _folder(self, name: str, seed: int) -> Path:
        return self.out / RUNS / f"{name}-seed{seed}"

    def _check_order(self, data: BatchStream) -> None:
        for name in self.processes:
            if process_of(name).needs_order and not isinstance(data.vocabulary, IntegerVocabulary):
                raise ValueError(
                    f"{name} needs tokens that have an order, such as arithmetic's; those of "
                    f"{self.data} have none"
                )

    def _agree_on_settings(self, data: BatchStream) -> None:
        """Refuse a folder with another comparison, otherwise say what this one is."""
        asked = {
            "data": self.data,
            "data_options": {
                name: _plain(value)
                for name, value in self.data_options.items()
                if name not in _WHERE
            },
            "data_fingerprint": data.fingerprint(),
            "scale": self.scale,
            "budget_minutes": self.budget,
        }
        path = self.out / SETTINGS
        if path.exists():
            known = read_json(path)
            for name, value in asked.items():
                if known.get(name) != value:
                    raise ValueError(
                        f"{self.out} holds a comparison with {name} {known.get(name)!r:.80}, asked "
                        f"is {value!r:.80}: choose another --out"
                    )
            return
        measures = self._measures(data)
        write_json(
            path,
            {
                **asked,
                "backbone": self.sizes.backbone.to_dict(),
                "num_steps": self.sizes.num_steps,
                "batch_size": self.sizes.batch_size,
                "sizes": vars(self.sizes.sizes),
                "max_length": data.max_length,
                "vocabulary_size": data.vocabulary.size,
                "machine": _machine(),
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "of_data": of_data(measures, self.sizes.sizes.samples),
            },
        )

    def _measures(self, data: BatchStream) -> Measures:
        return Measures(data, self.sizes.sizes)

    def _do(self, name: str, seed: int) -> None:
        """Train one process and measure it."""
        data, folder = self.open(seed), self._folder(name, seed)
        method, measures = self._new(name, seed, data), self._measures(data)
        self.say(f"{name}, seed {seed}: training for {self.budget:g} minutes of processor time")
        progress = self._trained(method, data, folder, measures, seed)
        self.say(f"{name}, seed {seed}: measuring after {progress.step} steps")
        as_module(method).eval()
        found = measures.all(method)
        curve = [each for each in read_metrics(folder) if each["kind"] == "validation"]
        write_json(
            folder / RECORD,
            {
                "process": name,
                "seed": seed,
                "parameters": sum(w.numel() for w in as_module(method).parameters()),
                "steps": progress.step,
                "examples": progress.step * self.sizes.batch_size,
                "cpu_seconds": progress.cpu_seconds,
                "bad_steps": progress.bad_steps,
                "measures": found,
                "curve": curve,
            },
        )

    def _new(self, name: str, seed: int, data: BatchStream) -> Method:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return build_method(
                name,
                data.vocabulary.size,
                self.sizes.backbone,
                data.max_length,
                num_steps=self.sizes.num_steps,
            )

    def _trained(
        self, method: Method, data: BatchStream, folder: Path, measures: Measures, seed: int
    ) -> Progress:
        plan = TrainingPlan(60.0 * self.budget, self.sizes.batch_size, seed, self.sizes.validations)
        if (folder / CHECKPOINT).is_file():
            progress = load_trained(method, folder)
            if progress.cpu_seconds >= plan.budget:
                return progress
        return train_method(
            method, data, folder, plan, validate=measures.during_training, clock=self.clock
        )


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _machine() -> str:
    threads = torch.get_num_threads()
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__} with {threads} "
        f"thread{'s' if threads > 1 else ''}"
    )
