"""Molecules as SVG: atoms that are new, gone or replaced in the colors of the other pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from indel.drawing import colors
from indel.drawing.terminal import Fate
from indel.molecules.chemistry import Molecule, parsed, rdkit

COLORS = {
    Fate.REPLACED: colors.REPLACE,
    Fate.INSERTED: colors.INSERT,
    Fate.DELETED: colors.DELETE,
}
# In pixels.
WIDTH, HEIGHT, CAPTION = 260, 200, 36
_DEPTH = 0.45
_LETTERS = 38
"""Characters of a caption that fit the width."""


@dataclass(frozen=True)
class Panel:
    """One molecule, what its atoms are, and what stands below it."""

    smiles: str
    caption: str = ""
    atoms: Sequence[Fate] = ()
    """In the order of the string; empty: nothing is marked."""


def picture(panels: Sequence[Panel], columns: int = 3) -> str:
    """A grid of molecules as one SVG file."""
    columns = min(columns, max(1, len(panels)))
    rows = -(-len(panels) // columns)
    width, height = columns * WIDTH, rows * (HEIGHT + CAPTION)
    parts = []
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        parts.append(_placed(panel, column * WIDTH, row * (HEIGHT + CAPTION)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}">\n<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
        f"{''.join(parts)}</svg>\n"
    )


def drawn(panel: Panel) -> str:
    """One molecule as an SVG element without a caption; a string that is none as itself."""
    found = _drawable(panel.smiles)
    if found is None:
        return _refused(panel.smiles)
    canvas = rdkit("Chem.Draw.rdMolDraw2D").MolDraw2DSVG(WIDTH, HEIGHT)
    options = canvas.drawOptions()
    options.useBWAtomPalette()
    fates = list(panel.atoms) if len(panel.atoms) == found.GetNumAtoms() else []
    marked = {place: _tint(COLORS[fate]) for place, fate in enumerate(fates) if fate in COLORS}
    bonds = {
        bond.GetIdx(): marked[bond.GetBeginAtomIdx()]
        for bond in found.GetBonds()
        if bond.GetBeginAtomIdx() in marked and bond.GetEndAtomIdx() in marked
    }
    rdkit("Chem.Draw.rdMolDraw2D").PrepareAndDrawMolecule(
        canvas,
        found,
        highlightAtoms=list(marked),
        highlightAtomColors=marked,
        highlightBonds=list(bonds),
        highlightBondColors=bonds,
    )
    canvas.FinishDrawing()
    whole = canvas.GetDrawingText()
    # Without the head of a file; classes of one drawing must not style another.
    return re.sub(r"\sclass='[^']*'", "", whole[whole.index("<svg") :]).strip()


def _drawable(smiles: str) -> Molecule | None:
    """The molecule with all atoms that the string names, hydrogens too."""
    if parsed(smiles) is None:
        return None
    parameters = rdkit().SmilesParserParams()
    parameters.removeHs = False
    return rdkit().MolFromSmiles(smiles, parameters)


def _placed(panel: Panel, left: int, top: int) -> str:
    below = "".join(
        f'<text x="{WIDTH // 2}" y="{HEIGHT + 12 + 15 * number}" text-anchor="middle" '
        f'font-family="monospace" font-size="11" fill="{colors.SILENT}">{escape(line)}</text>'
        for number, line in enumerate(_lines(panel.caption))
    )
    return f'<g transform="translate({left} {top})">{drawn(panel)}{below}</g>\n'


def _refused(smiles: str) -> str:
    shown = smiles if len(smiles) <= _LETTERS else smiles[: _LETTERS - 1] + "…"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="monospace" font-size="11" '
        f'text-anchor="middle"><text x="{WIDTH // 2}" y="{HEIGHT // 2 - 8}" '
        f'fill="{colors.SILENT}">no molecule</text><text x="{WIDTH // 2}" '
        f'y="{HEIGHT // 2 + 10}" fill="{colors.SILENT}">{escape(shown)}</text></svg>'
    )


def _lines(caption: str) -> list[str]:
    found = caption.splitlines()[:2]
    return [line if len(line) <= _LETTERS else line[: _LETTERS - 1] + "…" for line in found]


def _tint(color: str) -> tuple[float, float, float]:
    """The color, mixed with white so that letters on it can be read."""
    red, green, blue = (
        1.0 - _DEPTH * (1.0 - int(color[place : place + 2], 16) / 255) for place in (1, 3, 5)
    )
    return red, green, blue
