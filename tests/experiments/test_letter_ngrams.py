"""Interpolated counts of letters against the formula, one letter at a time."""

from collections import Counter
from math import log2

import numpy as np
import pytest

from indel.experiments.letter_ngrams import bits_per_letter


def direct_prob(train: list[int], history: list[int], letter: int, size: int) -> float:
    """p(letter | history) by the recursion, with counts made anew for each question."""
    if not history:
        counts = Counter(train)
        return (counts[letter] + len(counts) / size) / (len(train) + len(counts))
    width = len(history)
    followers = Counter(
        train[at + width] for at in range(len(train) - width) if train[at : at + width] == history
    )
    shorter = direct_prob(train, history[1:], letter, size)
    if not followers:
        return shorter
    return (followers[letter] + len(followers) * shorter) / (followers.total() + len(followers))


def test_bits_are_those_of_the_formula() -> None:
    generator = np.random.default_rng(0)
    train, test = generator.integers(0, 3, 200), generator.integers(0, 4, 60)
    found = bits_per_letter(train, test, orders=4, size=4)
    for order, bits in enumerate(found, start=1):
        expected = [
            -log2(
                direct_prob(
                    train.tolist(), test[max(0, at - order + 1) : at].tolist(), int(test[at]), 4
                )
            )
            for at in range(len(test))
        ]
        assert bits == pytest.approx(sum(expected) / len(test), rel=1e-12)


def test_probabilities_sum_to_one() -> None:
    train = np.random.default_rng(1).integers(0, 3, 50).tolist()
    for history in ([], [0], [2, 1], [3, 0]):
        total = sum(direct_prob(train, history, letter, 4) for letter in range(4))
        assert total == pytest.approx(1.0)
