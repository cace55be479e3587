"""The composition of two transducers: what one writes, the other reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from indel.process.transducers import EPSILON, Arc, Label, State, Transducer, Weight


class _Pair(NamedTuple):
    """A state of a composition; `second_waits`: the first machine has moved alone since the last
    token that both shared, and until the next one the second must not move alone."""

    first: State
    second: State
    second_waits: bool


def compose(first: Transducer, second: Transducer) -> Transducer:
    """Feed the last tape of `first` to the first tape of `second` and keep all tapes.

    q(x_t, x_{t−1} | x_0) = q(x_{t−1} | x_0) · q(x_t | x_{t−1})

    Each state is a pair (state of first, state of second).

    Paper: Fig. 5
    """
    if first.tape_sizes[-1] != second.tape_sizes[0]:
        raise ValueError(
            f"the shared tape has {first.tape_sizes[-1]} tokens where it is written "
            f"and {second.tape_sizes[0]} where it is read"
        )
    start = _Pair(first.initial, second.initial, False)
    arcs: list[Arc] = []
    found, waiting = {start}, deque([start])
    while waiting:
        pair = waiting.popleft()
        for arc, target in _moves(pair, first, second):
            arcs.append(arc)
            if target not in found:
                found.add(target)
                waiting.append(target)
    accepting = frozenset(
        pair for pair in found if pair.first in first.accepting and pair.second in second.accepting
    )
    sizes = first.tape_sizes + second.tape_sizes[1:]
    return _short_names(Transducer(start, accepting, tuple(arcs), sizes).trimmed())


def _moves(pair: _Pair, first: Transducer, second: Transducer) -> Iterator[tuple[Arc, _Pair]]:
    """The moves of the pair: together on a shared token, or one machine alone on ε.

    Why each pair of paths is counted once: what both paths share are the tokens on the middle tape.
    Between two such tokens the lone moves of the two machines could be interleaved in many ways,
    all with the same labels and weight. Only one order is allowed: first all lone moves of
    `second`, then all lone moves of `first`. This order, rather than the opposite one,
    leaves the three states of the paper.
    """
    first_rests = (EPSILON,) * len(first.tape_sizes)
    second_rests = (EPSILON,) * (len(second.tape_sizes) - 1)

    def move(a: State, b: State, waits: bool, label: Label, w: Weight) -> tuple[Arc, _Pair]:
        target = _Pair(a, b, waits)
        return Arc(pair, target, label, w), target

    for arc in second.outgoing(pair.second):
        if arc.label[0] is EPSILON and not pair.second_waits:
            yield move(pair.first, arc.target, False, first_rests + arc.label[1:], arc.weight)
    for arc in first.outgoing(pair.first):
        if arc.label[-1] is EPSILON:
            yield move(arc.target, pair.second, True, arc.label + second_rests, arc.weight)
            continue
        for reader in second.outgoing(pair.second):
            if reader.label[0] == arc.label[-1]:
                label = arc.label + reader.label[1:]
                yield move(arc.target, reader.target, False, label, arc.weight * reader.weight)


def _short_names(composed: Transducer) -> Transducer:
    """Drop `second_waits` from the names where it does not tell two states apart."""
    pairs = [state for state in composed.states if isinstance(state, _Pair)]
    names = [(pair.first, pair.second) for pair in pairs]
    return composed.renamed(
        {
            pair: name if names.count(name) == 1 else tuple(pair)
            for pair, name in zip(pairs, names, strict=True)
        }
    )
