"""Counts of contexts: known sources are found, and the automaton reads what a list would."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from indel.model.context_trees import ContextTree

ORDER_TWO = {(0, 0): 0.9, (0, 1): 0.2, (1, 0): 0.6, (1, 1): 0.05}
"""p(next = 1 | the last two tokens)."""


def rows_of_order_two(count: int, length: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = np.zeros((count, length), dtype=np.int64)
    rows[:, :2] = rng.integers(2, size=(count, 2))
    table = np.array([[ORDER_TWO[a, b] for b in (0, 1)] for a in (0, 1)])
    for i in range(2, length):
        rows[:, i] = rng.random(count) < table[rows[:, i - 2], rows[:, i - 1]]
    return list(rows)


def test_a_source_of_order_two_is_found() -> None:
    tree = ContextTree.fit(rows_of_order_two(400, 50), size=2, states=100)
    for (a, b), expected in ORDER_TWO.items():
        state = tree.follow[tree.follow[0, a], b]
        for token in (1, 0, 1, a, b):
            state = tree.follow[state, token]
        prob = tree.prob[state, :2] / tree.prob[state, :2].sum()
        assert prob[1] == pytest.approx(expected, abs=0.02)


def test_contexts_that_say_nothing_are_left_out() -> None:
    rng = np.random.default_rng(0)
    tree = ContextTree.fit(list(rng.integers(3, size=(200, 40))), size=3, states=1000)
    assert len(tree.prob) < 10


def test_a_limit_on_the_contexts_is_kept() -> None:
    rows = rows_of_order_two(400, 50)
    assert len(ContextTree.fit(rows, size=2, states=100).prob) > 4
    assert len(ContextTree.fit(rows, size=2, states=4).prob) <= 4
    with pytest.raises(ValueError, match="states must be at least 3, got 2"):
        ContextTree.fit(rows, size=2, states=2)


def test_probabilities_sum_to_one_and_none_is_zero() -> None:
    tree = ContextTree.fit([np.array([0, 1, 1, 2] * 40), np.array([3])], size=5, states=50)
    np.testing.assert_allclose(tree.prob.sum(axis=1), 1.0, rtol=1e-12)
    assert (tree.prob > 0).all()


def test_a_state_is_the_longest_known_suffix_of_what_was_read() -> None:
    """Two ways to the same longest context lead to the same state, to others they need not."""
    tree = ContextTree.fit(rows_of_order_two(400, 50), size=2, states=100)

    def read(tokens: tuple[int, ...]) -> int:
        state = 0
        for token in tokens:
            state = int(tree.follow[state, token])
        return state

    for last in itertools.product((0, 1), repeat=6):
        states = {read((*first, *last)) for first in itertools.product((0, 1), repeat=3)}
        assert len(states) == 1
    assert read((0, 1, 0, 1, 0, 0)) != read((0, 1, 0, 1, 1, 0))


def test_the_most_likely_transitions_are_kept() -> None:
    tree = ContextTree.fit([np.array([0, 0, 1] * 50)], size=2, states=16)
    state, token, prob = tree.frequent(3)
    assert len(prob) == 3
    assert sorted(prob) == sorted(np.sort(tree.prob[:, :2], axis=None)[-3:])
    np.testing.assert_array_equal(prob, tree.prob[state, token])


def test_an_empty_row_counts_as_a_start_and_an_end() -> None:
    empty = np.array([], dtype=np.int64)
    often = ContextTree.fit([empty] * 30 + [np.array([0, 1])], size=2, states=8)
    assert often.prob[0, -1] > 0.8
