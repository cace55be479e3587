"""Pairs of a noisy and a clean sentence, and the halves of a file of them."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import NamedTuple

from indel.levenshtein import edit_distance


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


def aligned_words(noisy: str, clean: str) -> list[tuple[int, int, str]]:
    """Which words of the clean sentence each word of the noisy one stands for.

    Triples (start, end, text): noisy[start:end] should be the text. One word may stand for two or
    for none, two for one, and words may be missing; the triples have the least edits in all.

    >>> aligned_words("wehave to gether", "we have together")
    [(0, 6, 'we have'), (7, 16, 'together')]
    """
    before, after = noisy.split(), clean.split()
    distance = cache(edit_distance)
    starts = [0]
    for word in before:
        starts.append(starts[-1] + len(word) + 1)
    # The least cost of the first i and j words, and the step that led there.
    best: dict[tuple[int, int], tuple[float, tuple[int, int]]] = {(0, 0): (0.0, (0, 0))}
    for i in range(len(before) + 1):
        for j in range(len(after) + 1):
            if (i, j) not in best:
                continue
            cost = best[i, j][0]
            for taken, written in _STEPS:
                to = (i + taken, j + written)
                if to[0] > len(before) or to[1] > len(after) or abs(to[0] - to[1]) > _DRIFT:
                    continue
                old, new = " ".join(before[i : to[0]]), " ".join(after[j : to[1]])
                more = 0.0 if old == new else distance(old, new) + 0.5 * (taken != written)
                if to not in best or cost + more < best[to][0]:
                    best[to] = (cost + more, (taken, written))
    i, j = len(before), len(after)
    if (i, j) not in best:
        return []
    found = []
    while i or j:
        taken, written = best[i, j][1]
        if taken:
            text = " ".join(after[j - written : j])
            found.append((starts[i - taken], starts[i] - 1, text))
        i, j = i - taken, j - written
    return found[::-1]


_STEPS = ((1, 1), (1, 2), (2, 1), (1, 0), (0, 1))
_DRIFT = 8  # words that one sentence may be ahead of the other


def intended(noisy: str, clean: str) -> Callable[[int, int], str | None]:
    """What a stretch of whole words of a noisy sentence should be; None if it has no such words.

    >>> intended("wehave to gether", "we have together")(7, 16)
    'together'
    """
    triples = aligned_words(noisy, clean)

    def look_up(start: int, end: int) -> str | None:
        inside = [each for each in triples if start <= each[0] and each[1] <= end]
        if not inside or inside[0][0] != start or inside[-1][1] != end:
            return None
        return " ".join(text for _, _, text in inside if text)

    return look_up
