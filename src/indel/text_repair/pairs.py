"""Pairs of a noisy and a clean sentence, and the halves of a file of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Half(StrEnum):
    """Every other line of a file, counted from 0."""

    FIRST = "first"
    """Lines 0, 2, 4 …, to choose settings on."""
    SECOND = "second"
    """Lines 1, 3, 5 …, to test them on."""


class Pair(NamedTuple):
    """A sentence as it was typed, and as it should be."""

    noisy: str
    clean: str


def read_pairs(
    path: Path,
    *,
    half: Half | None = None,
    min_length: int = 0,
    max_length: int | None = None,
    limit: int | None = None,
) -> list[Pair]:
    """The pairs of a file, a line each: noisy, a tab, clean.

    Of the half that is asked for, those whose clean side has a length within the bounds; of these
    the first `limit`.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} should be a text in UTF-8: {error}") from None
    pairs = []
    for number, line in enumerate(lines):
        fields = line.rstrip("\r").split("\t")
        if fields == [""]:
            continue
        if len(fields) != 2:
            raise ValueError(
                f"{path}, line {number + 1}: expected a noisy sentence, a tab and a clean one, "
                f"got {len(fields)} fields in {line[:60]!r}"
            )
        if half is None or number % 2 == list(Half).index(half):
            pairs.append(Pair(*fields))
    longest = float("inf") if max_length is None else max_length
    chosen = [pair for pair in pairs if min_length <= len(pair.clean) <= longest][:limit]
    if not any(pair.clean for pair in chosen):
        raise ValueError(f"{path}: none of the {len(pairs)} pairs is within the lengths asked for")
    return chosen
