"""The transducers of the paper, drawn from the machines themselves.

Figures are plain `matplotlib.figure.Figure`s: no backend is chosen, the caller saves them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import sympy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.path import Path

from indel.drawing import colors
from indel.drawing.arc_groups import ArcGroup, group_arcs
from indel.drawing.arc_labels import Describe, conditions, formula_lines, word_lines
from indel.process.composition import compose
from indel.process.edit_transducers import derive_jump, jump_transducer, step_transducer
from indel.process.transducers import EPSILON, State, Transducer

# Lengths are in inches: one unit of the axis is one inch, so that text fits whatever the figure.
RADIUS = 0.3
FONT_SIZE = 11.0
MOST_GROUPS = 3

STATES_NOTE = "Black dot: start.  Double circle: the sequence may end here."
LABELS_NOTE = r"$x \mapsto y$: read $x$, write $y$;  $\varepsilon$: nothing."


class Move(NamedTuple):
    """How arrows of one kind look; the dashes tell silent moves apart without colour."""

    name: str
    colour: str
    dashes: Literal["-", "--"]


MOVES = {
    (False, True): Move("insert", colors.INSERT, "-"),
    (True, False): Move("delete", colors.DELETE, "-"),
    (True, True): Move("replace", colors.REPLACE, "-"),
    (False, False): Move("neither read nor write", colors.SILENT, "--"),
}


def lower_name(state: State) -> str:
    """S_A, for a machine that is composed as the second."""
    return rf"$S_{{\mathrm{{{state}}}}}$"


def upper_name(state: State) -> str:
    """S^A, for a machine that is composed as the first."""
    return rf"$S^{{\,\mathrm{{{state}}}}}$"


def pair_name(state: State) -> str:
    """S^A_B, for a composition: above the state of the first machine, below that of the second."""
    if not isinstance(state, tuple):
        return lower_name(state)
    return rf"$S^{{\,\mathrm{{{state[0]}}}}}_{{\mathrm{{{state[1]}}}}}$"


def symbolic_step(vocab_size: int = 3) -> Transducer:
    """q(x_t | x_{t−1}) with the symbols α_t and [Q_t]_{yz} as weights.

    Paper: Fig. 5 (top)
    """
    size = vocab_size + 2
    matrix = sympy.IndexedBase("Q_t")
    rows = [
        [0 if x == size - 1 or y == size - 2 else matrix[x, y] for y in range(size)]
        for x in range(size)
    ]
    return step_transducer(sympy.Symbol(r"\alpha_t"), rows)


def symbolic_jump(vocab_size: int = 3) -> Transducer:
    """q(x_{t−1} | x_0) with the symbols [ᾱ_{t−1}]_y, [β̄_{t−1}]_x and [Q̄_{t−1}]_{xy} as weights.

    Paper: Fig. 5 (middle)
    """
    size = vocab_size + 2
    insert = sympy.IndexedBase(r"\overline{\alpha}_{t-1}")
    delete = sympy.IndexedBase(r"\overline{\beta}_{t-1}")
    replace = sympy.IndexedBase(r"\overline{Q}_{t-1}")
    return jump_transducer(
        [insert[y] for y in range(size)],
        [delete[x] for x in range(vocab_size)],
        [[replace[x, y] for y in range(size)] for x in range(vocab_size)],
    )


def figure3(step: Transducer | None = None, jump: Transducer | None = None) -> Figure:
    """One step, a jump and their composition in words.

    Paper: Fig. 3
    """
    in_words = partial(word_lines, tape_names=("x_0", "x_{t-1}", "x_t"))
    return _three_machines(
        step or symbolic_step(),
        jump or symbolic_jump(),
        describe_step=partial(in_words, probability=True),
        describe=in_words,
        note=STATES_NOTE,
    )


def figure5(step: Transducer | None = None, jump: Transducer | None = None) -> Figure:
    """One step, a jump and their composition with all weights.

    Paper: Fig. 5
    """
    return _three_machines(
        step or symbolic_step(),
        jump or symbolic_jump(),
        describe_step=formula_lines,
        describe=formula_lines,
        note=f"{STATES_NOTE}  {LABELS_NOTE}",
    )


def figure6(step: Transducer | None = None, jump: Transducer | None = None) -> Figure:
    """The composition without x_{t−1}, and below it what is left without its middle state.

    Paper: Fig. 6, Eq. (10), Eq. (11), Eq. (12)
    """
    step, jump = step or symbolic_step(), jump or symbolic_jump()
    figure = Figure(figsize=(11.0, 9.1), facecolor="white")
    title = r"$q(x_t\,|\,x_0)$, summed over $x_{t-1}$"
    axis = _panel(figure, (0.0, 4.7, 11.0, 4.4), title)
    draw_transducer(compose(jump, step).marginalize(1), axis, variables=("x", "z"))
    axis = _panel(figure, (0.0, 0.6, 11.0, 4.1), f"{title}, and without the middle state")
    derived = derive_jump(jump, step)
    draw_transducer(
        derived, axis, variables=("x", "z"), name_state=upper_name, spacing=5.8, headroom=2.2
    )
    _legend(figure, f"{STATES_NOTE}  {LABELS_NOTE}")
    return figure


def _three_machines(
    step: Transducer, jump: Transducer, *, describe_step: Describe, describe: Describe, note: str
) -> Figure:
    figure = Figure(figsize=(11.0, 8.3), facecolor="white")
    axis = _panel(figure, (0.0, 5.1, 5.5, 3.2), r"one step  $q(x_t\,|\,x_{t-1})$")
    draw_transducer(step, axis, variables=("y", "z"), describe=describe_step, name_state=lower_name)
    axis = _panel(figure, (5.5, 5.1, 5.5, 3.2), r"many steps at once  $q(x_{t-1}\,|\,x_0)$")
    draw_transducer(jump, axis, variables=("x", "y"), describe=describe, name_state=upper_name)
    axis = _panel(figure, (0.0, 0.6, 11.0, 4.5), r"both in turn  $q(x_t, x_{t-1}\,|\,x_0)$")
    draw_transducer(compose(jump, step), axis, variables=("x", "y", "z"), describe=describe)
    _legend(figure, note)
    return figure


def draw_transducer(
    transducer: Transducer,
    axis: Axes,
    *,
    variables: Sequence[str],
    describe: Describe = formula_lines,
    name_state: Callable[[State], str] = pair_name,
    spacing: float = 3.3,
    headroom: float = 1.75,
) -> None:
    """Draw the states in a row and one arrow for all arcs between two states.

    Arrows to the right pass above the row, arrows to the left below it. `variables` names what
    each tape carries, `describe` writes the text at an arrow; `spacing` is the distance of the
    states and `headroom` the space above them.

    Paper: Fig. 3, Fig. 5, Fig. 6
    """
    order = {state: number for number, state in enumerate(transducer.states)}
    _set_scale(axis, spacing * (len(order) - 1), headroom)
    for state, number in order.items():
        _draw_state(
            axis,
            spacing * number,
            name_state(state),
            initial=state == transducer.initial,
            accepting=state in transducer.accepting,
        )
    arrows: dict[tuple[State, State], list[ArcGroup]] = defaultdict(list)
    for group in group_arcs(transducer, variables):
        arrows[group.source, group.target].append(group)
    for (source, target), groups in arrows.items():
        curve = _curve(order[source], order[target], spacing)
        one_line = curve.one_line or len(groups) > 1
        blocks = [
            _text(describe(transducer, group), conditions(transducer, group), one_line)
            for group in groups
        ]
        _draw_arrow(axis, curve, _move(groups), _shortened(blocks))


class _Curve(NamedTuple):
    """A cubic Bézier curve, and where its text goes: above it or below it."""

    points: list[tuple[float, float]]
    above: bool
    one_line: bool

    @property
    def middle(self) -> tuple[float, float]:
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = self.points
        return (x0 + 3 * x1 + 3 * x2 + x3) / 8, (y0 + 3 * y1 + 3 * y2 + y3) / 8


def _curve(source: int, target: int, spacing: float) -> _Curve:
    """A loop, a flat curve to a neighbour, or a deep one around the states between."""
    start, end = spacing * source, spacing * target
    if source == target:
        return _bent(start, end, angle=2.0, reach=0.85, above=True, one_line=True)
    above = target > source
    if abs(target - source) == 1:
        return _bent(start, end, angle=0.5, reach=0.3 * spacing, above=above, one_line=False)
    depth = 1.1 + 0.55 * abs(target - source)
    return _bent(start, end, angle=1.35, reach=depth, above=above, one_line=True)


def _bent(
    start: float, end: float, *, angle: float, reach: float, above: bool, one_line: bool
) -> _Curve:
    """Leave and enter a state at an angle to the line between the states (a loop: outwards)."""
    side = 1.0 if above else -1.0
    ahead = 1.0 if end >= start else -1.0
    leave = np.array([ahead * np.cos(angle), side * np.sin(angle)])
    enter = leave * [-1.0, 1.0]
    points = [
        (start + RADIUS * leave[0], RADIUS * leave[1]),
        (start + (RADIUS + reach) * leave[0], (RADIUS + reach) * leave[1]),
        (end + (RADIUS + reach) * enter[0], (RADIUS + reach) * enter[1]),
        (end + RADIUS * enter[0], RADIUS * enter[1]),
    ]
    return _Curve([(float(x), float(y)) for x, y in points], above, one_line)


def _draw_arrow(axis: Axes, curve: _Curve, move: Move, text: str) -> None:
    codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    axis.add_patch(
        FancyArrowPatch(
            path=Path(curve.points, codes),
            arrowstyle="-|>",
            mutation_scale=13,
            color=move.colour,
            linestyle=move.dashes,
            linewidth=1.4,
        )
    )
    x, y = curve.middle
    axis.text(
        x,
        y + (0.07 if curve.above else -0.07),
        text,
        color=move.colour,
        fontsize=FONT_SIZE,
        ha="center",
        va="bottom" if curve.above else "top",
    )


def _draw_state(axis: Axes, x: float, name: str, *, initial: bool, accepting: bool) -> None:
    axis.add_patch(Circle((x, 0), RADIUS, facecolor="white", edgecolor="black", linewidth=1.4))
    if accepting:
        inner = 0.82 * RADIUS
        axis.add_patch(Circle((x, 0), inner, facecolor="white", edgecolor="black", linewidth=1.4))
    axis.text(x, 0, name, ha="center", va="center", fontsize=FONT_SIZE + 2)
    if initial:
        dot = x - RADIUS - 0.5
        axis.add_patch(Circle((dot, 0), 0.06, color="black"))
        arrow = FancyArrowPatch(
            (dot, 0), (x - RADIUS, 0), arrowstyle="-|>", mutation_scale=13, shrinkA=0, shrinkB=0
        )
        arrow.set(color="black", linewidth=1.4)
        axis.add_patch(arrow)


def _text(lines: list[str], condition: str, one_line: bool) -> str:
    parts = [" ".join(lines)] if one_line else lines
    return ("  " if one_line else "\n").join([*parts, condition] if condition else parts)


def _shortened(blocks: list[str]) -> str:
    rest = len(blocks) - MOST_GROUPS
    return "\n".join([*blocks[:MOST_GROUPS], f"and {rest} more"] if rest > 0 else blocks)


def _move(groups: list[ArcGroup]) -> Move:
    """What the arrow does between the first and the last tape."""
    kinds = {(g.label[0] is not EPSILON, g.label[-1] is not EPSILON) for g in groups}
    return MOVES[kinds.pop()] if len(kinds) == 1 else Move("several", "black", "-")


def _panel(figure: Figure, box: tuple[float, float, float, float], title: str) -> Axes:
    """An axis at (left, bottom, width, height) in inches."""
    size = np.tile(figure.get_size_inches(), 2)
    axis = figure.add_axes(tuple(np.array(box) / size))
    axis.set_title(title, fontsize=FONT_SIZE + 2, y=1.0, pad=-20, loc="left", x=0.3 / box[2])
    return axis


def _set_scale(axis: Axes, width: float, headroom: float) -> None:
    """One unit is one inch; the row of states in the middle and `headroom` below the upper edge."""
    axis.set_axis_off()
    figure: Any = axis.figure
    inches = np.array(axis.get_position().size) * figure.get_size_inches()
    axis.set_xlim((width - inches[0]) / 2, (width + inches[0]) / 2)
    axis.set_ylim(headroom - inches[1], headroom)


def _legend(figure: Figure, note: str) -> None:
    handles = [
        Line2D([], [], color=move.colour, linestyle=move.dashes, label=move.name)
        for move in MOVES.values()
    ]
    figure.legend(handles=handles, loc="lower center", ncols=len(handles), frameon=False)
    height = figure.get_size_inches()[1]
    figure.text(0.5, 0.42 / height, note, ha="center", va="bottom", fontsize=FONT_SIZE - 1)
