"""Probabilistic finite-state transducers on any number of tapes, with weights of any number type.

Weights need + − * / only, so the same code derives a process with floats, with exact fractions or
with sympy expressions. Nothing here knows about insertions and deletions: the machines of the
paper are in `indel.process.edit_transducers`, and `indel.process.composition` chains machines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from numbers import Real
from typing import Any, Final, TypeAlias

EPSILON: Final = None

State: TypeAlias = Hashable
Label: TypeAlias = tuple[int | None, ...]
# Any: float, Fraction and sympy.Expr share the operators but no base class or protocol.
Weight: TypeAlias = Any


@dataclass(frozen=True)
class Arc:
    """One transition "weight : x ↦ y ↦ …" between two states, with one label entry per tape.

    Paper: App. B.1
    """

    source: State
    target: State
    label: Label
    weight: Weight


@dataclass(frozen=True)
class Transducer:
    """A weighted machine that reads and writes `len(tape_sizes)` tapes in step.

    Tape i carries the tokens 0…tape_sizes[i]−1. Parallel arcs with equal labels are added up and
    arcs of weight zero are left out, so that two machines which do the same have the same arcs.

    Paper: App. B.1

    >>> coin = Transducer("s", frozenset("s"), (Arc("s", "s", (0, 1), 0.5),), tape_sizes=(1, 2))
    >>> coin.probability([0, 0], [1, 1])
    0.25
    """

    initial: State
    accepting: frozenset[State]
    arcs: tuple[Arc, ...]
    tape_sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        for arc in self.arcs:
            _check_label(arc.label, self.tape_sizes)
        object.__setattr__(self, "arcs", _merge_parallel(self.arcs))

    @cached_property
    def states(self) -> tuple[State, ...]:
        """All states, the initial one first and then as the arcs mention them."""
        mentioned = (state for arc in self.arcs for state in (arc.source, arc.target))
        return tuple(dict.fromkeys([self.initial, *mentioned, *self.accepting]))

    @cached_property
    def _weights(self) -> dict[tuple[State, State, Label], Weight]:
        return {(arc.source, arc.target, arc.label): arc.weight for arc in self.arcs}

    @cached_property
    def _outgoing(self) -> dict[State, list[Arc]]:
        outgoing: dict[State, list[Arc]] = {state: [] for state in self.states}
        for arc in self.arcs:
            outgoing[arc.source].append(arc)
        return outgoing

    def weight(self, source: State, target: State, label: Label) -> Weight:
        """The weight of the arc from `source` to `target` with this label, 0 if there is none."""
        _check_label(label, self.tape_sizes)
        return self._weights.get((source, target, label), 0)

    def outgoing(self, state: State) -> tuple[Arc, ...]:
        """The arcs that leave a state."""
        self._check_state(state)
        return tuple(self._outgoing[state])

    def renamed(self, names: Mapping[State, State]) -> Transducer:
        """The same machine with other names for some of its states."""
        new = {state: names.get(state, state) for state in self.states}
        if len(set(new.values())) < len(new):
            raise ValueError(f"two states would get the same name: {new}")
        return Transducer(
            new[self.initial],
            frozenset(new[state] for state in self.accepting),
            tuple(Arc(new[a.source], new[a.target], a.label, a.weight) for a in self.arcs),
            self.tape_sizes,
        )

    def trimmed(self) -> Transducer:
        """The machine without the states that lie on no path from the start to acceptance."""
        ahead: dict[State, set[State]] = defaultdict(set)
        back: dict[State, set[State]] = defaultdict(set)
        for arc in self.arcs:
            ahead[arc.source].add(arc.target)
            back[arc.target].add(arc.source)
        useful = _reachable([self.initial], ahead) & _reachable(self.accepting, back)
        if self.initial not in useful:
            raise ValueError("no path from the initial state to an accepting state has weight > 0")
        arcs = tuple(a for a in self.arcs if a.source in useful and a.target in useful)
        return Transducer(self.initial, self.accepting & useful, arcs, self.tape_sizes)

    def marginalize(self, tape: int) -> Transducer:
        """Sum over everything that may be written on one tape.

        q(x_t | x_0) = Σ_{x_{t−1}} q(x_t, x_{t−1} | x_0)

        Paper: Fig. 6
        """
        if not 0 <= tape < len(self.tape_sizes) or len(self.tape_sizes) == 1:
            raise ValueError(
                f"tape must be one of 0…{len(self.tape_sizes) - 1} and not the only one, got {tape}"
            )
        arcs = tuple(
            Arc(a.source, a.target, a.label[:tape] + a.label[tape + 1 :], a.weight)
            for a in self.arcs
        )
        sizes = self.tape_sizes[:tape] + self.tape_sizes[tape + 1 :]
        return Transducer(self.initial, self.accepting, arcs, sizes)

    def paths_through(self, state: State) -> tuple[Arc, ...]:
        """The arcs that stand for all paths through a silent state, one for each way in and out.

        in · 1/(1 − loop) · out

        Applied to the middle state of Fig. 6 these are the new transitions S^A_A → S^A_A (6),
        S^A_A → S^B_B (7), S^B_B → S^B_B (8) and S^B_B → S^A_A (9).

        Paper: Eq. (6), Eq. (7), Eq. (8), Eq. (9)
        """
        self._check_silent(state)
        repeated = geometric_series(self.weight(state, state, self._silence))
        return tuple(
            Arc(
                before.source,
                after.target,
                _join(before.label, after.label),
                before.weight * repeated * after.weight,
            )
            for before in self.arcs
            if before.target == state != before.source
            for after in self.outgoing(state)
            if after.target != state
        )

    def eliminate(self, state: State) -> Transducer:
        """Remove a silent state without a change to what the machine reads and writes.

        Each arc between two other states gains the paths through the removed state.

        Paper: App. B.2
        """
        paths = self.paths_through(state)
        kept = tuple(a for a in self.arcs if state not in (a.source, a.target))
        return Transducer(self.initial, self.accepting, kept + paths, self.tape_sizes)

    def probability(self, *sequences: Sequence[int]) -> Weight:
        """The total weight of all accepting paths that carry these sequences on the tapes.

        A sum over positions in the tapes in lexicographic order; the ε moves at one position, of
        which there may be infinitely many in a row, are summed in closed form.

        Paper: App. B.1
        """
        self._check_sequences(sequences)
        silent = self._silent_paths
        reached: dict[tuple[int, ...], dict[State, Weight]] = {}
        for position in product(*(range(len(sequence) + 1) for sequence in sequences)):
            arrivals: dict[State, Weight] = {} if any(position) else {self.initial: 1}
            for earlier, label in _last_moves(position, sequences):
                for arc in self._arcs_by_label.get(label, ()):
                    moved = reached[earlier][arc.source] * arc.weight
                    arrivals[arc.target] = arrivals.get(arc.target, 0) + moved
            reached[position] = {
                state: sum(weight * silent[origin][state] for origin, weight in arrivals.items())
                for state in self.states
            }
        end = tuple(len(sequence) for sequence in sequences)
        return sum(reached[end][state] for state in self.accepting)

    @property
    def _silence(self) -> Label:
        return (EPSILON,) * len(self.tape_sizes)

    @cached_property
    def _arcs_by_label(self) -> dict[Label, list[Arc]]:
        by_label: dict[Label, list[Arc]] = defaultdict(list)
        for arc in self.arcs:
            by_label[arc.label].append(arc)
        return by_label

    @cached_property
    def _silent_paths(self) -> dict[State, dict[State, Weight]]:
        """The total weight of all all-ε paths between two states: (I − E)⁻¹.

        Kleene's algorithm: one state after the other is allowed as a stop on the way. This solves
        the linear system with the same series as `eliminate`, so it needs no pivots and
        works for symbols.
        """
        total = {
            source: {target: self.weight(source, target, self._silence) for target in self.states}
            for source in self.states
        }
        for stop in self.states:
            repeated = geometric_series(total[stop][stop])
            total = {
                source: {
                    target: row[target] + row[stop] * repeated * total[stop][target]
                    for target in self.states
                }
                for source, row in total.items()
            }
        for state in self.states:
            total[state][state] += 1
        return total

    def _check_state(self, state: State) -> None:
        if state not in self._outgoing:
            raise ValueError(f"no state {state!r}; the states are {self.states}")

    def _check_silent(self, state: State) -> None:
        self._check_state(state)
        if state == self.initial or state in self.accepting:
            raise ValueError(f"cannot eliminate {state!r}: it is the initial or an accepting state")
        for arc in self.outgoing(state):
            if arc.target == state and arc.label != self._silence:
                raise ValueError(
                    f"cannot eliminate {state!r}: its loop {format_label(arc.label)} is not all "
                    "ε, so that repeating it would read or write more and more tokens"
                )

    def _check_sequences(self, sequences: tuple[Sequence[int], ...]) -> None:
        if len(sequences) != len(self.tape_sizes):
            raise ValueError(f"got {len(sequences)} sequences for {len(self.tape_sizes)} tapes")
        for sequence, size in zip(sequences, self.tape_sizes, strict=True):
            for token in sequence:
                _check_label((token,), (size,))


def geometric_series(loop: Weight) -> Weight:
    """The total weight of taking a loop any number of times.

    Σ_{n≥0} loopⁿ = 1 / (1 − loop)

    Paper: Eq. (5)
    """
    if loop == 1 or (is_number(loop) and not 0 <= loop < 1):
        raise ValueError(f"a loop that reads and writes nothing needs a weight < 1, got {loop}")
    # Without the division, exact whole numbers stay exact.
    return 1 if loop == 0 else 1 / (1 - loop)


def is_number(weight: Weight) -> bool:
    """Whether a weight is a number that can be compared, not a symbol."""
    return isinstance(weight, Real)


def format_label(label: Label) -> str:
    """A label as the paper writes it.

    >>> format_label((3, EPSILON))
    '3 ↦ ε'
    """
    return " ↦ ".join("ε" if token is EPSILON else str(token) for token in label)


def _join(before: Label, after: Label) -> Label:
    """The label of two arcs taken one after the other."""
    for earlier, later in zip(before, after, strict=True):
        if earlier is not EPSILON and later is not EPSILON:
            raise ValueError(
                f"cannot join {format_label(before)} and {format_label(after)}: "
                "one arc carries at most one token per tape"
            )
    pairs = zip(before, after, strict=True)
    return tuple(later if earlier is EPSILON else earlier for earlier, later in pairs)


def _last_moves(
    position: tuple[int, ...], sequences: tuple[Sequence[int], ...]
) -> Iterator[tuple[tuple[int, ...], Label]]:
    """Each way to arrive at a position by one arc that carries at least one token."""
    for advance in product((0, 1), repeat=len(position)):
        earlier = tuple(p - a for p, a in zip(position, advance, strict=True))
        if any(advance) and min(earlier) >= 0:
            moved = zip(sequences, earlier, advance, strict=True)
            yield earlier, tuple(int(seq[p]) if a else EPSILON for seq, p, a in moved)


def _merge_parallel(arcs: Iterable[Arc]) -> tuple[Arc, ...]:
    total: dict[tuple[State, State, Label], Weight] = {}
    for arc in arcs:
        key = (arc.source, arc.target, arc.label)
        total[key] = total[key] + arc.weight if key in total else arc.weight
    return tuple(Arc(*key, weight) for key, weight in total.items() if weight != 0)


def _reachable(starts: Iterable[State], edges: Mapping[State, set[State]]) -> set[State]:
    found = set(starts)
    waiting = list(found)
    while waiting:
        new = edges.get(waiting.pop(), set()) - found
        found |= new
        waiting.extend(new)
    return found


def _check_label(label: Label, tape_sizes: tuple[int, ...]) -> None:
    if len(label) != len(tape_sizes):
        raise ValueError(f"label {format_label(label)} needs one entry for each of {tape_sizes}")
    for token, size in zip(label, tape_sizes, strict=True):
        if token is not EPSILON and not 0 <= token < size:
            raise ValueError(f"token {token} must lie in 0…{size - 1}")
