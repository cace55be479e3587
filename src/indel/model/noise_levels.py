"""A network that is told how noisy x_t is, instead of t: one for several numbers of steps.

A process with another T is another process, and its bound is another bound; but x_t at the same
level of noise looks much the same under each of them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from indel.process import Schedule

KNOTS = 33


def noise_levels(schedule: Schedule) -> list[float]:
    """√(1 − the share of x_0 that is still there as it was) at t = 1…T, from 0 to 1.

    The root makes the levels of the paper's schedule about evenly spaced.

    >>> [round(level, 2) for level in noise_levels(Schedule.paper(28, 4, 0.6))]
    [0.45, 0.78, 0.99, 1.0]
    """
    return [max(0.0, 1.0 - each.unchanged) ** 0.5 for each in schedule.describe()]


class NoiseLevelEmbedding(nn.Module):
    """A table of embeddings for evenly spaced levels, and straight lines between them."""

    def __init__(self, levels: Sequence[float], width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(KNOTS, width))
        self.levels = tuple(levels)

    def forward(self, index: Int[Tensor, " batch"]) -> Float[Tensor, "batch width"]:
        """The embedding of t − 1, as an embedding of the times has it."""
        levels = torch.tensor(self.levels, dtype=self.weight.dtype, device=index.device)
        place = levels[index] * (KNOTS - 1)
        low = place.floor().clamp_max(KNOTS - 2)
        return torch.lerp(
            self.weight[low.long()], self.weight[low.long() + 1], (place - low)[:, None]
        )

    def at(self, levels: Sequence[float]) -> NoiseLevelEmbedding:
        """The same weights for the levels of another process."""
        other = copy.copy(self)
        other.levels = tuple(levels)
        return other
