"""Chains x_0, x_1, ..., x_t one by one: slow, cut at a probability, and plainly right."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .jumps import Reader, jump_prob, reader
from .steps import OracleStep, Tokens, kernel, step_prob


def _anything(vocab_size: int) -> Reader:
    """A future that asks for nothing: its probability is 1 whatever is read."""
    return Reader(np.ones(1), np.ones((vocab_size + 2, 1, 1)))


def _successors(step: OracleStep, x: Tokens, future: Reader, floor: float) -> Iterator[Tokens]:
    """All x_s with q(x_s | x) q(x_t | x_s) >= floor > 0, x_t being what `future` asks for."""
    table, ins = kernel(step), step.vocab_size
    survivors = [token for token in x if token != ins + 1]

    def extend(done: Tokens, used: int, prob: float, written: np.ndarray) -> Iterator[Tokens]:
        # The cases j of written[j] exclude each other: their sum bounds the future.
        if prob * written.sum() < floor:
            return
        yield from extend((*done, ins), used, prob * step.insert, written @ future.by_token[ins])
        stop = prob * (1 - step.insert)
        if used < len(survivors):
            for token, weight in enumerate(table[survivors[used]]):
                longer = written @ future.by_token[token]
                yield from extend((*done, token), used + 1, stop * weight, longer)
        elif stop * written[-1] >= floor:
            yield done

    return extend((), 0, 1.0, future.start)


def push_forward(step: OracleStep, law: Mapping[Tokens, float], cut: float) -> dict[Tokens, float]:
    """The law of x_t from that of x_{t-1}, without pairs below `cut`; 1 - its sum is lost."""
    pushed: dict[Tokens, float] = {}
    future = _anything(step.vocab_size)
    for x, prob in law.items():
        for x_t in _successors(step, x, future, cut / prob):
            pushed[x_t] = pushed.get(x_t, 0.0) + prob * step_prob(step, x, x_t)
    return pushed


@dataclass(frozen=True)
class ChainList:
    """chains = ((x_0, ..., x_t), probability); lost = q(x_t | x_0) - the sum of these."""

    chains: tuple[tuple[tuple[Tokens, ...], float], ...]
    lost: float


def enumerate_chains(
    steps: Sequence[OracleStep], x_0: Sequence[int], x_t: Sequence[int], cut: float = 1e-12
) -> ChainList:
    """All chains from x_0 to x_t, except those with a beginning such that

    q(x_1 | x_0) ... q(x_s | x_{s-1}) q(x_t | x_s) < cut
    """
    if not steps:
        raise ValueError("at least one step is needed")
    steps, target = tuple(steps), tuple(x_t)
    beginnings = [((tuple(x_0),), 1.0)]
    for s, step in enumerate(steps[:-1], start=1):
        future = reader(steps[s:], target)
        beginnings = [
            ((*chain, x), prob * step_prob(step, chain[-1], x))
            for chain, prob in beginnings
            for x in _successors(step, chain[-1], future, cut / prob)
        ]
    chains = tuple(
        ((*chain, target), prob * step_prob(steps[-1], chain[-1], target))
        for chain, prob in beginnings
    )
    return ChainList(chains, jump_prob(steps, x_0, x_t) - sum(prob for _, prob in chains))


def source_of_chain(chain: Sequence[Tokens], vocab_size: int) -> Tokens:
    """The edit summary of one chain: for each token of x_t its index in x_0, -1 = inserted."""
    source = tuple(range(len(chain[0])))
    for before, after in pairwise(chain):
        passed_on = iter(_passed_on(before, source, vocab_size + 1))
        source = tuple(-1 if token == vocab_size else next(passed_on) for token in after)
    return source


def _passed_on(x: Tokens, source: Tokens, dead: int) -> list[int]:
    """The sources that the tokens of x other than DEL hand to the next step.

    One without a source takes that of the DEL on its left, past DELs without a source.
    """
    passed_on, offered = [], -1
    for token, own in zip(x, source, strict=True):
        if token == dead:
            offered = own if own >= 0 else offered
        else:
            passed_on.append(own if own >= 0 else offered)
            offered = -1
    return passed_on
