"""Trajectories that play in a page of the site, by the package's own player."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from indel.web.players import script
from indel.web.themes import DARK, LIGHT

GALLERY = Path(__file__).parents[1] / "gallery"


def player_of(name: str) -> str:
    """The element that plays a trajectory of `docs/gallery/`."""
    kept = json.loads((GALLERY / f"{name}.json").read_text(encoding="utf-8"))
    grid = json.dumps(kept["grid"], ensure_ascii=False)
    return (
        f'<indel-player aria-label="{escape(kept["title"])}" data-grid="{escape(grid)}">'
        f"</indel-player>\n\n*{kept['caption']}*"
    )


def repairs_table() -> str:
    """Sentences before and after repair."""
    kept = json.loads((GALLERY / "repairs.json").read_text(encoding="utf-8"))
    lines = [f"| {escape(row['typed'])} | {escape(row['mended'])} |\n" for row in kept["rows"]]
    return "| typed | mended |\n|---|---|\n" + "".join(lines) + f"\n*{kept['caption']}*"


def site_script() -> str:
    """The player."""
    return script()


def site_styles() -> str:
    """The player's colors, in the light and in the dark scheme of the site."""
    light, dark = (
        "".join(f"--indel-{name}: {color};" for name, color in theme.items())
        for theme in (LIGHT, DARK)
    )
    return f":root {{{light}}}\n[data-md-color-scheme=slate] {{{dark}}}\n"
