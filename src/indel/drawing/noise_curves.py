"""The noise schedule: what each step does, and what is left of x_0 after it."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from indel.drawing.colors import SERIES
from indel.process import Schedule

_MARKS = ("o", "s", "^", "D")


def figure7(schedule: Schedule) -> Figure:
    """Left the probabilities of step t, right the share of x_0 that is left after it.

    Paper: Fig. 7
    """
    levels = schedule.describe()
    times = [level.t for level in levels]
    figure = Figure(figsize=(9.5, 3.8), facecolor="white", layout="constrained")
    step, jump = figure.subplots(1, 2, sharey=True)
    _curves(
        step,
        times,
        {
            r"kept, $[Q_t]_{xx}$": [level.copy for level in levels],
            r"replaced, $\Sigma_{y\neq x}[Q_t]_{xy}$": [level.replace for level in levels],
            r"deleted, $[Q_t]_{x\,\mathrm{DEL}}$": [level.delete for level in levels],
            r"inserted, $\alpha_t$": [level.insert for level in levels],
        },
    )
    step.set_title("a token in step $t$", fontsize=11)
    step.set_ylabel("probability")
    _curves(
        jump,
        [0, *times],
        {
            "never deleted": [1.0, *(level.survived for level in levels)],
            "and never replaced": [1.0, *(level.unchanged for level in levels)],
        },
    )
    jump.set_title("a token of $x_0$ after step $t$", fontsize=11)
    return figure


def _curves(axis: Axes, times: Sequence[int], curves: dict[str, list[float]]) -> None:
    for (name, values), colour, mark in zip(curves.items(), SERIES, _MARKS, strict=False):
        axis.plot(times, values, color=colour, marker=mark, markersize=4.5, label=name)
    axis.set_xlabel("$t$")
    axis.set_xlim(min(times) - 0.2, max(times) + 0.2)
    axis.set_ylim(-0.03, 1.03)
    if len(times) <= 12:
        axis.set_xticks(times)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=9)
