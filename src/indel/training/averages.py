"""A moving average of the weights, which is usually a better model than the last weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """EMA: a ← d·a + (1−d)·w after each step, d = min(decay, (1+n)/(10+n)) after n updates.

    The smaller d of the first updates lets the average forget the untrained weights.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"decay must lie in [0, 1), got {decay!r}")
        self.decay = decay
        self.updates = 0
        self._weights = list(model.parameters())
        self.averages: list[Tensor] = [weight.detach().clone() for weight in self._weights]

    @torch.no_grad()
    def update(self) -> None:
        """Take in the model's weights."""
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        torch._foreach_lerp_(self.averages, [w.detach() for w in self._weights], 1.0 - decay)
        self.updates += 1

    @torch.no_grad()
    def restart(self) -> None:
        """Let the model's weights of now be the average."""
        torch._foreach_copy_(self.averages, [w.detach() for w in self._weights])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model has the average as its weights inside of this block."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for weight, average in zip(self._weights, self.averages, strict=True):
            kept = weight.detach().clone()
            weight.copy_(average)
            average.copy_(kept)
