"""How good a repaired sentence is: wrong characters, and correct words that are still there."""

from __future__ import annotations

from collections.abc import Sequence

from indel.text_repair.rewriting import align


def edit_distance(first: str, second: str) -> int:
    """The least number of characters to insert, delete or replace that makes one text the other.

    A whole column of the table is one integer, a bit a row (G. Myers, J. ACM 46, 1999).

    >>> edit_distance("sentsnetne", "sentence")
    4
    """
    if not first:
        return len(second)
    rows: dict[str, int] = {}
    for place, character in enumerate(first):
        rows[character] = rows.get(character, 0) | 1 << place
    last = 1 << len(first) - 1
    all_rows = 2 * last - 1
    # Rows at which the table grows and shrinks by one, downwards; then the same to the right.
    grows, shrinks, distance = all_rows, 0, len(first)
    for character in second:
        equal = rows.get(character, 0)
        diagonal = (((equal & grows) + grows) ^ grows) | equal | shrinks
        right_grows = shrinks | ~(diagonal | grows)
        right_shrinks = grows & diagonal
        distance += bool(right_grows & last) - bool(right_shrinks & last)
        right_grows = right_grows << 1 | 1
        grows = ((right_shrinks << 1) | ~(equal | shrinks | right_grows)) & all_rows
        shrinks = right_grows & (equal | shrinks) & all_rows
    return distance


def kept_words(before: Sequence[str], after: Sequence[str]) -> set[int]:
    """The places of the words that an alignment of two sentences keeps.

    >>> sorted(kept_words("a cat sat there".split(), "the cat sat their mat".split()))
    [1, 2]
    """
    edits = align(before, after, [0] * len(before))
    return {place for place, word in edits if place is not None and before[place] == word}
