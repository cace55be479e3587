"""The progress of a run: one line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

_SMOOTHING = 0.98  # the loss that is shown is a mean over about 50 steps
_SECONDS_BETWEEN_LINES = 30.0


class ProgressReport:
    """Step, rate, time left and the smoothed loss, within 60 columns."""

    def __init__(
        self,
        console: Console,
        *,
        start: int,
        total: int,
        shown: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console, self._clock, self._shown = console, clock, shown
        self._start, self._total = start, total
        self._began = clock()
        self._last_line = -math.inf
        self._loss, self._weight = 0.0, 0.0
        self._bar = Progress(
            TextColumn("{task.fields[step]}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[rest]}", table_column=Column(no_wrap=True)),
            console=console,
            expand=True,
            disable=not (shown and console.is_terminal),
        )
        self._task = self._bar.add_task(
            "train", total=total, completed=start, step=f"step {start}/{total}", rest=""
        )

    def __enter__(self) -> ProgressReport:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def step(self, number: int, values: dict[str, float]) -> None:
        """One step is done."""
        if math.isfinite(values["loss"]):
            self._loss = _SMOOTHING * self._loss + (1.0 - _SMOOTHING) * values["loss"]
            self._weight = _SMOOTHING * self._weight + (1.0 - _SMOOTHING)
        now = self._clock()
        rate = (number - self._start) / max(now - self._began, 1e-9)
        left = _duration((self._total - number) / rate)
        loss = self._loss / self._weight if self._weight else math.nan
        if not self._bar.disable:
            step = f"{number}/{self._total}"
            rest = f"{_rate(rate)}/s, {left} left, {loss:.1f} nats/seq"
            self._bar.update(self._task, completed=number, step=step, rest=rest)
        elif self._shown and (
            number == self._total or now - self._last_line >= _SECONDS_BETWEEN_LINES
        ):
            self._last_line = now
            self._print(
                f"step {number}/{self._total}, {_rate(rate)} steps/s, {left} left, "
                f"loss {loss:.1f} nats per sequence"
            )

    def validation(self, number: int, metrics: dict[str, Any]) -> None:
        """A validation is done."""
        if not self._shown:
            return
        text = f"step {number}: validation {metrics['bits_per_token']:.4f} bits per token"
        if "error_rate" in metrics:
            text += f", error rate {metrics['error_rate']:.4f}"
        self._print(text)

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, highlight=False)


def _rate(rate: float) -> str:
    """Three digits."""
    return f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}"


def _duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> _duration(3725.4), _duration(1e6)
    ('1:02:05', '12 days')
    """
    if seconds >= 100 * 3600:
        return f"{seconds / 86400:.0f} days"
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
