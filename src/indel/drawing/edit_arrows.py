"""A chain of the forward process with arrows from token to token, and its edit summary below."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from indel.batch import Batch
from indel.drawing import colors
from indel.drawing.layouts import Links, upright_rows
from indel.process.edits import INSERTED, Edits, step_parents, summarize
from indel.vocabularies import Vocabulary

# In inches.
UNIT = 0.72
ROW = 0.85
LEFT = 0.9
GAP = 0.95
FONT_SIZE = 13.0
_CLEAR = 0.17
_KEPT = "black"


def figure2(chain: Sequence[Batch], vocabulary: Vocabulary) -> Figure:
    """Above x_0, …, x_t of one sequence, below x_0 and x_t with the edits a_{0→t} between them.

    The edits are computed from the chain: a deletion followed by an insert is a replacement.

    Paper: Fig. 2
    """
    states = [batch.to_lists()[0] for batch in chain]
    edits, last = summarize(chain, vocabulary.size), len(chain) - 1
    links = [_links(step_parents(*pair, vocabulary.size)[0].tolist()) for pair in pairwise(chain)]
    summary = _links(edits.source[0].tolist())
    rows = upright_rows([len(state) for state in states], links)
    ends = upright_rows([len(states[0]), len(states[-1])], [summary])
    width = max((row[-1] for row in (*rows, *ends) if row), default=0.0)
    size = (LEFT + UNIT * (width + 1) + 0.15, ROW * (last + 2) + GAP + 1.25)
    figure = Figure(figsize=size, facecolor="white")
    axis = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axis.set_axis_off()
    axis.set_xlim(0, size[0])
    axis.set_ylim(0, size[1])
    top = size[1] - 0.45
    for t, (row, state) in enumerate(zip(rows, states, strict=True)):
        _draw_row(axis, f"$x_{{{t}}}$", row, top - ROW * t, state, vocabulary)
    for t, pairs in enumerate(links):
        for before, after in pairs:
            start = _at(rows[t][before], top - ROW * t)
            end = _at(rows[t + 1][after], top - ROW * (t + 1))
            _arrow(axis, start, end, _colour(states[t][before], states[t + 1][after], vocabulary))
    low = top - ROW * (last + 2) - GAP
    axis.axhline(low + 2 * ROW + GAP / 2, color=colors.FAINT, linewidth=0.8)
    _draw_row(axis, "$x_0$", ends[0], low + 2 * ROW, states[0], vocabulary)
    _draw_row(axis, f"$x_{{{last}}}$", ends[1], low, states[-1], vocabulary)
    axis.text(LEFT / 2, low + ROW, rf"$a_{{0\to {last}}}$", ha="center", fontsize=FONT_SIZE)
    _draw_summary(axis, (states[0], states[-1]), ends, edits, low, vocabulary)
    _legend(axis)
    return figure


def _links(parents: Sequence[int]) -> Links:
    return [(parent, child) for child, parent in enumerate(parents) if parent != INSERTED]


def _at(x: float, y: float) -> tuple[float, float]:
    return LEFT + UNIT * (x + 0.5), y


def _colour(before: int, after: int, vocabulary: Vocabulary) -> str:
    """What happens to a token on its way."""
    if after == vocabulary.del_:
        return colors.DELETE
    if before == vocabulary.ins:
        return colors.INSERT
    return _KEPT if before == after else colors.REPLACE


def _draw_row(
    axis: Axes,
    name: str,
    row: Sequence[float],
    y: float,
    state: Sequence[int],
    vocabulary: Vocabulary,
) -> None:
    axis.text(LEFT / 2, y, name, ha="center", va="center", fontsize=FONT_SIZE)
    markers = {vocabulary.ins: ("INS", colors.INSERT), vocabulary.del_: ("DEL", colors.DELETE)}
    for x, token in zip(row, state, strict=True):
        place = _at(x, y)
        if token in markers:
            text, colour = markers[token]
            box = {"boxstyle": "square,pad=0.2", "facecolor": "white", "edgecolor": colour}
            style: dict[str, Any] = {
                "color": colour,
                "fontsize": FONT_SIZE - 4,
                "bbox": box,
                "weight": "bold",
            }
        else:
            text, style = vocabulary.symbol(token), {"fontsize": FONT_SIZE}
        axis.text(*place, text, ha="center", va="center", zorder=3, **style)


def _draw_summary(
    axis: Axes,
    states: tuple[Sequence[int], Sequence[int]],
    rows: Sequence[Sequence[float]],
    edits: Edits,
    low: float,
    vocabulary: Vocabulary,
) -> None:
    """One arrow with a dot for each edit: through the dot, from the dot, or to the dot."""
    first, last = states
    sources: list[int] = edits.source[0].tolist()[: len(last)]
    for position, source in enumerate(sources):
        end = _at(rows[1][position], low)
        if source == INSERTED:
            start = (end[0], low + ROW)
            _arrow(axis, start, end, colors.INSERT, leave=0.0)
            _dot(axis, start, colors.INSERT)
            continue
        start = _at(rows[0][source], low + 2 * ROW)
        colour = _colour(first[source], last[position], vocabulary)
        _arrow(axis, start, end, colour)
        _dot(axis, ((start[0] + end[0]) / 2, low + ROW), colour)
    for source in set(range(len(first))) - set(sources):
        start = _at(rows[0][source], low + 2 * ROW)
        stop = (start[0], low + ROW)
        axis.plot(
            [start[0], stop[0]], [start[1] - _CLEAR, stop[1]], color=colors.DELETE, linewidth=1.4
        )
        _dot(axis, stop, colors.DELETE)


def _arrow(
    axis: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str,
    *,
    leave: float = _CLEAR,
) -> None:
    axis.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=10,
            shrinkA=72 * leave,
            shrinkB=72 * _CLEAR,
            color=colour,
            linewidth=1.2,
        )
    )


def _dot(axis: Axes, place: tuple[float, float], colour: str) -> None:
    axis.plot(*place, "o", color=colour, markersize=5, zorder=3)


def _legend(axis: Axes) -> None:
    kinds = (("keep", _KEPT), ("replace", colors.REPLACE))
    ends = (("insert", colors.INSERT), ("delete", colors.DELETE))
    handles = [
        Line2D([], [], color=colour, marker="o", label=name) for name, colour in kinds + ends
    ]
    axis.legend(handles=handles, loc="lower center", ncols=4, frameon=False, fontsize=FONT_SIZE - 3)
