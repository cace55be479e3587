"""The progress of a run on a terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class ProgressReport:
    """A bar with rate, time left and the parts of the loss; nothing where there is no terminal."""

    def __init__(self, console: Console, *, start: int, total: int, shown: bool) -> None:
        self._bar = Progress(
            TextColumn("step"),
            MofNCompleteColumn(),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[loss]}"),
            console=console,
            disable=not (shown and console.is_terminal),
        )
        self._task = self._bar.add_task("train", total=total, completed=start, rate="", loss="")

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
        speed = self._bar.tasks[0].speed
        rate = f"{speed:.2f}/s" if speed else ""
        parts = ", ".join(f"{name} {values[name]:.1f}" for name in _PARTS if name in values)
        loss = f"loss {values['loss']:.1f} ({parts})"
        self._bar.update(self._task, completed=number, rate=rate, loss=loss)

    def validation(self, number: int, metrics: dict[str, Any]) -> None:
        """A validation is done."""
        if self._bar.disable:
            return
        numbers = (f"{k} {v:.4g}" for k, v in metrics.items() if isinstance(v, float))
        self._bar.console.print(f"step {number}: " + ", ".join(numbers))


_PARTS = ("tokens", "deletions", "forward", "length")
