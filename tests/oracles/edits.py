"""Edit summaries and posteriors of x_{t-1} without a cut, by the machine of `jumps`.

On the path of that machine the edits can be read off. When the token of x_0 that was read last is a
DEL on tape r < t, no level above r is asked until another token outlives tape r. If that one was
inserted, it finds this DEL on its left, past inserted DELs only: it is the replacement, and so on
until something reaches x_t. Older DELs are further left or on higher tapes, where it has its
source already. So a token of x_t has a source exactly when tokens of x_0 were read since the token
before it was written, and the source is the last of these: the numbers i and i' of tokens read,
before and after, name the edit. (`source_of_chain` is the definition; the tests compare the two.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .jumps import closure
from .steps import OracleStep, Tokens, kernel, life

State = tuple[int, int]  # tokens of x_0 read, level asked


@dataclass(frozen=True)
class OraclePosterior:
    """The law of x_{t-1}; rows are the tokens of x_t but INS, for the deletions also the end.

    prob_previous[k, y] (y regular, then INS), prob_deletions[k, n] = P(n DELs right before k),
    expected_log_step = E[log q(x_t | x_{t-1})], prob = probability of what is conditioned on.
    """

    prob_previous: np.ndarray
    prob_deletions: np.ndarray
    expected_log_step: float
    prob: float


@dataclass(frozen=True)
class _Move:
    """A silent move; `marks` if it leaves a DEL on tape t-1."""

    start: State
    end: State
    weight: float
    marks: bool


@dataclass(frozen=True)
class _Writing:
    """A move that writes x_t; emitted[y, z] by the values on tapes t-1 and t; `read` is i'."""

    start: State
    read: int
    emitted: np.ndarray


def _moves(steps: tuple[OracleStep, ...], x_0: Tokens) -> Iterator[_Move | _Writing]:
    """All moves except the insertion of INS into x_t itself."""
    top, ins = len(steps), steps[0].vocab_size
    for read in range(len(x_0) + 1):
        if read < len(x_0):
            own = life(steps, 0, x_0[read])
            yield _Writing((read, 0), read + 1, own.emitted)
            for tape in range(1, top):
                yield _Move((read, 0), (read + 1, tape), own.deaths[tape], tape == top - 1)
        for level, step in enumerate(steps, start=1):
            start, insert = (read, level), step.insert
            born = life(steps, level, ins)
            yield _Move(start, (read, level - 1), 1 - insert, False)
            yield _Writing(start, read, insert * born.emitted)
            for tape in range(level + 1, top):
                yield _Move(start, (read, tape), insert * born.deaths[tape], tape == top - 1)


@dataclass(frozen=True)
class _Machine:
    """From `before` = (i, t), i = 0...|x_0|: what happens up to the next token kept in x_t."""

    before: np.ndarray  # (i, state)
    settle: np.ndarray  # (state, state), silent moves that leave no DEL on tape t-1
    mark: np.ndarray  # (state, state), one move that leaves one
    settle_all: np.ndarray  # (state, state), any silent moves
    emit: np.ndarray  # (state, i', y, z)
    finish: np.ndarray  # (state,), 1 if x_0 is read and level 0 is asked


@lru_cache(maxsize=256)
def _machine(steps: tuple[OracleStep, ...], x_0: Tokens) -> _Machine:
    """The tables of all moves for one x_0."""
    top, ins = len(steps), steps[0].vocab_size
    shape = (len(x_0) + 1, top + 1)
    size = shape[0] * shape[1]
    quiet, mark = np.zeros((2, *shape, *shape))
    emit = np.zeros((*shape, len(x_0) + 1, ins + 2, ins + 2))
    for move in _moves(steps, x_0):
        if isinstance(move, _Writing):
            emit[*move.start, move.read] += move.emitted
        else:
            (mark if move.marks else quiet)[*move.start, *move.end] += move.weight
    states = np.eye(size).reshape(*shape, size)
    quiet, mark = quiet.reshape(size, size), mark.reshape(size, size)
    emit = emit.reshape(size, *emit.shape[2:])
    return _Machine(
        states[:, top], closure(quiet), mark, closure(quiet + mark), emit, states[-1, 0]
    )


def _check(steps: Sequence[OracleStep], x_0: Sequence[int]) -> None:
    """Edit summaries start from regular tokens, and x_{t-1} needs a step."""
    if not steps:
        raise ValueError("at least one step is needed")
    if any(not 0 <= token < steps[0].vocab_size for token in x_0):
        raise ValueError(f"x_0 = {tuple(x_0)} must hold regular tokens only")


@lru_cache(maxsize=256)
def _kept(steps: tuple[OracleStep, ...], x_0: Tokens) -> np.ndarray:
    """The weights [z, i, i'] of writing z next, which is kept or replaced and not INS."""
    machine = _machine(steps, x_0)
    return np.einsum("is,sjyz->zij", machine.before @ machine.settle_all, machine.emit)


def _writings(steps: tuple[OracleStep, ...], x_0: Tokens, x_t: Tokens) -> list[np.ndarray]:
    """For each token of x_t the weights [i, i'] of writing it next; i' = i: it is inserted."""
    ins, kept = steps[0].vocab_size, _kept(steps, x_0)
    return [steps[-1].insert * np.eye(len(x_0) + 1) if z == ins else kept[z] for z in x_t]


def edit_probs(
    steps: Sequence[OracleStep], x_0: Sequence[int], x_t: Sequence[int]
) -> dict[Tokens, float]:
    """q(x_t, a | x_0) for each `source` of positive probability; -1 = inserted."""
    if not steps:
        return {tuple(range(len(x_0))): 1.0} if tuple(x_0) == tuple(x_t) else {}
    _check(steps, x_0)
    steps, x_0, x_t = tuple(steps), tuple(x_0), tuple(x_t)
    machine = _machine(steps, x_0)
    finish = machine.before @ machine.settle_all @ machine.finish
    partial: dict[Tokens, tuple[int, float]] = {(): (0, 1.0)}
    for weights in _writings(steps, x_0, x_t):
        partial = {
            (*source, after - 1 if after > read else -1): (after, prob * weights[read, after])
            for source, (read, prob) in partial.items()
            for after in np.flatnonzero(weights[read]).tolist()
        }
    probs = {source: float(prob * finish[read]) for source, (read, prob) in partial.items()}
    return {source: prob for source, prob in probs.items() if prob > 0}


def _allowed(source: int, length: int) -> np.ndarray:
    """The pairs [i, i'] that give a token this source: i = i' or i < i' = source + 1."""
    if source == -1:
        return np.eye(length + 1)
    mask = np.zeros((length + 1, length + 1))
    mask[: source + 1, source + 1] = 1.0
    return mask


def posterior_given_edits(
    steps: Sequence[OracleStep],
    x_0: Sequence[int],
    x_t: Sequence[int],
    source: Sequence[int],
    max_deletions: int = 9,
) -> OraclePosterior:
    """q(x_{t-1} | x_t, x_0, a) for t = len(steps), a given by `source`."""
    if len(source) != len(x_t):
        raise ValueError(f"source has {len(source)} entries for {len(x_t)} tokens of x_t")
    if any(not -1 <= entry < len(x_0) for entry in source):
        raise ValueError(f"source = {tuple(source)} must hold -1 or indices into x_0 = {x_0}")
    masks = [_allowed(entry, len(x_0)) for entry in source]
    return _posterior(steps, x_0, x_t, masks, max_deletions)


def posterior_marginal(
    steps: Sequence[OracleStep],
    x_0: Sequence[int],
    x_t: Sequence[int],
    max_deletions: int = 9,
) -> OraclePosterior:
    """q(x_{t-1} | x_t, x_0) for t = len(steps), summed over all edits."""
    masks = [np.ones((len(x_0) + 1, len(x_0) + 1)) for _ in x_t]
    return _posterior(steps, x_0, x_t, masks, max_deletions)


def _posterior(
    steps: Sequence[OracleStep],
    x_0: Sequence[int],
    x_t: Sequence[int],
    masks: Sequence[np.ndarray],
    max_deletions: int,
) -> OraclePosterior:
    """Forward-backward over the number of tokens of x_0 read, one token of x_t after another."""
    _check(steps, x_0)
    steps, x_0, x_t = tuple(steps), tuple(x_0), tuple(x_t)
    machine, ins = _machine(steps, x_0), steps[0].vocab_size
    visits = machine.before @ machine.settle_all
    weights = [table * mask for table, mask in zip(_writings(steps, x_0, x_t), masks, strict=True)]
    forward = [np.eye(len(x_0) + 1)[0]]
    for table in weights:
        forward.append(forward[-1] @ table)
    backward = [visits @ machine.finish]
    for table in reversed(weights):
        backward.append(table @ backward[-1])
    backward.reverse()
    prob = float(backward[0][0])
    if prob <= 0:
        raise ValueError(f"x_t = {x_t} with these edits has probability zero given x_0 = {x_0}")

    visits_by_count = _visits_by_count(machine, max_deletions)
    previous, deletions = [], []
    for j, z in enumerate(x_t):
        if z == ins:
            continue
        through = np.outer(forward[j], backward[j + 1]) * masks[j] / prob
        emit = machine.emit[..., z]
        previous.append(np.einsum("ij,is,sjy->y", through, visits, emit, optimize=True))
        deletions.append(
            np.einsum("ij,nis,sj->n", through, visits_by_count, emit.sum(-1), optimize=True)
        )
    deletions.append(visits_by_count @ machine.finish @ forward[-1] / prob)
    prob_previous = np.reshape(previous, (-1, ins + 2))[:, :-1]  # a DEL is never kept
    return OraclePosterior(
        prob_previous, np.array(deletions), _expected_log_step(steps[-1], x_t, prob_previous), prob
    )


def _visits_by_count(machine: _Machine, max_deletions: int) -> np.ndarray:
    """Expected visits (n, i, state) after exactly n DELs on tape t-1, n = 0...max_deletions."""
    visits = [machine.before @ machine.settle]
    for _ in range(max_deletions):
        visits.append(visits[-1] @ machine.mark @ machine.settle)
    return np.array(visits)


def _expected_log_step(step: OracleStep, x_t: Tokens, prob_previous: np.ndarray) -> float:
    """#INS log alpha + (|w|+1) log(1-alpha) + sum_k sum_y P(y_k = y) log Q[y, w_k]."""
    kept = [token for token in x_t if token != step.vocab_size]
    total = (len(kept) + 1) * np.log1p(-step.insert)
    if len(kept) < len(x_t):
        total += (len(x_t) - len(kept)) * np.log(step.insert)
    for z, law in zip(kept, prob_previous, strict=True):
        possible = law > 0
        total += law[possible] @ np.log(kernel(step)[:-1, z][possible])
    return float(total)
