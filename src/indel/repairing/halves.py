"""Halves of a set of pairs: one to choose settings on, the other to test them on."""

from enum import StrEnum


class Half(StrEnum):
    """Every other line of a file, counted from 0."""

    FIRST = "first"
    """Lines 0, 2, 4 …, to choose settings on."""
    SECOND = "second"
    """Lines 1, 3, 5 …, to test them on."""
