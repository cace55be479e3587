"""Counts of contexts: known sources are found, and the automaton reads what a list would."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest

from indel.model import context_trees
from indel.model.context_trees import ContextTree, Memory

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


def nested_rows(count: int, seed: int = 0) -> list[np.ndarray]:
    """Words of "(" 0, ")" 1 and 2, 3, whose parentheses are balanced and at most three deep."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        row, depth = [], 0
        while not (depth == 0 and row and rng.random() < 0.2):
            possible = [2, 3] + [0] * (depth < 3) + [1] * (2 * (depth > 0))
            token = int(rng.choice(possible))
            depth += (token == 0) - (token == 1)
            row.append(token)
        rows.append(np.array(row))
    return rows


DEPTH = Memory(0, lambda depth, token: depth + (token == 0) - (token == 1))


def test_a_memory_keeps_what_the_last_tokens_forget() -> None:
    tree = ContextTree.fit(nested_rows(2000), size=4, states=300, memory=DEPTH)
    plain = ContextTree.fit(nested_rows(2000), size=4, states=300)

    def after(model: ContextTree, tokens: list[int]) -> np.ndarray:
        state = 0
        for token in tokens:
            assert model.prob[state, token] > 0
            state = int(model.follow[state, token])
            assert model.last[state] == token
        return model.prob[state]

    long = [2, 3] * 10
    inside, outside = [0, 0, *long], [0, *long, 1, *long]
    assert after(tree, inside)[-1] == 0, "a word cannot end within parentheses"
    assert after(tree, outside)[1] == 0, "nothing is left to close"
    assert after(tree, outside)[-1] == pytest.approx(0.2, abs=0.03)
    assert after(tree, [0, 0, 0, *long])[0] == 0, "no row is four deep"
    np.testing.assert_allclose(after(plain, inside), after(plain, outside))


def test_what_no_row_does_leads_to_the_token_alone() -> None:
    tree = ContextTree.fit(nested_rows(500), size=4, states=300, memory=DEPTH)
    assert tree.last[:5].tolist() == [4, 0, 1, 2, 3]
    lost = int(tree.follow[0, 1])
    assert tree.prob[0, 1] == 0
    assert lost == 2
    assert int(tree.follow[lost, 3]) == 4, "it stays so"
    assert (tree.prob[1:5] > 0).all(), "then nothing is impossible"
    np.testing.assert_allclose(tree.prob.sum(axis=1), 1.0, rtol=1e-12)


def test_contexts_with_a_memory_are_counted_by_hand() -> None:
    rows = nested_rows(40)
    tree = ContextTree.fit(rows, size=4, states=300, memory=DEPTH)
    remembered, seen = np.zeros(5), defaultdict(Counter)
    for row in rows:
        depth = np.cumsum((row == 0).astype(int) - (row == 1))
        follows = np.append(row[1:], 4)
        remembered += np.bincount(follows[depth == 2], minlength=5)
        # In these words the depth says it all, so no context has two tokens.
        seen["start"][int(row[0])] += 1
        for where in zip(depth.tolist(), row.tolist(), follows.tolist(), strict=True):
            seen[where[:2]][where[2]] += 1
    context = np.array([seen[2, 0][symbol] for symbol in range(5)])
    before = context + (context > 0).sum() * remembered / remembered.sum()
    before /= before.sum()
    numbers = Counter(number for follows in seen.values() for number in follows.values())
    discount = numbers[1] / (numbers[1] + 2 * numbers[2] + 1)
    assert 0 < discount < 1
    expected = (
        np.where(context > 0, context - discount, 0) + discount * (context > 0).sum() * before
    )
    state = int(tree.follow[tree.follow[0, 0], 0])
    np.testing.assert_allclose(tree.prob[state], expected / context.sum(), rtol=1e-9)


def test_what_a_short_context_predicts_is_counted_where_no_longer_one_is_known() -> None:
    """After 1 comes 0, but after 0 0 1 comes 1: the context 1 must not know the latter."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(300):
        row = rng.integers(2, size=2).tolist()
        while len(row) < 40:
            after = row[-3:] == [0, 0, 1]
            row.append(
                1
                if after
                else 0
                if row[-1] == 1
                else int(rng.random() < (0.9 if row[-2:] == [0, 0] else 0.4))
            )
        rows.append(np.array(row))
    tree = ContextTree.fit(rows, size=2, states=40)
    longer, shorter = (int(state) for state in _read(tree, [[1, 0, 0, 1], [0, 1, 0, 1]]))
    assert longer != shorter
    assert tree.prob[longer, 1] > 0.9
    assert tree.prob[shorter, 1] < 0.02


def test_where_nothing_is_rare_almost_nothing_is_taken_off() -> None:
    rows = [start + step * np.arange(5) for start in range(6) for step in (1, 2)] * 50
    tree = ContextTree.fit(rows, size=15, states=200)
    for start in range(6):
        (state,) = _read(tree, [[start, start + 1]])
        possible = [start + 2, start + 3, 15]  # one more, two more, or the end
        rest = 1 - tree.prob[state, possible].sum()
        assert 0 < rest < 1e-3, "one of all counts together, spread as before"
        assert tree.prob[state].sum() == pytest.approx(1.0, abs=1e-15)


def _read(tree: ContextTree, rows: list[list[int]]) -> list[int]:
    states = []
    for row in rows:
        state = 0
        for token in row:
            state = int(tree.follow[state, token])
        states.append(state)
    return states


def test_too_few_contexts_for_a_memory_are_refused() -> None:
    with pytest.raises(ValueError, match=r"states must be at least 1[0-9], got 6"):
        ContextTree.fit(nested_rows(300), size=4, states=6, memory=DEPTH)


@pytest.mark.parametrize("at_once", [1, 60, 700])
def test_rows_that_are_counted_apart_give_the_same_tree(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row[: 5 + i % 30].astype(np.int8) for i, row in enumerate(rows_of_order_two(90, 40))]
    rows[7] = rows[7][:0]
    last_even = Memory(0, lambda memory, token: (memory + token) % 2)
    for memory in (None, last_even):
        together = ContextTree.fit(rows, size=2, states=40, memory=memory)
        with monkeypatch.context() as patch:
            patch.setattr(context_trees, "_SYMBOLS_AT_ONCE", at_once)
            apart = ContextTree.fit(rows, size=2, states=40, memory=memory)
        assert len(together.prob) > 3
        assert np.array_equal(apart.follow, together.follow)
        assert np.array_equal(apart.prob, together.prob)
