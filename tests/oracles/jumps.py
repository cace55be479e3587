"""q(x_t | x_0) without a cut: all t one-step machines at once, none of them eliminated.

Each one-step machine reads tape s-1 and writes tape s. Let each ask the one before it for a token
only when it needs one. Then a chain x_0, ..., x_t fixes every move, so that paths are chains, and
all that has to be remembered is the `level` s of the machine that is asked:

    level s > 0   with alpha_s it writes INS on tape s, with 1-alpha_s it asks level s-1
    level 0       the next token of x_0 is read; the chain ends if there is none
    a token that was written lives through the tapes above; it is a DEL on some tape r < t, which
    step r+1 removes and asks level r again, or it reaches tape t, and level t is asked again.

With x_t given, count the tokens of it that are written, too. All moves between two readings of x_0
form a linear system over (written, level), and each token of x_0 becomes one small matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .steps import OracleStep, Tokens, life


def closure(moves: np.ndarray) -> np.ndarray:
    """(I - S)^{-1} = I + S + S^2 + ...: any number of moves."""
    size = len(moves)
    # Columns of the transpose are diagonally dominant: no pivoting, so true zeros stay zero.
    return np.linalg.solve((np.eye(size) - moves).T, np.eye(size)).T


@dataclass(frozen=True)
class Reader:
    """How x_t arises while x_0 is read: start (j) and by_token (x, j, j').

    start[j] = P(x_t[:j] is written when x_0 is asked for a token for the first time),
    by_token[x, j, j'] = P(x_t[:j'] is written when it is asked next | x_t[:j] before reading x),
    q(x_t | x_0) = [start @ by_token[x_0[0]] @ by_token[x_0[1]] ...]_{|x_t|}
    """

    start: np.ndarray
    by_token: np.ndarray


@lru_cache(maxsize=1024)
def reader(steps: tuple[OracleStep, ...], x_t: Tokens) -> Reader:
    """The machine of all steps for one x_t and any x_0."""
    top, ins = len(steps), steps[0].vocab_size
    asked = _asked(steps, x_t)
    by_token = np.zeros((ins + 2, len(x_t) + 1, len(x_t) + 1))
    for x in range(ins + 2):
        own = life(steps, 0, x)
        by_token[x] = np.einsum("r,jrk->jk", own.deaths, asked[:, :top])
        for j, z in enumerate(x_t):
            by_token[x, j] += own.on_top[z] * asked[j + 1, top]
    return Reader(asked[0, top], by_token)


def _asked(steps: tuple[OracleStep, ...], x_t: Tokens) -> np.ndarray:
    """P(x_0 is asked with j' written | level s asked with j written), as an array (j, s, j')."""
    top, ins = len(steps), steps[0].vocab_size
    shape = (len(x_t) + 1, top + 1)
    moves = np.zeros(shape + shape)
    for level, step in enumerate(steps, start=1):
        born = life(steps, level, ins)
        for j in range(len(x_t) + 1):
            moves[j, level, j, level - 1] = 1 - step.insert
            moves[j, level, j, :top] += step.insert * born.deaths
        for j, z in enumerate(x_t):
            moves[j, level, j + 1, top] = step.insert * born.on_top[z]
    size = moves[0, 0].size
    return closure(moves.reshape(size, size)).reshape(shape + shape)[..., 0]


def jump_prob(steps: Sequence[OracleStep], x_0: Sequence[int], x_t: Sequence[int]) -> float:
    """q(x_t | x_0), the sum over all x_1, ..., x_{t-1}; x_0 may hold INS and DEL as well."""
    if not steps:
        return float(tuple(x_0) == tuple(x_t))
    machine = reader(tuple(steps), tuple(x_t))
    written = machine.start
    for x in x_0:
        written = written @ machine.by_token[x]
    return float(written[-1])


def jump_parameters(
    steps: Sequence[OracleStep], vocab_size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """insert (K+2), delete (K), replace (K, K+2), read off q on sequences of at most one token.

    stop = q(()|()), insert[z] = q(z|())/stop, delete[x] = q(()|x)/stop,
    replace[x,z] = (q(z|x) - insert[z] stop delete[x]) / stop^2
    """
    regular, tokens = range(vocab_size), range(vocab_size + 2)
    stop = jump_prob(steps, (), ())
    insert = np.array([jump_prob(steps, (), (z,)) for z in tokens]) / stop
    delete = np.array([jump_prob(steps, (x,), ()) for x in regular]) / stop
    both = np.array([[jump_prob(steps, (x,), (z,)) for z in tokens] for x in regular])
    return insert, delete, (both - stop * np.outer(delete, insert)) / stop**2
