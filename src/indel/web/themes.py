"""The colours of the page in light and dark: ink on paper has a contrast of 4.5 or more in both."""

from __future__ import annotations

from functools import cache

from indel.drawing import colors

LIGHT = {
    "paper": "#ffffff",
    "ink": "#111111",
    "quiet": "#4d4d4d",
    "line": "#d0d0d0",
    "inserted": colors.INSERT,
    "inserted-ground": "#d6ebf8",
    "deleted": "#a03400",
    "deleted-ground": "#fbe3d8",
    "replaced": colors.REPLACE,
    "replaced-ground": "#e8def5",
    "button": "#f4f4f4",
    "edge": "#767676",
    "link": "#00436b",
    "accent": "#00619c",
    "on-accent": "#ffffff",
    "focus": "#0072b2",
    "current": "#fff3c4",
    "tip": "#222222",
    "on-tip": "#ffffff",
}
DARK = {
    "paper": "#17191d",
    "ink": "#f0f1f3",
    "quiet": "#b6bac2",
    "line": "#3d4148",
    "inserted": "#8ccbf5",
    "inserted-ground": "#0f3047",
    "deleted": "#ffab80",
    "deleted-ground": "#47210f",
    "replaced": "#d0b3ff",
    "replaced-ground": "#33244f",
    "button": "#2a2d33",
    "edge": "#8b9099",
    "link": "#9bd0f5",
    "accent": "#8ccbf5",
    "on-accent": "#0b1a26",
    "focus": "#56b4e9",
    "current": "#4a3f12",
    "tip": "#f0f1f3",
    "on-tip": "#111111",
}


@cache
def theme_styles() -> str:
    """Both as variables: Gradio marks a dark page with a class, a page of its own asks the system.

    >>> "--indel-paper: #ffffff" in theme_styles()
    True
    """
    light, dark = (
        "".join(f"--indel-{name}: {colour};" for name, colour in theme.items())
        for theme in (LIGHT, DARK)
    )
    return (
        f":root {{{light}}}\n.dark {{{dark}}}\n"
        f"@media (prefers-color-scheme: dark) {{ .standalone {{{dark}}} }}\n"
    )
