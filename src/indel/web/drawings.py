"""Grids as pictures: one SVG of all rows, and a GIF that shows them one after the other."""

from __future__ import annotations

import io
from html import escape

from PIL import Image, ImageDraw, ImageFont

from indel.drawing import colors
from indel.drawing.terminal import Fate
from indel.web.grids import Cell, Grid, Row

COLOURS = {
    Fate.KEPT: "#000000",
    Fate.REPLACED: colors.REPLACE,
    Fate.INSERTED: colors.INSERT,
    Fate.DELETED: colors.DELETE,
}
# In pixels.
CELL, LINE, MARGIN, LABEL = 11, 22, 12, 40
FONT_SIZE = 15
# In a GIF: characters side by side, then the next line.
WRAP = 64
FRAME_MS, LAST_MS = 350, 2_500


def as_svg(grid: Grid) -> str:
    """Every row below the one before; marked by colour, by underlining and by striking out."""
    width = 2 * MARGIN + LABEL + _cell(grid) * grid.columns
    height = 2 * MARGIN + LINE * len(grid.rows)
    rows = (
        _svg_row(row, MARGIN + LINE * number, _cell(grid)) for number, row in enumerate(grid.rows)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="monospace" font-size="{FONT_SIZE}">\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n{"".join(rows)}</svg>\n'
    )


def as_gif(grid: Grid) -> bytes:
    """One frame a row, its tokens side by side, so that the last one can be read."""
    frames = [_frame(grid, row) for row in grid.rows]
    file = io.BytesIO()
    frames[0].save(
        file,
        format="GIF",
        save_all=True,
        append_images=frames[1:],
        duration=[FRAME_MS] * (len(frames) - 1) + [LAST_MS],
        loop=0,
    )
    return file.getvalue()


def _svg_row(row: Row, top: int, size: int) -> str:
    """Letters of one fate are one element, so that a long chain stays a small file."""
    base = top + FONT_SIZE
    parts = [f'<text x="{MARGIN}" y="{base}" fill="{colors.SILENT}">{escape(row.name)}</text>']
    for cell in row.cells:
        if cell.ink.background and not cell.is_marker:
            parts.append(
                f'<rect x="{_left(cell, size)}" y="{top}" width="{size - 1}" height="{LINE - 3}" '
                f'fill="{cell.ink.background}"/>'
            )
    # Places are given for single characters, so a number is an element of its own.
    kinds: dict[tuple[object, ...], list[Cell]] = {}
    for cell in row.cells:
        alone = cell.column if len(cell.ink.symbol) > 1 else None
        kinds.setdefault((cell.fate, _ink_colour(cell), alone), []).append(cell)
    for (_, colour, _), cells in kinds.items():
        places = " ".join(str(_left(cell, size) + size / 2) for cell in cells)
        letters = escape("".join(cell.ink.symbol for cell in cells))
        parts.append(
            f'<text x="{places}" y="{base}" fill="{colour}" text-anchor="middle">{letters}</text>'
        )
        if height := {Fate.INSERTED: base + 3, Fate.DELETED: base - 5}.get(cells[0].fate):
            lines = "".join(f"M{_left(cell, size)} {height}h{size - 1}" for cell in cells)
            parts.append(
                f'<path d="{lines}" stroke="{COLOURS[cells[0].fate]}" stroke-width="1.5"/>'
            )
    return "".join(parts) + "\n"


def _cell(grid: Grid) -> int:
    """The width of a column: numbers need room between them."""
    return CELL if grid.width == 1 else CELL * grid.width + 4


def _left(cell: Cell, size: int) -> int:
    return MARGIN + LABEL + size * cell.column


def _ink_colour(cell: Cell) -> str:
    return COLOURS[cell.fate] if cell.is_marker else cell.ink.colour or COLOURS[cell.fate]


def _frame(grid: Grid, row: Row) -> Image.Image:
    width, most = _cell(grid), max(1, *(len(each.cells) for each in grid.rows))
    wrap = WRAP // grid.width
    lines = -(-most // wrap)
    size = (2 * MARGIN + width * min(max(most, 6), wrap), 2 * MARGIN + LINE * (lines + 1))
    picture = Image.new("RGB", size, "#ffffff")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(FONT_SIZE)
    # The font of the library lacks subscripts.
    draw.text((MARGIN, MARGIN), _plain(row.name), fill=colors.SILENT, font=font)
    for number, cell in enumerate(row.cells):
        line, place = divmod(number, wrap)
        left, top = MARGIN + width * place, MARGIN + LINE * (line + 1)
        if cell.ink.background and not cell.is_marker:
            draw.rectangle((left, top, left + width - 1, top + LINE - 4), fill=cell.ink.background)
        middle = (left + width / 2, top + LINE / 2 - 2)
        draw.text(middle, cell.ink.symbol, fill=_ink_colour(cell), font=font, anchor="mm")
        if height := {Fate.INSERTED: top + LINE - 3, Fate.DELETED: top + LINE // 2 - 1}.get(
            cell.fate
        ):
            draw.line((left, height, left + width - 2, height), fill=COLOURS[cell.fate], width=2)
    return picture


def _plain(name: str) -> str:
    return name.translate(str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789"))
