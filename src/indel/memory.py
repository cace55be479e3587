"""Sizes that cannot fit in memory are refused before anything is allocated."""

from __future__ import annotations

import os


def check_fits(what: str, numbers: int, *, bytes_each: int) -> None:
    """Refuse what is larger than all memory of this machine.

    >>> check_fits("a table", 1000, bytes_each=8)
    >>> check_fits("a table", 10**15, bytes_each=8)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: a table of 1,000,000,000,000,000 numbers takes 8,000,000 GB; this machine has ...
    """
    size, available = numbers * bytes_each, physical_memory()
    if size > available:
        raise ValueError(
            f"{what} of {numbers:,} numbers takes {size // 10**9:,} GB; this machine has "
            f"{available / 1e9:.0f} GB"
        )


def physical_memory() -> int:
    """The bytes of memory that this machine has; where it does not tell, 2⁴⁶ (70 TB)."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 46
