"""What step n trains on: a pure function of seed and n, of which each process takes its part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.bound.times import TimeDistribution
from indel.data import BatchStream
from indel.randomness import RowSeeds, seeds_for


class Times(NamedTuple):
    """The times of the rows of a whole batch."""

    t: Int[Tensor, " batch"]
    weight: Float[Tensor, " batch"]
    """Of the term at t."""


class MicroBatch(NamedTuple):
    """Data, times and noise of some rows of a batch."""

    x_0: Batch
    t: Int[Tensor, " rows"]
    weight: Float[Tensor, " rows"]
    """Of the term at t."""
    noise: RowSeeds


@dataclass(frozen=True)
class BatchPlan:
    """How the batches are cut: process r of R takes its slice, in a number of micro-batches.

    Everything is drawn for row i of batch n, whichever process has it: so two processes do
    together what one would do alone.
    """

    data: BatchStream
    batch_size: int
    accumulate: int
    seed: int
    process: int
    num_processes: int

    def __post_init__(self) -> None:
        pieces = self.accumulate * self.num_processes
        if self.batch_size % pieces:
            raise ValueError(
                f"training.batch_size must be a multiple of {pieces} ({self.num_processes} "
                f"processes × training.accumulate = {self.accumulate}), got {self.batch_size}"
            )

    @property
    def rows(self) -> int:
        """The rows of one process."""
        return self.batch_size // self.num_processes

    def times(self, number: int, distribution: TimeDistribution) -> Times:
        """t of the whole batch, stratified over all of it, and their weights."""
        seeds = self._seeds("training times", number * self.batch_size, self.batch_size)
        return Times(*distribution.draw(self.batch_size, generator=RowSeeds(seeds)))

    def micro_batches(self, number: int, times: Times, *, device: torch.device) -> list[MicroBatch]:
        """What this process trains on in step n, cut up."""
        t, weight = times
        count = self.rows // self.accumulate
        pieces = []
        for piece in range(self.accumulate):
            low = self.process * self.rows + piece * count
            part, first = slice(low, low + count), number * self.batch_size + low
            x_0 = self.data.examples(first, count, "train").trimmed()
            noise = RowSeeds(self._seeds("training noise", first, count).to(device))
            pieces.append(
                MicroBatch(x_0.to(device), t[part].to(device), weight[part].to(device), noise)
            )
        return pieces

    def step_seed(self, number: int) -> int:
        """The seed of torch's own generator, which dropout reads, in step n of this process."""
        place = number * self.num_processes + self.process
        return int(self._seeds("training dropout", place, 1))

    def _seeds(self, purpose: str, start: int, count: int) -> Int[Tensor, " {count}"]:
        return seeds_for(self.seed, purpose, start, count)
