"""Where the tokens of several sequences go, so that the lines between them stand upright."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

Links = Sequence[tuple[int, int]]
"""Pairs of positions in two neighbouring rows that belong together."""


def upright_rows(lengths: Sequence[int], links: Sequence[Links]) -> list[list[float]]:
    """The x of each token, one unit apart; a row is shifted so that it stands under the one before.

    A row without links is centred. The leftmost token of all is at 0.

    >>> upright_rows([2, 3], [[(0, 1), (1, 2)]])
    [[1.0, 2.0], [0.0, 1.0, 2.0]]
    """
    shifts = [0.0]
    for (before, after), pairs in zip(pairwise(lengths), links, strict=True):
        centred = (before - after) / 2
        shift = fmean(above - below for above, below in pairs) if pairs else centred
        shifts.append(shifts[-1] + shift)
    left = min((s for s, length in zip(shifts, lengths, strict=True) if length), default=0.0)
    return [
        [shift - left + position for position in range(length)]
        for shift, length in zip(shifts, lengths, strict=True)
    ]
