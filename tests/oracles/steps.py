"""One step of the forward process, as it is defined, and the life of one token under many."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class OracleStep:
    """Parameters of q(x_t | x_{t-1}): alpha, d, d', A (K x K) and pi (K); INS = K, DEL = K+1."""

    insert: float
    delete: float
    delete_inserted: float
    transition: tuple[tuple[float, ...], ...]
    inserted: tuple[float, ...]

    @property
    def vocab_size(self) -> int:
        return len(self.inserted)


@lru_cache(maxsize=1024)
def kernel(step: OracleStep) -> np.ndarray:
    """Q over K+2 tokens: (1-d) A and d, row INS (1-d') pi and d', column INS and row DEL zero."""
    size = step.vocab_size
    table = np.zeros((size + 2, size + 2))
    table[:size, :size] = (1 - step.delete) * np.array(step.transition)
    table[:size, size + 1] = step.delete
    table[size, :size] = (1 - step.delete_inserted) * np.array(step.inserted)
    table[size, size + 1] = step.delete_inserted
    table.setflags(write=False)
    return table


def step_prob(step: OracleStep, x_prev: Sequence[int], x_t: Sequence[int]) -> float:
    """q(x_t | x_{t-1}) = prod_i Q[u_i, w_i] alpha^{#INS} (1-alpha)^{|w|+1}."""
    table, ins = kernel(step), step.vocab_size
    survivors = [token for token in x_prev if token != ins + 1]
    written = [token for token in x_t if token != ins]
    if len(survivors) != len(written):
        return 0.0
    replaced = np.prod([table[pair] for pair in zip(survivors, written, strict=True)])
    inserted = step.insert ** (len(x_t) - len(written)) * (1 - step.insert) ** (len(written) + 1)
    return float(replaced * inserted)


@dataclass(frozen=True)
class Life:
    """deaths[r] = P(DEL on tape r < t), on_top[z] = P(z on tape t),

    emitted[y, z] = P(y on tape t-1 and z on tape t), zero for a token of tape t itself.
    """

    deaths: np.ndarray
    on_top: np.ndarray
    emitted: np.ndarray


def life(steps: Sequence[OracleStep], tape: int, token: int) -> Life:
    """What becomes of one `token` of x_tape until x_t, t = len(steps), or its removal."""
    dead = steps[0].vocab_size + 1
    law = np.zeros(dead + 1)
    law[token] = 1.0
    deaths = np.zeros(len(steps))
    emitted = np.zeros((dead + 1, dead + 1))
    for now in range(tape, len(steps)):
        deaths[now] = law[dead]  # steps[now] leads from tape `now` to the next: DEL ends here
        emitted = law[:, None] * kernel(steps[now])
        law = emitted.sum(axis=0)
    return Life(deaths, law, emitted)
