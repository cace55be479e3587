"""The player of a grid: part of the page, or a page of its own that needs nothing else."""

from __future__ import annotations

import base64
import json
from functools import cache
from html import escape
from importlib.resources import files

from indel.web.drawings import as_gif, as_svg
from indel.web.grids import Grid
from indel.web.themes import theme_styles


@cache
def static(name: str) -> str:
    """A file of the package's own scripts and styles."""
    return files("indel.web").joinpath("static", name).read_text(encoding="utf-8")


@cache
def styles() -> str:
    """The styles of the page, in light and dark."""
    return f"{theme_styles()}{static('page.css')}"


@cache
def script() -> str:
    """The player, with its styles in itself."""
    return static("player.js").replace('"/* player.css */"', json.dumps(static("player.css")))


def player(grid: Grid, name: str) -> str:
    """The element that `player.js` brings to life."""
    return (
        f'<indel-player aria-label="{escape(name)}" '
        f'data-grid="{escape(grid.to_json())}"></indel-player>'
    )


def standalone(grid: Grid, name: str) -> str:
    """A whole page with the player in it."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(name)}</title>\n<style>\n{styles()}\n</style>\n</head>\n"
        f'<body class="standalone">\n<h1>{escape(name)}</h1>\n{player(grid, name)}\n'
        f"<script>\n{script()}\n</script>\n</body>\n</html>\n"
    )


def downloads(grid: Grid, name: str) -> str:
    """Links that hold the files themselves, so that none has to lie on the server."""
    contents = (
        ("GIF", "image/gif", as_gif(grid)),
        ("HTML", "text/html;charset=utf-8", standalone(grid, name).encode()),
        ("SVG", "image/svg+xml", as_svg(grid).encode()),
    )
    links = (
        f'<a download="{escape(name)}.{kind.lower()}" '
        f'href="data:{mime};base64,{base64.b64encode(content).decode()}">{kind}</a>'
        for kind, mime, content in contents
    )
    return f'<p class="downloads">Download as {" ".join(links)}</p>'
