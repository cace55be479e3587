"""Rows of letters as a picture: sections with headings, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from indel.drawing import colors
from indel.drawing.letter_rows import LetterRow, Look

FONT = "DejaVu Sans Mono"
FONT_SIZE = 8.0
ADVANCE = 0.6021
"""The width of a letter of that font in units of its size."""
LINE = 0.175
HEADING = 0.3
LEFT = 0.55
MARGIN = 0.12

_INKS = {
    Look.SETTLED: "black",
    Look.PASSING: colors.FAINT,
    Look.INSERTED: colors.INSERT,
    Look.REPLACED: colors.REPLACE,
    Look.DELETED: colors.DELETE,
}
_FILLS = {Look.INSERTED: "#d6ebf8", Look.REPLACED: "#e8def5"}


def draw_sections(sections: Sequence[tuple[str, Sequence[LetterRow]]], note: str) -> Figure:
    """All sections of a figure in letters of equal width.

    Paper: Fig. 4
    """
    advance = FONT_SIZE * ADVANCE / 72
    longest = max((len(row.letters) for _, rows in sections for row in rows), default=0)
    lines = sum(len(rows) for _, rows in sections)
    size = (
        max(LEFT + advance * longest + MARGIN, 7.0),
        LINE * lines + HEADING * len(sections) + 0.35 + 2 * MARGIN,
    )
    figure = Figure(figsize=size, facecolor="white")
    axis = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axis.set_axis_off()
    axis.set_xlim(0, size[0])
    axis.set_ylim(0, size[1])
    y = size[1] - MARGIN
    for heading, rows in sections:
        axis.text(MARGIN, y - 0.2, heading, fontsize=FONT_SIZE + 1.5, weight="bold")
        y -= HEADING
        for row in rows:
            _draw_row(axis, row, y - LINE / 2, advance)
            y -= LINE
    axis.text(MARGIN, MARGIN, note, fontsize=FONT_SIZE, color=colors.SILENT)
    return figure


def _draw_row(axis: Axes, row: LetterRow, y: float, advance: float) -> None:
    common: dict[str, Any] = {"family": FONT, "fontsize": FONT_SIZE, "va": "center_baseline"}
    axis.text(LEFT - 0.1, y, row.name, ha="right", color=colors.SILENT, **common)
    for start, text, look in row.runs():
        x, width = LEFT + advance * start, advance * len(text)
        if look in _FILLS:
            low = y - LINE / 2 + 0.005
            axis.add_patch(Rectangle((x, low), width, LINE - 0.01, color=_FILLS[look], linewidth=0))
            if look is Look.INSERTED:
                axis.plot([x, x + width], [low] * 2, color=_INKS[look], linewidth=1.0)
        # SVG drops spaces at the start of a text.
        x += advance * (len(text) - len(text.lstrip()))
        axis.text(x, y, text.strip(), color=_INKS[look], parse_math=False, **common)
