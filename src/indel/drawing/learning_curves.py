"""How a measure falls with the examples seen or the time spent, one line a forward process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from indel.drawing.colors import SERIES

_DASHES = ("-", "--", "-.", ":")


class Curve(NamedTuple):
    """One run: examples seen or time spent, and what was measured then."""

    spent: Sequence[float]
    values: Sequence[float]


def draw_learning_curves(
    panels: Mapping[str, Mapping[str, Sequence[Curve]]],
    *,
    paper: Mapping[str, Mapping[str, float]] | None = None,
    unit: str = "examples seen",
) -> Figure:
    """A panel for each measure, in it a colour for each name, a line for each of its runs.

    A name looks the same in every panel; one legend below says which it is.
    `paper` gives by panel and name where the paper's own runs ended, drawn as a thin level line.
    """
    names = dict.fromkeys(name for groups in panels.values() for name in groups)
    width = 4.75 * max(len(panels), 1)
    # A name of 9 points takes 0.07 inches per letter; before it stands a piece of its line.
    columns = max(1, int(width / (0.07 * max(map(len, names), default=0) + 0.6)))
    height = 3.5 + 0.2 * -(-len(names) // columns)
    figure = Figure(figsize=(width, height), facecolor="white", layout="constrained")
    styles = dict(zip(names, zip(cycle(SERIES), cycle(_DASHES), strict=False), strict=False))
    lines: dict[str, Line2D] = {}
    for number, (title, groups) in enumerate(panels.items(), start=1):
        axis = figure.add_subplot(1, len(panels), number)
        for name, curves in groups.items():
            colour, dashes = styles[name]
            thickness = 1.3 if len(curves) == 1 else 0.9
            for curve in curves:
                # A single point has no line.
                marker = "o" if len(curve[0]) == 1 else None
                (lines[name],) = axis.plot(
                    *curve, color=colour, linestyle=dashes, linewidth=thickness, marker=marker
                )
            level = (paper or {}).get(title, {}).get(name)
            if level is not None:
                axis.axhline(level, color=colour, linestyle=dashes, linewidth=0.6, alpha=0.7)
        axis.set_title(title, fontsize=11)
        axis.set_xlabel(unit)
        axis.xaxis.set_major_locator(MaxNLocator(6))
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(
        lines.values(), lines, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )
    return figure
