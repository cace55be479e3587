"""What the methods are asked besides samples: gaps to fill and typing errors to mend.

Both are drawn from the data and a seed alone, the same for every method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from indel import checks

Tokens = list[int]


class Gaps(NamedTuple):
    """Sequences with a part taken out, and the part."""

    left: list[Tokens]
    right: list[Tokens]
    taken: list[Tokens]


def cut_gaps(sequences: Sequence[Tokens], *, generator: torch.Generator) -> Gaps:
    """Take a quarter of each sequence out, at least one token, at a random place.

    At least one token stays before the gap and one behind it; sequences of fewer than three tokens
    are left out.

    >>> cut_gaps([[1, 2, 3], [4, 5]], generator=torch.Generator().manual_seed(0))
    Gaps(left=[[1]], right=[[3]], taken=[[2]])
    """
    gaps = Gaps([], [], [])
    for row in sequences:
        if len(row) < 3:
            continue
        size = max(1, len(row) // 4)
        start = 1 + _below(len(row) - size - 1, generator)
        gaps.left.append(row[:start])
        gaps.taken.append(row[start : start + size])
        gaps.right.append(row[start + size :])
    return gaps


def with_typing_errors(
    sequences: Sequence[Tokens],
    vocabulary_size: int,
    *,
    rate: float,
    generator: torch.Generator,
) -> list[Tokens]:
    """Each token is wrong with the probability `rate`: replaced, deleted, or followed by another.

    The three are equally likely, new tokens uniform, and a replaced token is another one. This is
    the q of no method.
    """
    checks.number("rate", rate, least=0.0)
    if rate > 1.0 or vocabulary_size < 2:
        raise ValueError(
            f"rate must be at most 1 and vocabulary_size at least 2, got {rate} and "
            f"{vocabulary_size}"
        )
    return [_with_errors(row, vocabulary_size, rate, generator) for row in sequences]


def _with_errors(
    row: Tokens, vocabulary_size: int, rate: float, generator: torch.Generator
) -> Tokens:
    wrong = (torch.rand(len(row), generator=generator) < rate).tolist()
    typed = []
    for token, is_wrong in zip(row, wrong, strict=True):
        kind = _below(3, generator) if is_wrong else None
        if kind is None:
            typed.append(token)
        elif kind == 0:
            typed.append((token + 1 + _below(vocabulary_size - 1, generator)) % vocabulary_size)
        elif kind == 1:
            typed += [token, _below(vocabulary_size, generator)]
    return typed


def _below(count: int, generator: torch.Generator) -> int:
    return int(torch.randint(count, (), generator=generator))
