"""Colours of all figures: told apart by colour-blind readers, and dark enough on white."""

from __future__ import annotations

from functools import cache

# Contrast above 5:1 on white; lightness differs too.
INSERT = "#00619c"
DELETE = "#b03a00"
REPLACE = "#4b2a7b"
SILENT = "#4d4d4d"
FAINT = "#8c8c8c"

# Okabe and Ito's palette, without its yellow, which white paper swallows.
SERIES = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

COLORS_OF = 100


@cache
def number_colors(number: int) -> tuple[str, str]:
    """The colour of a number, x mod 100 on one scale, and black or white to write on it.

    >>> number_colors(347) == number_colors(47) != number_colors(48)
    True

    Paper: Fig. 1
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    face = to_hex(colormaps["viridis"](number % COLORS_OF / COLORS_OF))
    # One of the two always has a contrast of 4.5 or more.
    return face, max("#000000", "#ffffff", key=lambda ink: contrast(ink, face))


def contrast(first: str, second: str) -> float:
    """The contrast of two colours as WCAG 2 has it: 1 for equal ones, 21 for black and white.

    >>> round(contrast("#000000", "#ffffff"))
    21
    """
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
