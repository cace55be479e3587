"""Checks of single values: an error names the field, the value and what would be right."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any, SupportsFloat

MOST = 2**63 - 1
"""The largest integer that torch knows."""


def integer(name: str, value: object, *, least: int, most: int = MOST) -> int:
    """The value, if it is an integer that is neither too small nor too large.

    >>> integer("steps", 5, least=1)
    5
    >>> integer("steps", 0, least=1)
    Traceback (most recent call last):
        ...
    ValueError: steps must be an integer ≥ 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer ≥ {least}, got {value!r}")
    if value > most:
        raise ValueError(f"{name} must be an integer ≤ {most}, got {value!r}")
    return value


def number(
    name: str, value: object, *, least: float, below: float | None = None, more: bool = False
) -> None:
    """A finite number ≥ least (with `more`: > least), and less than `below`."""
    right = isinstance(value, (int, float)) and not isinstance(value, bool)
    if right:
        assert isinstance(value, (int, float))
        right = (value > least if more else value >= least) and (below is None or value < below)
        # Compared first: integers of hundreds of digits are no floats.
        right = right and abs(value) <= sys.float_info.max
    if not right:
        upper = "" if below is None else f" and < {below:g}"
        sign = ">" if more else "≥"
        raise ValueError(f"{name} must be a number {sign} {least:g}{upper}, got {value!r}")


def probability(name: str, value: object, *, below_one: bool = False) -> float:
    """A number in [0, 1], or in [0, 1); a tensor with one entry is one, a string is not.

    >>> probability("rate", 0.5)
    0.5
    >>> probability("rate", "0.5")
    Traceback (most recent call last):
        ...
    ValueError: rate must lie in [0, 1], got '0.5'
    """
    number = isinstance(value, SupportsFloat) and not isinstance(value, bool)
    # NaN lies nowhere. Compared as given: integers of hundreds of digits are no floats.
    if not number or not 0 <= value <= 1 or (below_one and value == 1):  # type: ignore[operator]
        raise ValueError(f"{name} must lie in [0, 1{')' if below_one else ']'}, got {value!r}")
    return float(value)  # type: ignore[arg-type]


def flag(name: str, value: object) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {value!r}")


def choice(name: str, value: object, allowed: Collection[str]) -> None:
    """One of a few names."""
    if not isinstance(value, str) or value not in allowed:
        hint = closest(str(value), allowed)
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}{hint}")


def closest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that is most like the given one, if any is."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def fields(
    what: str, data: object, expected: Collection[str], *, defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The entries of a JSON object that must have the expected names, and may have the others."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{what} must be a JSON object, got {type(data).__name__}")
    defaults = defaults or {}
    missing = [name for name in expected if name not in data]
    unknown = [name for name in data if name not in expected and name not in defaults]
    if missing or unknown:
        raise ValueError(
            f"{what} must have the fields {', '.join(expected)}; "
            f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}"
        )
    return {**defaults, **data}


def fits_in_memory(what: str, numbers: int, *, bytes_each: int) -> None:
    """Refuse what is larger than all memory of this machine, before it is allocated.

    >>> fits_in_memory("a table", 1000, bytes_each=8)
    >>> fits_in_memory("a table", 10**15, bytes_each=8)  # doctest: +ELLIPSIS
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
