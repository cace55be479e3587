"""How good a repaired sentence is: wrong characters, and correct words that are still there."""

from __future__ import annotations

from collections.abc import Sequence

from indel.text_repair.rewriting import align


def kept_words(before: Sequence[str], after: Sequence[str]) -> set[int]:
    """The places of the words that an alignment of two sentences keeps.

    >>> sorted(kept_words("a cat sat there".split(), "the cat sat their mat".split()))
    [1, 2]
    """
    edits = align(before, after, [0] * len(before))
    return {place for place, word in edits if place is not None and before[place] == word}
