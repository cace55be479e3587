"""An endless stream of examples, any of which can be asked for by its number."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.checks import fits_in_memory, integer
from indel.vocabularies import Vocabulary

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


class BatchStream(ABC):
    """Examples x_0 numbered 0, 1, 2, … without end, in each of the splits train, valid and test.

    Example i is a pure function of (seed, split, i). So a run resumes at any number, and processes
    that each take their part of a batch see together what one process alone would see: of batch n
    of `size` examples, process r of R takes `examples(n * size + r * size // R, size // R, split)`.
    """

    vocabulary: Vocabulary
    max_length: int
    """The length of the longest x_0."""
    seed: int

    def __init__(self, vocabulary: Vocabulary, max_length: int, seed: int) -> None:
        self.vocabulary = vocabulary
        self.max_length = integer("max_length", max_length, least=1)
        self.seed = integer("seed", seed, least=0)

    @abstractmethod
    def _examples(self, start: int, count: int, split: Split) -> Batch:
        """`examples`, with arguments that have been checked."""

    def examples(self, start: int, count: int, split: Split = "train") -> Batch:
        """Examples start … start+count−1."""
        if split not in SPLITS:
            raise ValueError(f"split must be one of {', '.join(SPLITS)}; got {split!r}")
        integer("start", start, least=0)
        integer("count", count, least=1)
        integer("start + count", start + count, least=0)
        fits_in_memory(f"a batch of {count:,} sequences", count * self.max_length, bytes_each=8)
        return self._examples(start, count, split)

    def fingerprint(self) -> str:
        """A checksum that changes when the data does: of the first examples, or of all there is."""
        first = self.examples(0, 64)
        content = f"{first.lengths.tolist()} {first.tokens[first.mask].tolist()}"
        return hashlib.sha256(content.encode()).hexdigest()

    def batch(self, number: int, size: int, split: Split = "train") -> Batch:
        """Batch n: examples n·size … (n+1)·size−1."""
        integer("size", size, least=1)
        return self.examples(integer("number", number, least=0) * size, size, split)

    def batches(self, size: int, split: Split = "train", *, first: int = 0) -> Iterator[Batch]:
        """Batches first, first+1, … without end."""
        number = first
        while True:
            yield self.batch(number, size, split)
            number += 1


def whole_number(
    uniform: Float[Tensor, " batch"], choices: int | Int[Tensor, " batch"]
) -> Int[Tensor, " batch"]:
    """Map u in [0, 1) to ⌊u·n⌋ in 0…n−1, which for float64 never rounds up to n."""
    return (uniform * choices).to(torch.int64)
