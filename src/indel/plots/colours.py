"""Colours of all figures: told apart by colour-blind readers, and dark enough on white."""

from __future__ import annotations

# Contrast above 5:1 on white; lightness differs too.
INSERT = "#00619c"
DELETE = "#b03a00"
REPLACE = "#4b2a7b"
SILENT = "#4d4d4d"
FAINT = "#8c8c8c"

# Okabe and Ito's palette, without its yellow, which white paper swallows.
SERIES = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
