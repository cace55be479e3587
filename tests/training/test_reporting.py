"""The progress of a run can be read on narrow terminals and in log files."""

from __future__ import annotations

import io
import math
import re

import pytest
from rich.console import Console

from indel.training.reporting import ProgressReport


class Clock:
    """A clock that each look moves on."""

    def __init__(self, tick: float) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


def report(
    losses: list[float],
    *,
    width: int,
    total: int,
    tick: float = 0.1,
    terminal: bool,
    start: int = 0,
) -> str:
    """What is shown of a run with these losses."""
    written = io.StringIO()
    console = Console(file=written, width=width, force_terminal=terminal, color_system=None)
    progress = ProgressReport(console, start=start, total=total, shown=True, clock=Clock(tick))
    with progress:
        for number, loss in enumerate(losses, start=start + 1):
            progress.step(number, {"loss": loss, "tokens": 1.0, "deletions": 2.0})
    return written.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(("total", "tick"), [(1000, 0.1), (1_000_000, 0.01), (1_000_000, 9.0)])
def test_step_bar_rate_time_left_and_loss_fit_a_terminal(
    width: int, total: int, tick: float
) -> None:
    start = total - 200
    shown = report([1234.56] * 100, width=width, total=total, tick=tick, terminal=True, start=start)
    lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in shown.splitlines()]
    line = next(line for line in reversed(lines) if line.strip()).split("\r")[-1]
    assert len(line) <= width
    assert f"{start + 100}/{total}" in line
    assert line.count("━") + line.count("╸") + line.count("╺") >= 5
    assert re.search(r"\d/s, (\d+:\d\d:\d\d|\d+ days) left, 1234.6 nats/seq", line), line
    assert "…" not in line


def test_the_loss_is_smoothed_and_a_bad_step_left_out() -> None:
    losses = [100.0, 102.0] * 50
    shown = report([*losses, math.nan], width=80, total=101, terminal=False)
    assert "loss 101.0 nats per sequence" in shown
    assert "nan" not in shown
    # Later losses count more.
    assert "loss 50.0 nats" in report(
        [100.0] * 99 + [50.0] * 900, width=80, total=999, terminal=False
    )


def test_without_a_terminal_there_is_a_plain_line_now_and_then() -> None:
    shown = report([3.0] * 100, width=60, total=100, tick=1.0, terminal=False)
    lines = shown.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        f"step {number}/100" for number in (1, 31, 61, 91, 100)
    ]
    assert lines[1] == "step 31/100, 1 steps/s, 0:01:09 left, loss 3.0 nats per sequence"
    assert lines[-1].endswith("0:00:00 left, loss 3.0 nats per sequence")
    assert "\x1b" not in shown


def test_validation_is_one_line() -> None:
    for terminal in (True, False):
        written = io.StringIO()
        console = Console(file=written, width=60, force_terminal=terminal, color_system=None)
        metrics = {"bound": 70.0, "standard_error": 1.0, "bits_per_token": 2.5, "error_rate": 0.25}
        with ProgressReport(console, start=0, total=9, shown=True) as progress:
            progress.validation(5, metrics)
        assert "step 5: validation 2.5000 bits per token, error rate 0.2500\n" in written.getvalue()
    silent = io.StringIO()
    with ProgressReport(Console(file=silent), start=0, total=9, shown=False) as progress:
        progress.validation(5, metrics)
        progress.step(9, {"loss": 1.0})
    assert silent.getvalue() == ""
