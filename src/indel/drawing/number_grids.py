"""How a sequence of numbers comes to be: a row of coloured squares for each step."""

from __future__ import annotations

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from indel.drawing import colors
from indel.drawing.layouts import upright_rows
from indel.process.edits import INSERTED
from indel.sampling.trajectories import Trajectory
from indel.vocabularies import Vocabulary

DIGITS_OF = 10
# In inches; a square shrinks where a sequence would be wider than the page.
PAGE = 15.0
LARGEST = 0.34
LEFT, RIGHT = 0.75, 1.15
NOTES = 0.95
_SIDE = 0.9
_GAP = 0.85


def figure1(trajectory: Trajectory, vocabulary: Vocabulary, *, last_digits: bool = False) -> Figure:
    """x_T at the bottom to x_0 at the top: numbers in the colour of x mod 100, marks D and I.

    With `last_digits` it is as in the paper, where only x mod 10 is written.
    Lines join what is one token in two neighbouring steps.

    Paper: Fig. 1
    """
    links = [
        [(child, parent) for child, parent in enumerate(parents) if parent != INSERTED]
        for parents in trajectory.parents
    ]
    rows = upright_rows([len(state) for state in trajectory.states], links)
    width = max((row[-1] for row in rows if row), default=0.0) + 1
    unit = min(LARGEST, (PAGE - LEFT - RIGHT) / width)
    digits = 1 if last_digits else len(str(vocabulary.size - 1))
    # A square of one digit; numbers of three digits are written smaller in it.
    letters = 72 * unit * (0.55 if digits == 1 else 1.25 / digits)
    spread = _SIDE + _GAP
    height = spread * unit * (len(rows) - 1) + unit
    size = (max(width * unit + LEFT + RIGHT, 6.5), height + NOTES + 0.3)
    figure = Figure(figsize=size, facecolor="white")
    axis = figure.add_axes((0.0, NOTES / size[1], 1.0, (height + 0.1) / size[1]))
    axis.set_axis_off()
    spare = (size[0] - width * unit - LEFT - RIGHT) / 2
    axis.set_xlim(-(LEFT + spare) / unit - 0.5, width + (RIGHT + spare) / unit - 0.5)
    axis.set_ylim(-0.5, (height + 0.1) / unit - 0.5)
    for number, pairs in enumerate(links):
        for child, parent in pairs:
            axis.plot(
                [rows[number][child], rows[number + 1][parent]],
                [spread * number + _SIDE / 2, spread * (number + 1) - _SIDE / 2],
                color=colors.FAINT,
                linewidth=max(0.5, 3.2 * unit),
                solid_capstyle="butt",
                zorder=1,
            )
    for number, (time, state) in enumerate(zip(trajectory.times, trajectory.states, strict=True)):
        y = spread * number
        label = min(x for row in rows for x in row[:1]) - 0.8
        axis.text(label, y, f"$x_{{{time}}}$", ha="right", va="center", fontsize=10)
        for x, token in zip(rows[number], state, strict=True):
            name = str(token % DIGITS_OF) if last_digits else str(token)
            _draw_token(axis, x, y, token, name, vocabulary, letters)
    _directions(axis, width - 0.5, spread * (len(rows) - 1), unit)
    _notes(figure, last_digits=last_digits)
    return figure


def _draw_token(
    axis: Axes, x: float, y: float, token: int, name: str, vocabulary: Vocabulary, size: float
) -> None:
    markers = {vocabulary.ins: ("I", colors.INSERT), vocabulary.del_: ("D", colors.DELETE)}
    if token in markers:
        letter, ink = markers[token]
        face, edge = "white", ink
    else:
        face, ink = colors.number_colors(token)
        letter, edge = name, "none"
    corner = (x - _SIDE / 2, y - _SIDE / 2)
    axis.add_patch(
        Rectangle(corner, _SIDE, _SIDE, facecolor=face, edgecolor=edge, linewidth=0.8, zorder=2)
    )
    weight = "bold" if letter in "DI" else "normal"
    axis.text(
        x, y, letter, color=ink, ha="center", va="center_baseline", fontsize=size, weight=weight
    )


def _directions(axis: Axes, right: float, top: float, unit: float) -> None:
    """Which way noise and model go, right of all squares."""
    for inches, start, end, text in (
        (0.3, top, 0.0, r"noise  $q(x_t\,|\,x_{t-1})$"),
        (0.75, 0.0, top, r"model  $p_\theta(x_{t-1}\,|\,x_t)$"),
    ):
        x = right + inches / unit
        axis.add_patch(
            FancyArrowPatch(
                (x, start),
                (x, end),
                arrowstyle="-|>",
                mutation_scale=9,
                shrinkA=0,
                shrinkB=0,
                color=colors.SILENT,
                clip_on=False,
            )
        )
        beside = x + 0.15 / unit
        axis.text(beside, top / 2, text, rotation=90, va="center", ha="center", fontsize=8)


def _notes(figure: Figure, *, last_digits: bool) -> None:
    """What colours and letters mean."""
    width, height = figure.get_size_inches()
    bar = figure.add_axes((0.6 / width, 0.5 / height, 2.0 / width, 0.12 / height))
    scale = ScalarMappable(Normalize(0, colors.COLORS_OF), colormaps["viridis"])
    figure.colorbar(scale, cax=bar, orientation="horizontal", ticks=[0, 50, 100])
    bar.tick_params(labelsize=8)
    figure.text(0.6 / width, 0.68 / height, f"colour: $x$ mod {colors.COLORS_OF}", fontsize=8)
    for line, (letter, colour, text) in enumerate(
        (
            (
                "7",
                "black",
                f"digit: $x$ mod {DIGITS_OF}" if last_digits else "the number $x$ itself",
            ),
            ("D", colors.DELETE, "deleted by the noise here: the model has put in a token"),
            ("I", colors.INSERT, "inserted by the noise here: the model takes it out"),
        )
    ):
        y = (0.68 - 0.22 * line) / height
        figure.text(2.95 / width, y, letter, color=colour, fontsize=8, weight="bold")
        figure.text(3.15 / width, y, text, fontsize=8)
