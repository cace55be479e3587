"""A model of sequences by counts: the next token depends on the longest context that is known.

The contexts are the states of an automaton. A context is kept if it predicts the training data
better than the context without its oldest token, by more than a threshold; so frequent contexts
are long, and rare ones short. Where tokens far apart depend on each other by a grammar, a context
is the last tokens and a `Memory` of all that was read.

Reference: Ron, Singer, Tishby 1996 (probabilistic suffix automata); Witten and Bell 1991
(interpolated counts)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

LONGEST_CONTEXT = 8
LEAST_GAIN = 12.0
"""In nats: a context that gains less is as likely an accident of the training data."""

_COARSE, _FINER_STEPS = 1.5, 7
"""Thresholds of gain are tried by this factor, then in so many steps between the last two."""

_STATES_PER_MEMORY = 3
"""Of what may be too rare as many memories are kept that there are so many states for each."""

_SYMBOLS_AT_ONCE = 10_000_000

Codes = Int[np.ndarray, " _"]


class Memory(NamedTuple):
    """What is remembered of all tokens that were read; the same after the same tokens."""

    start: Any
    after: Callable[[Any, int], Any]
    """What is remembered after one more token; it can be a key of a dictionary."""
    less: Callable[[Any], Any] | None = None
    """What is remembered instead of something that is too rare; of that nothing is too rare."""


@dataclass(frozen=True, eq=False)
class ContextTree:
    """An automaton over contexts; state 0 is the start, states 1…K the last token alone."""

    prob: Float[np.ndarray, "states symbols"]
    """p(token | context), and in the last column p(end | context)."""
    follow: Int[np.ndarray, "states tokens"]
    """The state after a token: the longest suffix of context and token that is a state.

    After a token that never follows what is remembered, it is that of the token alone.
    """
    last: Int[np.ndarray, " states"]
    """The token that a state has just read; K for the start."""
    shorter: Int[np.ndarray, " states"]
    """The context without its oldest token, a smaller number; itself for one token alone."""

    @classmethod
    def fit(
        cls,
        rows: Sequence[Int[np.ndarray, " _"]],
        size: int,
        states: int,
        memory: Memory | None = None,
    ) -> ContextTree:
        """The tree of at most so many contexts that predicts the rows best.

        Args:
            rows: Sequences of tokens 0…size−1.
            size: The number K of regular tokens.
            states: The most contexts; at least K + 1, and with a memory one for each token after
                each memory that occurs.
            memory: What is remembered beside the last tokens; nothing by default.

        Returns:
            The tree.

        >>> tree = ContextTree.fit([np.array([0, 0, 1] * 50)], size=2, states=16)
        >>> tree.prob.shape
        (5, 3)
        """
        if states < size + 1:
            raise ValueError(f"states must be at least {size + 1}, got {states}")
        grammar = (
            _Grammar.none(rows, size)
            if memory is None
            else _Grammar.found(rows, size, memory, states // _STATES_PER_MEMORY)
        )
        levels = _Counts.of(rows, grammar).most_levels(states)
        return _automaton(levels, grammar).counted_again(rows)

    def counted_again(self, rows: Sequence[Int[np.ndarray, " _"]]) -> ContextTree:
        """The same contexts, with counts of what follows where no longer context is known.

        p(symbol | state) = (n − D [n > 0] + D · (different symbols) · p_before(symbol)) / Σ n,
        n how often the symbol follows the state, D = n₁ / (n₁ + 2 n₂) by how many counts are 1
        and 2: where nothing is rare, as in arithmetic sequences, almost nothing is taken off,
        one of all counts together.

        Reference: Ney, Essen, Kneser 1994 (absolute discounting)
        """
        seen = self._visits(rows)
        once, twice = (seen == 1).sum(), (seen == 2).sum()
        discount = max(once / (once + 2 * twice + 1), 1 / (seen > 0).sum())
        taken = np.minimum(seen, discount)
        total = seen.sum(axis=1, keepdims=True)
        spread = taken.sum(axis=1, keepdims=True) * self.prob
        prob = np.where(total > 0, (seen - taken + spread) / np.maximum(total, 1.0), self.prob)
        return replace(self, prob=prob)

    def _visits(self, rows: Sequence[Int[np.ndarray, " _"]]) -> Float[np.ndarray, "states symbols"]:
        """How often each symbol is read in each state."""
        symbols = self.prob.shape[1]
        lengths = np.array([len(row) for row in rows])
        # Longest rows first: those that go on are always the first ones.
        order = np.argsort(-lengths, kind="stable")
        going = np.searchsorted(-lengths[order], -np.arange(lengths.max(initial=0)), side="left")
        tokens = np.concatenate([rows[i] for i in order]) if len(rows) else np.zeros(0, np.int64)
        starts = np.r_[0, np.cumsum(lengths[order])]
        state, seen = np.zeros(len(rows), dtype=np.int64), np.zeros(self.prob.size)
        for i, count in enumerate(going):
            token = tokens[starts[:count] + i]
            seen += np.bincount(state[:count] * symbols + token, minlength=len(seen))
            state[:count] = self.follow[state[:count], token]
        seen += np.bincount(state * symbols + symbols - 1, minlength=len(seen))
        return seen.reshape(self.prob.shape)

    def frequent(self, most: int) -> tuple[Codes, Codes, Float[np.ndarray, " transitions"]]:
        """The state before, the token and p(token | state) of the most likely transitions.

        >>> tree = ContextTree.fit([np.array([0, 0, 1] * 50)], size=2, states=16)
        >>> [each.tolist() for each in tree.frequent(2)[:2]]
        [[3, 4], [1, 0]]
        """
        prob = self.prob[:, :-1]
        if prob.size > most:
            least = np.partition(prob, prob.size - most, axis=None)[prob.size - most]
            state, token = np.nonzero((prob >= least) & (prob > 0))
        else:
            state, token = np.nonzero(prob)
        state, token = state[:most], token[:most]
        return state, token, prob[state, token]


@dataclass(frozen=True, eq=False)
class _Grammar:
    """The memories that occur, by number: 0 is that of the start.

    The last one remembers nothing: it is where a sequence goes that does what no row does.
    """

    size: int
    after: Int[np.ndarray, "memories tokens"]

    places: Codes
    """The memory after the boundary before each row and after each of its tokens, then 0."""

    @classmethod
    def none(cls, rows: Sequence[Int[np.ndarray, " _"]], size: int) -> _Grammar:
        tokens = sum(map(len, rows)) + len(rows) + 1
        after = np.zeros((1, size), dtype=np.int64)
        return cls(size, after, np.zeros(tokens, dtype=np.int32))

    @classmethod
    def found(
        cls, rows: Sequence[Int[np.ndarray, " _"]], size: int, memory: Memory, most: int
    ) -> _Grammar:
        known, steps, places = _remembered(rows, size, memory)
        if memory.less is not None and len(known) > most:
            often = np.bincount(places, minlength=len(known))
            frequent = {known[number] for number in np.argsort(-often)[:most]} | {memory.start}
            known, steps, places = _remembered(rows, size, _without_rare(memory, frequent))
        after = np.stack([*steps, np.full(size, len(known))])
        return cls(size, np.where(after < 0, len(known), after), np.append(places, np.int32(0)))

    @property
    def memories(self) -> int:
        return len(self.after)

    @property
    def nothing(self) -> int:
        """The memory that remembers nothing."""
        return self.memories - 1


def _without_rare(memory: Memory, frequent: set[Any]) -> Memory:
    """The memory in which less is remembered than what is not frequent."""
    assert memory.less is not None
    less = memory.less

    def after(before: Any, token: int) -> Any:
        found = memory.after(before, token)
        return found if found in frequent else less(found)

    return Memory(memory.start, after)


def _remembered(
    rows: Sequence[Int[np.ndarray, " _"]], size: int, memory: Memory
) -> tuple[list[Any], list[Codes], Codes]:
    """The memories that occur, the number of the one after each token, and where they occur."""
    numbers: dict[Any, int] = {memory.start: 0}
    known: list[Any] = [memory.start]
    steps: list[Codes] = [np.full(size, -1)]
    lengths = np.array([len(row) for row in rows])
    places = np.zeros((len(rows), int(lengths.max(initial=0)) + 1), dtype=np.int32)
    for i in range(places.shape[1] - 1):
        going = np.flatnonzero(lengths > i)
        token = np.array([rows[row][i] for row in going.tolist()])
        place = places[going, i].astype(np.int64)
        for code in np.unique(place * size + token):
            here, read = divmod(int(code), size)
            if steps[here][read] < 0:
                then = memory.after(known[here], read)
                if then not in numbers:
                    numbers[then] = len(known)
                    known.append(then)
                    steps.append(np.full(size, -1))
                steps[here][read] = numbers[then]
        places[going, i + 1] = np.stack(steps)[place, token]
    inside = np.arange(places.shape[1]) <= lengths[:, None]
    return known, steps, places[inside]


def _added(one: tuple[Codes, Codes], other: tuple[Codes, Codes]) -> tuple[Codes, Codes]:
    """The counts of both; codes are sorted."""
    codes, numbers = (np.concatenate(each) for each in zip(one, other, strict=True))
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]][: len(codes)])
    return codes[first], np.add.reduceat(numbers[order], first) if len(first) else numbers


Level = tuple[Codes, Float[np.ndarray, "_ symbols"]]
"""Contexts of equally many tokens, sorted, and p(symbol | context).

A code has the memory as last digit, before it the tokens, the newest last.
"""


@dataclass(frozen=True, eq=False)
class _Counts:
    """How often each symbol follows each context."""

    grammar: _Grammar
    groups: list[tuple[Codes, Codes]]
    """For contexts of 0, 1, … tokens: codes of a context and a symbol, and their counts."""

    @classmethod
    def of(cls, rows: Sequence[Int[np.ndarray, " _"]], grammar: _Grammar) -> _Counts:
        ends = np.cumsum([0, *(len(row) + 1 for row in rows)])
        # As many rows at once as there is memory for, and at least one.
        bounds = [0]
        while bounds[-1] < len(rows):
            most = np.searchsorted(ends, ends[bounds[-1]] + _SYMBOLS_AT_ONCE, side="right") - 1
            bounds.append(max(int(most), bounds[-1] + 1))
        groups: list[tuple[Codes, Codes]] = []
        for start, stop in pairwise(bounds if len(rows) else [0, 0]):
            places = grammar.places[ends[start] : ends[stop] + 1].astype(np.int64)
            found = cls._of_some(rows[start:stop], grammar, places)
            groups = list(map(_added, groups, found)) if groups else found
        return cls(grammar, groups)

    @staticmethod
    def _of_some(
        rows: Sequence[Int[np.ndarray, " _"]], grammar: _Grammar, memory: Codes
    ) -> list[tuple[Codes, Codes]]:
        base, memories = grammar.size + 1, grammar.memories
        boundary = np.array([grammar.size])
        text = np.concatenate([boundary, *(part for row in rows for part in (row, boundary))])
        # A context must not reach over a boundary: only its oldest symbol may be one.
        ends = text == grammar.size
        found = []
        length = len(text) - 1
        codes, inside = np.zeros(length, dtype=np.int64), np.ones(length, dtype=bool)
        for n in range(LONGEST_CONTEXT + 1):
            if base ** (n + 1) * memories >= 2**62:
                break
            if n:
                # A row may be shorter than a context.
                length = max(length - (n > 1), 0)
                codes = text[:length] * base ** (n - 1) + codes[len(codes) - length :]
                inside = inside[len(inside) - length :]
                if n > 1:
                    inside = inside & ~ends[1 : length + 1]
            start = len(text) - 1 - length
            whole = (codes * memories + memory[start:-1]) * base + text[start + 1 :]
            found.append(np.unique(whole[inside], return_counts=True))
        return found

    def most_levels(self, states: int) -> list[Level]:
        """The contexts that gain most, nearly as many as are allowed."""
        threshold, found = LEAST_GAIN, self.levels(LEAST_GAIN, states)
        while found is None:
            threshold *= _COARSE
            found = self.levels(threshold, states)
        if threshold == LEAST_GAIN:
            return found
        # Between the last two thresholds, in smaller steps.
        threshold /= _COARSE
        for _ in range(_FINER_STEPS):
            threshold *= _COARSE ** (1 / (_FINER_STEPS + 1))
            finer = self.levels(threshold, states)
            if finer is not None:
                return finer
        return found

    def levels(self, threshold: float, states: int) -> list[Level] | None:
        """The contexts of 1, 2, … tokens with their predictions; None if there are too many."""
        size, memories = self.grammar.size, self.grammar.memories
        base, total = size + 1, 0
        levels = [self._memories()]
        for order, (groups, number) in enumerate(self.groups[1:], start=1):
            shorter, prob_shorter = levels[-1]
            tokens, memory = np.divmod(np.unique(groups // base), memories)
            suffix, known = _find(shorter, tokens % base ** (order - 1) * memories + memory)
            if order > 1:
                known &= self._reachable(shorter, tokens * memories + memory, base**order)
            contexts = (tokens * memories + memory)[known]
            below = prob_shorter[suffix[known]]
            seen = _followers(contexts, groups, number, base)
            prob = _interpolated(seen, below)
            if order == 1:
                contexts, prob = self._with_tokens_alone(contexts, prob)
            else:
                possible = seen > 0
                gain = seen[possible] * np.log(prob[possible] / below[possible])
                kept = np.bincount(np.nonzero(possible)[0], gain, len(seen)) > threshold
                contexts, prob = contexts[kept], prob[kept]
            if len(contexts) == 0:
                break
            total += len(contexts)
            if total > states:
                if order == 1:
                    raise ValueError(f"states must be at least {total}, got {states}")
                return None
            levels.append((contexts, prob))
        return levels[1:]

    def _memories(self) -> Level:
        """What follows each memory, whatever the last tokens are."""
        base, grammar = self.grammar.size + 1, self.grammar
        groups, number = self.groups[0]
        seen = np.zeros((grammar.memories, base))
        seen[groups // base, groups % base] = number
        # A uniform share for each symbol, so that none is impossible.
        seen[grammar.nothing] = seen.sum(axis=0) + 1.0 / base
        return np.arange(grammar.memories), seen / seen.sum(axis=1, keepdims=True)

    def _with_tokens_alone(self, contexts: Codes, prob: Float[np.ndarray, "_ symbols"]) -> Level:
        """Contexts of one token, and those of each token with nothing remembered."""
        grammar = self.grammar
        base, memories = grammar.size + 1, grammar.memories
        groups, number = self.groups[1]
        seen = np.zeros((base, base))
        np.add.at(seen, (groups // base // memories, groups % base), number)
        below = np.broadcast_to(self._memories()[1][grammar.nothing], seen.shape)
        alone = np.arange(base if memories == 1 else grammar.size)
        remembers = contexts % memories < grammar.nothing
        every = np.r_[contexts[remembers], alone * memories + grammar.nothing]
        order = np.argsort(every)
        found = np.concatenate([prob[remembers], _interpolated(seen, below)[alone]])
        return every[order], found[order]

    def _reachable(self, shorter: Codes, contexts: Codes, limit: int) -> Bool[np.ndarray, " _"]:
        """To arrive at a context the automaton has to stand in the one without its last token."""
        return np.isin(contexts, _grown(shorter, self.grammar, limit))


def _interpolated(
    seen: Float[np.ndarray, "_ symbols"], below: Float[np.ndarray, "_ symbols"]
) -> Float[np.ndarray, "_ symbols"]:
    """Counts, and as many more as there are different symbols, spread as in the shorter context."""
    different = (seen > 0).sum(axis=1, keepdims=True)
    total = seen.sum(axis=1, keepdims=True) + different
    return np.where(total > 0, (seen + different * below) / np.maximum(total, 1.0), below)


def _followers(
    contexts: Codes, groups: Codes, number: Codes, base: int
) -> Float[np.ndarray, "_ symbols"]:
    """How often each symbol follows each context."""
    seen = np.zeros((len(contexts), base))
    place, asked = _find(contexts, groups // base) if len(contexts) else (groups, groups < 0)
    seen[place[asked], (groups % base)[asked]] = number[asked]
    return seen


def _grown(contexts: Codes, grammar: _Grammar, limit: int) -> Int[np.ndarray, "_ tokens"]:
    """Contexts after each token, without the oldest tokens where the code reaches the limit."""
    base, memories = grammar.size + 1, grammar.memories
    token = np.arange(grammar.size)
    tokens, memory = np.divmod(contexts[:, None], memories)
    grown: np.ndarray = (tokens * base + token) % limit * memories + grammar.after[memory, token]
    return grown


def _automaton(levels: list[Level], grammar: _Grammar) -> ContextTree:
    base, memories, size = grammar.size + 1, grammar.memories, grammar.size
    starts = np.cumsum([0, *(len(contexts) for contexts, _ in levels)])
    follow = np.zeros((starts[-1], size), dtype=np.int64)
    shorter = np.arange(starts[-1])
    for order, (contexts, _) in enumerate(levels, start=1):
        if order > 1:
            tokens, memory = np.divmod(contexts, memories)
            place, _ = _find(levels[order - 2][0], tokens % base ** (order - 1) * memories + memory)
            shorter[starts[order - 1] : starts[order]] = starts[order - 2] + place
        open_ = np.ones((len(contexts), size), dtype=bool)
        here = follow[starts[order - 1] : starts[order]]
        for longer in range(min(order + 1, len(levels)), 0, -1):
            grown = _grown(contexts, grammar, base**longer)
            place, known = _find(levels[longer - 1][0], grown)
            found = known & open_
            here[found] = (starts[longer - 1] + place)[found]
            open_ &= ~known
    # The start becomes state 0, and each token alone the states after it.
    alone = np.arange(size) * memories + grammar.nothing
    first = np.searchsorted(levels[0][0], np.r_[size * memories, alone])
    order_of = np.r_[first, np.setdiff1d(np.arange(starts[-1]), first)]
    new_number = np.argsort(order_of)
    prob = np.concatenate([prob for _, prob in levels])
    last = np.concatenate([contexts // memories % base for contexts, _ in levels])
    follow, shorter = new_number[follow[order_of]], new_number[shorter[order_of]]
    return ContextTree(prob[order_of], follow, last[order_of], shorter)


def _find(
    sorted_codes: Codes, asked: Int[np.ndarray, "*shape"]
) -> tuple[Int[np.ndarray, "*shape"], np.ndarray]:
    """Where each code stands, and whether it is there."""
    place = np.searchsorted(sorted_codes, asked).clip(max=len(sorted_codes) - 1)
    return place, sorted_codes[place] == asked
