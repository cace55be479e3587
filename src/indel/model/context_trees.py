"""A model of sequences by counts: the next token depends on the longest context that is known.

The contexts are the states of an automaton. A context is kept if it predicts the training data
better than the context without its oldest token, by more than a threshold; so frequent contexts
are long, and rare ones short.

Reference: Ron, Singer, Tishby 1996 (probabilistic suffix automata); Witten and Bell 1991
(interpolated counts)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

LONGEST_CONTEXT = 6
LEAST_GAIN = 12.0
"""In nats: a context that gains less is as likely an accident of the training data."""

Codes = Int[np.ndarray, " _"]


@dataclass(frozen=True, eq=False)
class ContextTree:
    """An automaton over contexts; state 0 is the start, states 1…K the last token alone."""

    prob: Float[np.ndarray, "states symbols"]
    """p(token | context), and in the last column p(end | context)."""
    follow: Int[np.ndarray, "states tokens"]
    """The state after a token: the longest suffix of context and token that is a state."""

    @classmethod
    def fit(cls, rows: Sequence[Int[np.ndarray, " _"]], size: int, states: int) -> ContextTree:
        """The tree of at most so many contexts that predicts the rows best.

        Args:
            rows: Sequences of tokens 0…size−1.
            size: The number K of regular tokens.
            states: The most contexts; at least K + 1.

        Returns:
            The tree.

        >>> tree = ContextTree.fit([np.array([0, 0, 1] * 50)], size=2, states=16)
        >>> tree.prob.shape
        (5, 3)
        """
        if states < size + 1:
            raise ValueError(f"states must be at least {size + 1}, got {states}")
        boundary = np.array([size])
        text = np.concatenate([boundary, *(part for row in rows for part in (row, boundary))])
        counts = _Counts.of(text, size)
        threshold = LEAST_GAIN
        levels = _levels(counts, size, threshold, states)
        while levels is None:
            threshold *= 1.5
            levels = _levels(counts, size, threshold, states)
        return _automaton(levels, size)

    def frequent(self, most: int) -> tuple[Codes, Codes, Float[np.ndarray, " transitions"]]:
        """The state before, the token and p(token | state) of the most likely transitions.

        >>> tree = ContextTree.fit([np.array([0, 0, 1] * 50)], size=2, states=16)
        >>> [each.tolist() for each in tree.frequent(2)[:2]]
        [[3, 4], [1, 0]]
        """
        prob = self.prob[:, :-1]
        if prob.size > most:
            least = np.partition(prob, prob.size - most, axis=None)[prob.size - most]
            state, token = np.nonzero(prob >= least)
        else:
            state, token = np.nonzero(prob)
        state, token = state[:most], token[:most]
        return state, token, prob[state, token]


@dataclass(frozen=True, eq=False)
class _Counts:
    """How often each group of tokens occurs, by the number of tokens."""

    groups: list[tuple[Codes, Codes]]
    """For n = 1, 2, …: codes of n tokens with the newest as last digit, and their counts."""

    @classmethod
    def of(cls, text: Int[np.ndarray, " length"], size: int) -> _Counts:
        base = size + 1
        # A group must not reach over a boundary: only its first and last symbol may be one.
        ends = text == size
        found = []
        codes, inside = np.zeros(len(text), dtype=np.int64), np.ones(len(text), dtype=bool)
        for n in range(1, LONGEST_CONTEXT + 2):
            if base**n >= 2**62:
                break
            length = max(len(text) - n + 1, 0)
            codes = codes[:length] * base + text[n - 1 :]
            inside = inside[:length]
            if n > 2:
                inside &= ~ends[n - 2 : n - 2 + length]
            found.append(np.unique(codes[inside], return_counts=True))
        return cls(found)


Level = tuple[Codes, Float[np.ndarray, "_ symbols"]]


def _levels(counts: _Counts, size: int, threshold: float, states: int) -> list[Level] | None:
    """The contexts of 1, 2, … tokens with their predictions; None if there are too many."""
    base = size + 1
    letters, number = counts.groups[0]
    # A uniform share for each symbol, so that none is impossible.
    root = np.full(base, 1.0 / base)
    root[letters] += number
    root /= root.sum()
    levels: list[Level] = [(np.zeros(1, dtype=np.int64), root[None])]
    total = 0
    for order, (groups, number) in enumerate(counts.groups[1:], start=1):
        shorter, prob_shorter = levels[-1]
        histories = np.unique(groups // base)
        suffix, known = _find(shorter, histories % base ** (order - 1))
        # To arrive at a context the automaton has to stand in the context without its last token.
        _, reachable = _find(shorter, histories // base)
        chosen = known & reachable
        contexts, below = histories[chosen], prob_shorter[suffix[chosen]]
        seen = _followers(contexts, groups, number, base)
        different = (seen > 0).sum(axis=1, keepdims=True)
        prob = (seen + different * below) / (seen.sum(axis=1, keepdims=True) + different)
        if order == 1:
            every = np.tile(root, (base, 1))
            every[contexts] = prob
            contexts, prob = np.arange(base), every
        else:
            gain = (seen * np.log(prob / below)).sum(axis=1)
            kept = gain > threshold
            contexts, prob = contexts[kept], prob[kept]
        if len(contexts) == 0:
            break
        total += len(contexts)
        if total > states:
            return None
        levels.append((contexts, prob))
    return levels[1:]


def _followers(
    contexts: Codes, groups: Codes, number: Codes, base: int
) -> Float[np.ndarray, "_ symbols"]:
    """How often each symbol follows each context."""
    seen = np.zeros((len(contexts), base))
    place, asked = _find(contexts, groups // base) if len(contexts) else (groups, groups < 0)
    seen[place[asked], (groups % base)[asked]] = number[asked]
    return seen


def _automaton(levels: list[Level], size: int) -> ContextTree:
    base = size + 1
    starts = np.cumsum([0, *(len(contexts) for contexts, _ in levels)])
    follow = np.zeros((starts[-1], size), dtype=np.int64)
    for order, (contexts, _) in enumerate(levels, start=1):
        open_ = np.ones((len(contexts), size), dtype=bool)
        here = follow[starts[order - 1] : starts[order]]
        for longer in range(min(order + 1, len(levels)), 0, -1):
            grown = (contexts[:, None] * base + np.arange(size)) % base**longer
            place, known = _find(levels[longer - 1][0], grown)
            found = known & open_
            here[found] = (starts[longer - 1] + place)[found]
            open_ &= ~known
    # The boundary, the last one-token context, becomes state 0.
    order_of = np.r_[size, np.arange(size), np.arange(base, starts[-1])]
    new_number = np.argsort(order_of)
    prob = np.concatenate([prob for _, prob in levels])
    return ContextTree(prob[order_of], new_number[follow[order_of]])


def _find(
    sorted_codes: Codes, asked: Int[np.ndarray, "*shape"]
) -> tuple[Int[np.ndarray, "*shape"], np.ndarray]:
    """Where each code stands, and whether it is there."""
    place = np.searchsorted(sorted_codes, asked).clip(max=len(sorted_codes) - 1)
    return place, sorted_codes[place] == asked
