"""The way of one sequence through time, with tokens that can be followed from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from indel.batch import Batch
from indel.process.edits import INSERTED, step_parents

NO_TOKEN = -1
"""The position of a token at a time when it is not there."""


@dataclass(frozen=True)
class Life:
    """One token from its first to its last appearance, in the order of the states.

    Backwards in time, as samples are drawn, it is born as a DEL or with x_T, changes its value, and
    is last seen as an INS or in x_0.
    """

    identity: int
    times: tuple[int, ...]
    positions: tuple[int, ...]
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Trajectory:
    """The sequences x_t, …, x_0 of one row and the links between them.

    Paper: Fig. 2

    >>> reverse = Trajectory.of([2, 1, 0], [[0, 2], [3, 1], [0, 1]], vocab_size=2)
    >>> reverse.parents, reverse.children(0)
    (((1, -1), (0, 1)), (-1, 0))
    >>> reverse.identities
    ((0, 1), (2, 0), (2, 0))
    """

    times: tuple[int, ...]
    """Falling; times of calls of the network that were left out are not there."""
    states: tuple[tuple[int, ...], ...]
    """The tokens at each of the times."""
    parents: tuple[tuple[int, ...], ...]
    """parents[i][j]: where token j of states[i] stands in states[i+1], the sequence that it comes
    from in q; −1 for INS, which comes from nothing."""
    identities: tuple[tuple[int, ...], ...]
    """A number for each token of each state, the same as long as the token lives."""

    @classmethod
    def of(
        cls, times: Sequence[int], states: Sequence[Sequence[int]], *, vocab_size: int
    ) -> Trajectory:
        """Link states that follow each other backwards in time: one step aligns in one way only.

        Identities are given in the order of appearance, in each state from left to right.
        """
        if len(times) != len(states) or not states:
            raise ValueError(
                f"there must be one state for each time, got {len(states)} and {len(times)}"
            )
        if any(later <= earlier for later, earlier in pairwise(times)):
            raise ValueError(f"times must fall from state to state, got {list(times)}")
        later, earlier = Batch.from_lists(states[:-1]), Batch.from_lists(states[1:])
        found = step_parents(earlier, later, vocab_size).tolist()
        parents = tuple(
            tuple(row[: len(state)]) for row, state in zip(found, states[:-1], strict=True)
        )
        return cls(
            tuple(times),
            tuple(tuple(state) for state in states),
            parents,
            _identities(states, parents),
        )

    def children(self, step: int) -> tuple[int, ...]:
        """Where each token of states[step+1] stands in states[step]; −1 for DEL: it is gone."""
        return _inverse(self.parents[step], len(self.states[step + 1]))

    def end_of(self, length: int) -> int:
        """Where in the last state what became of the first `length` tokens ends.

        That is before the first token that stood after them, whatever it is now.
        """
        after, names = set(self.identities[0][length:]), self.identities[-1]
        return next((place for place, name in enumerate(names) if name in after), len(names))

    def lives(self) -> tuple[Life, ...]:
        """Every token that ever was, by identity."""
        times: dict[int, list[tuple[int, int, int]]] = {}
        for time, state, names in zip(self.times, self.states, self.identities, strict=True):
            for position, (token, name) in enumerate(zip(state, names, strict=True)):
                times.setdefault(name, []).append((time, position, token))
        return tuple(
            Life(name, *(tuple(column) for column in zip(*seen, strict=True)))
            for name, seen in sorted(times.items())
        )


def _identities(
    states: Sequence[Sequence[int]], parents: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], ...]:
    """A token keeps the number of its child; one without a child gets the next number."""
    current = tuple(range(len(states[0])))
    given, numbers = [current], len(current)
    for state, links in zip(states[1:], parents, strict=True):
        names = []
        for child in _inverse(links, len(state)):
            if child == NO_TOKEN:
                names.append(numbers)
                numbers += 1
            else:
                names.append(current[child])
        current = tuple(names)
        given.append(current)
    return tuple(given)


def _inverse(links: Sequence[int], length: int) -> tuple[int, ...]:
    children = [NO_TOKEN] * length
    for child, parent in enumerate(links):
        if parent != INSERTED:
            children[parent] = child
    return tuple(children)
