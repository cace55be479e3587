"""Methods of the comparison that are built in milliseconds, and one that knows the answers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from indel import Batch
from indel.comparison.interface import Drawn, LikelihoodKind, Method
from indel.comparison.registry import build_method
from indel.model.rotary import RotaryConfig

STACK = RotaryConfig(width=16, num_layers=1, num_heads=2, head_width=8, feedforward_width=32)


def small_method(name: str, size: int, max_length: int, *, steps: int = 4, seed: int = 0) -> Method:
    """A method with random weights, larger than at the start: its predictions differ."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        method = build_method(name, size, STACK, max_length, num_steps=steps)
        assert isinstance(method, nn.Module)
        with torch.no_grad():
            for weight in method.parameters():
                weight.add_(0.5 * torch.randn(weight.shape))
    method.eval()
    return method


class Knowing(nn.Module):
    """Answers with given sequences, so that what is measured of them is known."""

    name = "knowing"

    def __init__(
        self,
        samples: list[list[int]],
        *,
        filled: list[list[int]] | None = None,
        repaired: list[list[int]] | None = None,
        likelihood_kind: LikelihoodKind = "none",
    ) -> None:
        super().__init__()
        self.samples, self.filled, self.repaired = samples, filled, repaired
        self.likelihood_kind = likelihood_kind

    def loss(self, x_0: Batch, *, generator: torch.Generator) -> Tensor:
        return torch.zeros(len(x_0))

    def negative_log_likelihood(self, x_0: Batch, *, generator: torch.Generator) -> Tensor | None:
        """A bit per token."""
        if self.likelihood_kind == "none":
            return None
        return x_0.lengths.double() * torch.tensor(2.0).log()

    def generate(self, count: int, *, generator: torch.Generator) -> Drawn:
        return Drawn([self.samples[i % len(self.samples)] for i in range(count)], 3)

    def infill(
        self,
        left: list[list[int]],
        right: list[list[int]],
        lengths: list[int] | None,
        *,
        generator: torch.Generator,
    ) -> Drawn | None:
        return None if self.filled is None or lengths is None else Drawn(self.filled, 5)

    def repair(self, noisy: Batch, *, generator: torch.Generator) -> Drawn | None:
        return None if self.repaired is None else Drawn(self.repaired, 7)
