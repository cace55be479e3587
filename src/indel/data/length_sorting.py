"""Batches of sequences of similar length, which need little padding."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from indel.batch import Batch
from indel.checks import integer
from indel.data.streams import BatchStream, Split
from indel.randomness import RowSeeds, seeds_for


class LengthSorted(BatchStream):
    """The examples of a stream in another order: each batch of `batch_size` has similar lengths.

    Examples are taken in pools of `batch_size · pool`, sorted by length inside a pool, and cut
    into batches, whose order is then shuffled. Which examples a pool holds, and so what a run
    learns from in the long run, does not change; the order is a pure function of seed and pool.
    """

    def __init__(self, stream: BatchStream, *, batch_size: int, pool: int = 16) -> None:
        super().__init__(stream.vocabulary, stream.max_length, stream.seed)
        self._stream = stream
        self._batch_size = integer("batch_size", batch_size, least=1)
        self._pool = integer("pool", pool, least=1)
        # One pool serves many batches, so the last one is kept.
        self._kept: tuple[tuple[int, Split], Batch] | None = None

    def _examples(self, start: int, count: int, split: Split) -> Batch:
        size = self._batch_size * self._pool
        parts = []
        for number in range(start // size, (start + count - 1) // size + 1):
            low, high = max(start - number * size, 0), min(start + count - number * size, size)
            parts.append(self._sorted(number, split).rows(torch.arange(low, high)))
        width = max(part.width for part in parts)
        return Batch(
            torch.cat([part.widened(width).tokens for part in parts]),
            torch.cat([part.lengths for part in parts]),
        ).trimmed()

    def _sorted(self, number: int, split: Split) -> Batch:
        if self._kept is None or self._kept[0] != (number, split):
            size = self._batch_size * self._pool
            pool = self._stream.examples(number * size, size, split)
            self._kept = (number, split), pool.rows(self._order(pool.lengths, number, split))
        return self._kept[1]

    def _order(
        self, lengths: Int[Tensor, " pool"], number: int, split: Split
    ) -> Int[Tensor, " pool"]:
        seeds = seeds_for(self.seed, f"{split} order of batches", number, 1)
        shuffled = RowSeeds(seeds).uniform(self._pool)[0].argsort(stable=True)
        by_length = lengths.argsort(stable=True).reshape(self._pool, self._batch_size)
        return by_length[shuffled].flatten()
