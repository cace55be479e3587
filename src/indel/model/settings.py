"""Configurations as plain data: bad values and unknown fields get an error that names them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

MOST = 2**63 - 1
"""The largest integer that torch knows."""
LONGEST = 1_000_000
"""Longer sequences are refused: attention could not be computed over them."""


def integer(name: str, value: int, *, least: int, most: int = MOST) -> None:
    """An integer that is neither too small nor too large."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer ≥ {least}, got {value!r}")
    if value > most:
        raise ValueError(f"{name} must be an integer ≤ {most}, got {value!r}")


def share(name: str, value: float) -> None:
    """A number in [0, 1)."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # Compared first: integers of hundreds of digits are no floats.
    if not number or not 0.0 <= value < 1.0:
        raise ValueError(f"{name} must lie in [0, 1), got {value!r}")


def flag(name: str, value: bool) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {value!r}")


def buckets(num_buckets: int, max_distance: int) -> None:
    """Buckets of relative positions, half of them for each direction."""
    integer("num_buckets", num_buckets, least=4, most=LONGEST)
    if num_buckets % 2:
        raise ValueError(f"num_buckets must be even, got {num_buckets}")
    # Below a quarter of the buckets each distance has its own.
    integer("max_distance", max_distance, least=num_buckets // 4 + 1, most=LONGEST)


def choice(name: str, value: str, allowed: Collection[str]) -> None:
    """One of a few names."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}")


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
