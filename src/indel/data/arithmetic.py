"""The paper's toy data: arithmetic sequences, generated as they are asked for."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.checks import integer
from indel.data.streams import BatchStream, Split, whole_number
from indel.randomness import RowSeeds, seeds_for
from indel.vocabularies import IntegerVocabulary


class ArithmeticData(BatchStream):
    """Sequences x_i = a ± s·i, i = 0…ℓ−1, with all terms in 2…511 and s(ℓ−1) < 509.

    Drawn in the order of the paper's text, each uniformly among what the choices before it allow:
    the step s in 1…10, the direction, the length ℓ in 32…64 with s(ℓ−1) < 509, and the start a so
    that all terms are in 2…511. So every step is equally frequent, and a step whose sequences
    must be shorter (9: ℓ ≤ 57, 10: ℓ ≤ 51) spreads over fewer lengths; drawing (s, ℓ) again until
    it fits, the other way to read the text, would make these steps rarer. The bound is strict: a
    span of 509 would just fit into 2…511, but does not occur.

    For a smaller task of the same kind change `numbers` (the vocabulary is 0…numbers−1, the terms
    are `lowest`…numbers−1, and s(ℓ−1) < numbers−1−lowest), `max_step` and the lengths.

    The splits are independent draws from this one law, as in the paper: there are only 167,970
    different sequences, and the paper trains on 51 million examples.

    >>> data = ArithmeticData(seed=0)
    >>> data.examples(0, 1).to_lists()[0][:4], round(data.exact_entropy(), 2)
    ([28, 37, 46, 55], 11.77)

    Paper: App. C.2
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        numbers: int = 512,
        lowest: int = 2,
        max_step: int = 10,
        min_length: int = 32,
        max_length: int = 64,
    ) -> None:
        super().__init__(IntegerVocabulary(integer("numbers", numbers, least=1)), max_length, seed)
        self.lowest = integer("lowest", lowest, least=0)
        self.highest = numbers - 1
        self.max_step = integer("max_step", max_step, least=1)
        # One number alone has no step: it would be the same sequence for each of them.
        self.min_length = integer("min_length", min_length, least=2)
        if min_length > max_length:
            raise ValueError(f"min_length {min_length} is above max_length {max_length}")
        if max_step * (min_length - 1) >= self._width:
            raise ValueError(
                f"min_length {min_length} with max_step {max_step} spans "
                f"{max_step * (min_length - 1)}, which must be less than {self._width} "
                f"(terms are {lowest}…{self.highest})"
            )

    @property
    def _width(self) -> int:
        return self.highest - self.lowest

    def _longest(self, step: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        """The greatest ℓ with s(ℓ−1) < highest − lowest."""
        return (1 + (self._width - 1) // step).clamp(max=self.max_length)

    def _examples(self, start: int, count: int, split: Split) -> Batch:
        noise = RowSeeds(seeds_for(self.seed, split, start, count)).uniform(4).unbind(1)
        step = 1 + whole_number(noise[0], self.max_step)
        direction = 1 - 2 * whole_number(noise[1], 2)
        length = self.min_length + whole_number(noise[2], self._longest(step) - self.min_length + 1)
        span = step * (length - 1)
        smallest = self.lowest + whole_number(noise[3], self._width + 1 - span)
        first = torch.where(direction > 0, smallest, smallest + span)
        places = torch.arange(int(length.max()))
        return Batch(first[:, None] + (direction * step)[:, None] * places, length)

    def exact_entropy(self) -> float:
        """The entropy of the data in nats, which no bound on −log p(x_0) can fall below.

        log S + log 2 + E[log #ℓ(s)] + E[log #a(s, ℓ)]: a sequence of two terms or more tells its
        step, direction, length and start, so each is produced in one way.
        """
        spread = 0.0
        for step, longest in enumerate(
            self._longest(torch.arange(1, self.max_step + 1)).tolist(), start=1
        ):
            lengths = range(self.min_length, longest + 1)
            starts = [self._width + 1 - step * (length - 1) for length in lengths]
            spread += math.log(len(lengths)) + math.fsum(map(math.log, starts)) / len(lengths)
        return math.log(2 * self.max_step) + spread / self.max_step

    def is_valid(self, batch: Batch) -> Bool[Tensor, " batch"]:
        """Whether each sequence is one that the data can hold."""
        rows = batch.widened(2)
        step = rows.tokens[:, 1] - rows.tokens[:, 0]
        size = step.abs().clamp(min=1)
        same = (rows.tokens.diff(dim=1) == step[:, None]) | ~rows.mask[:, 1:]
        inside = (rows.tokens >= self.lowest) & (rows.tokens <= self.highest) | ~rows.mask
        return (
            same.all(dim=1)
            & inside.all(dim=1)
            & (step != 0)
            & (size <= self.max_step)
            & (rows.lengths >= self.min_length)
            & (rows.lengths <= self._longest(size))
        )

    def error_rates(self, batch: Batch) -> Float[Tensor, " batch"]:
        """The share of the steps x_{i+1} − x_i of each sequence that differ from the commonest one.

        Steps have a sign. Every regular token counts as its number, 0 and 1 too; a step from or
        to anything else, such as a marker, is wrong. A sequence of fewer than two tokens has no
        steps and counts as wholly wrong, so that a model cannot look good by saying nothing.

        Paper: Table 1
        """
        rows = batch.widened(2)
        regular = (rows.tokens >= 0) & (rows.tokens < self.vocabulary.size)
        right = rows.mask[:, 1:] & regular[:, 1:] & regular[:, :-1]
        # Steps of regular tokens are −(K−1)…K−1; what is not right adds 0, wherever it is put.
        place = (rows.tokens.diff(dim=1) + self.highest).masked_fill(~right, 0)
        counts = torch.zeros(len(rows), 2 * self.vocabulary.size - 1, device=rows.device)
        counts.scatter_add_(1, place, right.to(counts.dtype))
        return 1 - counts.amax(dim=1) / (rows.lengths - 1).clamp(min=1)

    def error_rate(self, batch: Batch) -> float:
        """The mean of `error_rates` over the sequences.

        Paper: Table 1
        """
        return float(self.error_rates(batch).double().mean())
