"""Configurations as plain data: bad values and unknown fields get an error that names them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isfinite
from typing import Any


def integer(name: str, value: int, *, least: int) -> None:
    """An integer that is not too small."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer ≥ {least}, got {value!r}")


def share(name: str, value: float) -> None:
    """A number in [0, 1)."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not isfinite(value) or not 0.0 <= value < 1.0:
        raise ValueError(f"{name} must lie in [0, 1), got {value!r}")


def choice(name: str, value: str, allowed: Collection[str]) -> None:
    """One of a few names."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}")


def fields(what: str, data: object, expected: Collection[str]) -> dict[str, Any]:
    """The entries of a JSON object that must have exactly the expected names."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{what} must be a JSON object, got {type(data).__name__}")
    missing = [name for name in expected if name not in data]
    unknown = [name for name in data if name not in expected]
    if missing or unknown:
        raise ValueError(
            f"{what} must have the fields {', '.join(expected)}; "
            f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}"
        )
    return dict(data)
