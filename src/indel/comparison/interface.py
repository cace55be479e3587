"""What every method of the comparison offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from indel.batch import Batch


@dataclass(frozen=True)
class Drawn:
    """What a method has generated."""

    sequences: list[list[int]]
    """Token indices."""
    calls: int
    """Network calls for the whole batch."""


class Method(Protocol):
    """A `torch.nn.Module` that learns sequences, and what it can do with them."""

    name: str
    likelihood_kind: Literal["exact", "bound", "none"]

    def loss(self, x_0: Batch, *, generator: torch.Generator) -> Float[Tensor, " batch"]:
        """What is trained, one number per sequence."""
        ...

    def negative_log_likelihood(
        self, x_0: Batch, *, generator: torch.Generator
    ) -> Float[Tensor, " batch"] | None:
        """Exact, or an unbiased estimate of an upper bound, in nats; None: the method has none."""
        ...

    def generate(self, count: int, *, generator: torch.Generator) -> Drawn:
        """New sequences."""
        ...

    def infill(
        self,
        left: list[list[int]],
        right: list[list[int]],
        lengths: list[int] | None,
        *,
        generator: torch.Generator,
    ) -> Drawn | None:
        """Full sequences; lengths are the true numbers of tokens of the gaps. None: it cannot."""
        ...

    def repair(self, noisy: Batch, *, generator: torch.Generator) -> Drawn | None:
        """One answer for each corrupted sequence. None: it cannot."""
        ...
