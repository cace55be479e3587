"""The edit distance of two sequences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The least number of tokens to insert, delete or replace that makes one sequence the other.

    A whole column of the table is one integer, a bit a row (G. Myers, J. ACM 46, 1999).

    >>> edit_distance("sentsnetne", "sentence")
    4
    """
    if not first:
        return len(second)
    rows: dict[Hashable, int] = {}
    for place, token in enumerate(first):
        rows[token] = rows.get(token, 0) | 1 << place
    last = 1 << len(first) - 1
    all_rows = 2 * last - 1
    # Rows at which the table grows and shrinks by one, downwards; then the same to the right.
    grows, shrinks, distance = all_rows, 0, len(first)
    for token in second:
        equal = rows.get(token, 0)
        diagonal = (((equal & grows) + grows) ^ grows) | equal | shrinks
        right_grows = shrinks | ~(diagonal | grows)
        right_shrinks = grows & diagonal
        distance += bool(right_grows & last) - bool(right_shrinks & last)
        right_grows = right_grows << 1 | 1
        grows = ((right_shrinks << 1) | ~(equal | shrinks | right_grows)) & all_rows
        shrinks = right_grows & (equal | shrinks) & all_rows
    return distance
