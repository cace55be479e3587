"""An edit summary a_{0→t} as a drawing: x_0 above, x_t below, an arrow for each edit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from indel.drawing.layouts import upright_rows
from indel.drawing.terminal import EditColumn, Fate, Token, step_name

INKS = {
    Fate.KEPT: "var(--indel-ink)",
    Fate.REPLACED: "var(--indel-replaced)",
    Fate.INSERTED: "var(--indel-inserted)",
    Fate.DELETED: "var(--indel-deleted)",
}
# In pixels.
UNIT, MARGIN, LABEL, FONT_SIZE = 19, 14, 34, 17
TOP, MIDDLE, BOTTOM = 22, 75, 128
_CLEAR = 14


def summary_svg(columns: Sequence[EditColumn], *, t: int) -> str:
    """Kept and replaced letters have an arrow of their own; the others end, or begin, at a sign.

    Paper: Fig. 2
    """
    places, numbers = list[tuple[int, int]](), [0, 0]
    for column in columns:
        places.append((numbers[0], numbers[1]))
        numbers[0] += column.above is not None
        numbers[1] += column.below is not None
    links = [place for place, c in zip(places, columns, strict=True) if c.above and c.below]
    rows = upright_rows(numbers, [links])
    width = 2 * MARGIN + LABEL + UNIT * (1 + round(max((r[-1] for r in rows if r), default=4)))
    parts = [_name(step_name(0), TOP), _name(step_name(t), BOTTOM)]
    for (first, last), column in zip(places, columns, strict=True):
        start = _x(rows[0][first]) if column.above else None
        end = _x(rows[1][last]) if column.below else None
        parts += [_edit(column.fate, start, end), _letter(column.above, start, TOP)]
        parts.append(_letter(column.below, end, BOTTOM))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="150" '
        f'viewBox="0 0 {width} 150" role="img" aria-label="{escape(counted(columns))}">\n'
        f"{''.join(parts)}\n</svg>"
    )


def counted(columns: Sequence[EditColumn]) -> str:
    """How often each edit was made, with the sign for it."""
    numbers = Counter(column.fate for column in columns)
    return ", ".join(f"{numbers[fate]} {fate.name.lower()} ({fate.value})" for fate in Fate)


def _x(place: float) -> float:
    return MARGIN + LABEL + UNIT * (place + 0.5)


def _name(name: str, y: int) -> str:
    return (
        f'<text x="{MARGIN}" y="{y + 6}" font-size="{FONT_SIZE}" font-style="italic" '
        f'fill="var(--indel-ink)">{name}</text>'
    )


def _letter(token: Token | None, x: float | None, y: int) -> str:
    if token is None:
        return ""
    weight = "bold" if token.is_marker else "normal"
    return (
        f'<text x="{x}" y="{y + 6}" text-anchor="middle" font-family="monospace" '
        f'font-size="{FONT_SIZE}" font-weight="{weight}" fill="{INKS[token.fate]}">'
        f"{escape(token.symbol)}</text>"
    )


def _edit(fate: Fate, start: float | None, end: float | None) -> str:
    """A line from above to below; what has only one end has a sign in the middle instead."""
    colour = INKS[fate]
    x_start, y_start = (end, MIDDLE) if start is None else (start, TOP + _CLEAR)
    x_end, y_end = (start, MIDDLE) if end is None else (end, BOTTOM - _CLEAR)
    head = "" if end is None else f'<path d="M{x_end} {y_end}l-4 -8h8z" fill="{colour}"/>'
    dashes = ' stroke-dasharray="4 3"' if fate is Fate.REPLACED else ""
    line = (
        f'<path d="M{x_start} {y_start}L{x_end} {y_end - 6 * bool(head)}" fill="none" '
        f'stroke="{colour}" stroke-width="1.4"{dashes}/>{head}'
    )
    if start is not None and end is not None:
        return line
    return (
        f'{line}<circle cx="{x_start if start is None else x_end}" cy="{MIDDLE}" r="7" '
        f'fill="var(--indel-paper)" stroke="{colour}"/><text x="{end if start is None else start}" '
        f'y="{MIDDLE + 5}" text-anchor="middle" font-size="14" fill="{colour}">{fate.value}</text>'
    )
