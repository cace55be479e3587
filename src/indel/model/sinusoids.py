"""Embeddings of integers to start from, in which near numbers are near."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

# Numbers that differ by one are told apart by the fastest waves, all of them by the slowest.
SHORTEST_WAVE = 3.0


def sinusoids(count: int, width: int) -> Float[Tensor, "{count} {width}"]:
    """√2 sin(ω_k v) and √2 cos(ω_k v) for v = 0…count−1, with wave lengths from 3 to 2·count.

    The wave lengths grow geometrically; each entry has mean square 1 over a wave, as T5's noise.

    >>> sinusoids(8, 4).square().sum(dim=1).round().tolist()
    [4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]
    """
    longest = max(2.0 * count, SHORTEST_WAVE)
    waves = torch.logspace(
        math.log10(SHORTEST_WAVE), math.log10(longest), width // 2, dtype=torch.float64
    )
    angles = torch.arange(count, dtype=torch.float64)[:, None] * (2.0 * math.pi / waves)
    return (math.sqrt(2.0) * torch.cat([angles.sin(), angles.cos()], dim=1)).float()
