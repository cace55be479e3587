"""What a process must offer to be compared: a loss, and whatever else it can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from indel.batch import Batch
from indel.data import BatchStream

LikelihoodKind = Literal["exact", "bound", "none"]


@dataclass(frozen=True)
class Drawn:
    """What a method has generated."""

    sequences: list[list[int]]
    """Token indices."""
    calls: int
    """Calls of the network for one sample; rows that are drawn side by side share them."""


@runtime_checkable
class Method(Protocol):
    """A `torch.nn.Module` that learns a distribution of sequences.

    Its stack is called `backbone`: Muon trains the matrices in it, AdamW all other weights. It is
    made by a function `build(vocabulary_size, backbone, max_length, options)` that draws the
    initial weights from torch's own generator, which the caller seeds.
    """

    name: str
    likelihood_kind: LikelihoodKind
    """What `negative_log_likelihood` is: exact, an upper bound in expectation, or nothing."""

    def loss(self, x_0: Batch, *, generator: torch.Generator) -> Float[Tensor, " batch"]:
        """What is trained, one number for each sequence."""
        ...

    def negative_log_likelihood(
        self, x_0: Batch, *, generator: torch.Generator
    ) -> Float[Tensor, " batch"] | None:
        """Nats of each sequence: exact, or an unbiased estimate of an upper bound; None: neither.

        +∞ where the method cannot make the sequence.
        """
        ...

    def generate(self, count: int, *, generator: torch.Generator) -> Drawn:
        """So many sequences."""
        ...

    def infill(
        self,
        left: list[list[int]],
        right: list[list[int]],
        lengths: list[int] | None,
        *,
        generator: torch.Generator,
    ) -> Drawn | None:
        """Whole sequences that begin with `left` and end with `right`, one for each pair.

        `lengths` are the true numbers of tokens in the gaps, None where the method is to find them
        itself. None: the method cannot do it.
        """
        ...

    def repair(self, noisy: Batch, *, generator: torch.Generator) -> Drawn | None:
        """One answer for each corrupted sequence; None: the method cannot do it."""
        ...


@runtime_checkable
class Preparing(Protocol):
    """A method of which a part is fitted to the training data before the first step."""

    def prepare(self, data: BatchStream, *, seed: int) -> None:
        """Fit what is not trained, such as a table of lengths."""
        ...
