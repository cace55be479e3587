"""Swaps of neighbors before the forward process: q∘S, for people who type letters out of order.

S reads a sequence from left to right. At each token but the last it swaps it with the next one with
a fixed probability and goes on after both; otherwise it copies it. To q alone a swap is a deletion
and an insertion, which is far too unlikely.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.process.lattice import Lattice
from indel.process.probabilities import check_pair
from indel.process.schedules import Schedule
from indel.process.transducers import EPSILON, Arc, Transducer, Weight


def swap_transducer(vocab_size: int, prob: Weight) -> Transducer:
    """S as a machine; composed with the machine of a jump it is q∘S.

    copy: 1−s : x ↦ x and s : x ↦ ε to (x, held);  (x, held): 1 : y ↦ y to (x, owed), or
    1 : ε ↦ x to the end;  (x, owed): 1 : ε ↦ x to copy
    """
    arcs = []
    for x in range(vocab_size):
        held, owed = (x, "held"), (x, "owed")
        arcs += [
            Arc("copy", "copy", (x, x), 1 - prob),
            Arc("copy", held, (x, EPSILON), prob),
            Arc(held, "end", (EPSILON, x), 1),
            Arc(owed, "copy", (EPSILON, x), 1),
            *(Arc(held, owed, (y, y), 1) for y in range(vocab_size)),
        ]
    return Transducer("copy", frozenset({"copy", "end"}), tuple(arcs), (vocab_size, vocab_size))


def log_prob_swapped(
    schedule: Schedule, x_0: Batch, x_t: Batch, t: Int[Tensor, " batch"] | int, *, swap: float
) -> Float[Tensor, " batch"]:
    """log Σ_u S(u | x_0) q(x_t | u), by one pass over x_0.

    V_i[j] is the weight of all ways to have read i tokens and written j, ready to read. Reading x
    is a linear map R_x, and V_{i+1} = (1−s) R_{x_{i+1}} V_i + s R_{x_i} R_{x_{i+1}} V_{i−1}, where
    1−s is 1 at the last token.
    """
    if not 0 <= swap < 1:
        raise ValueError(f"swap must be at least 0 and below 1, got {swap}")
    times = check_pair(schedule, x_0, x_t, t, first=0)
    reading = _Reading(Lattice.of(schedule, x_0, x_t, times))
    rows = torch.arange(len(x_0), device=x_0.device)
    before, now = None, reading.start()
    total = now[rows, x_t.lengths]
    for i in range(x_0.width):
        last = x_0.lengths == i + 1
        copied = reading.read(now, i)
        following = torch.where(last[:, None], copied, copied + math.log1p(-swap))
        if before is not None and swap:
            swapped = reading.read(reading.read(before, i), i - 1) + math.log(swap)
            following = torch.logaddexp(following, swapped)
        before, now = now, following
        total = torch.where(last, now[rows, x_t.lengths], total)
    return total


class _Reading:
    """R_x in log space: to read a token is to delete it, or to replace it and then insert some."""

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        # What it takes to insert the first j tokens of x_t. Padding is never read off: any number.
        insert = lattice.log_insert.masked_fill(lattice.log_insert == -torch.inf, 0.0)
        self.possible = lattice.log_insert > -torch.inf
        self.inserted = torch.nn.functional.pad(insert.cumsum(dim=1), (1, 0))

    def start(self) -> Float[Tensor, "batch written"]:
        """Nothing is read, and any number of tokens inserted."""
        nothing = torch.full_like(self.inserted, -torch.inf)
        nothing[:, 0] = 0.0
        return self._insert(nothing) + self.lattice.log_stop[:, None]

    def read(
        self, ready: Float[Tensor, "batch written"], place: int
    ) -> Float[Tensor, "batch written"]:
        """Read the token at a place of x_0."""
        replaced = ready[:, :-1] + self.lattice.log_replace[:, place]
        replaced = torch.nn.functional.pad(replaced, (1, 0), value=-torch.inf)
        stopped = self._insert(replaced) + self.lattice.log_stop[:, None]
        return torch.logaddexp(stopped, ready + self.lattice.log_delete[:, None])

    def _insert(self, written: Float[Tensor, "batch written"]) -> Float[Tensor, "batch written"]:
        """Σ_{k ≤ j} of what is written up to k and the tokens k+1…j inserted."""
        if bool(self.possible.all()):
            return torch.logcumsumexp(written - self.inserted, dim=1) + self.inserted
        columns = [written[:, 0]]
        for j in range(1, written.shape[1]):
            more = columns[-1] + self.lattice.log_insert[:, j - 1]
            columns.append(torch.logaddexp(written[:, j], more))
        return torch.stack(columns, dim=1)
