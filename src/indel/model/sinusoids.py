"""Embeddings of integers to start from, in which near numbers are near."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

# Numbers that differ by one are told apart by the fastest waves, all of them by the slowest.
SHORTEST_WAVE = 3.0
# The fastest wave that integers have: even and odd.
SHORTEST_WHOLE_WAVE = 2


def sinusoids(count: int, width: int, *, whole: bool = False) -> Float[Tensor, "{count} {width}"]:
    """√2 sin(2πv/λ_k) and √2 cos(2πv/λ_k) for v = 0…count−1, with wave lengths λ_k up to 2·count.

    The wave lengths grow geometrically from 3 on; or they are whole numbers from 2 on, of which
    the small ones say what v is modulo λ. Each entry has mean square 1 over a wave, as T5's noise
    (of wave length 2 the sine is 0 at all integers, and the cosine's mean square is 2).

    Args:
        count: How many numbers.
        width: Entries of each embedding, an even number.
        whole: Whether the wave lengths are whole numbers (`whole_wave_lengths`).

    >>> sinusoids(8, 4).square().sum(dim=1).round().tolist()
    [4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]
    """
    if whole:
        waves = torch.tensor(whole_wave_lengths(count, width // 2), dtype=torch.float64)
    else:
        longest = max(2.0 * count, SHORTEST_WAVE)
        waves = torch.logspace(
            math.log10(SHORTEST_WAVE), math.log10(longest), width // 2, dtype=torch.float64
        )
    angles = torch.arange(count, dtype=torch.float64)[:, None] * (2.0 * math.pi / waves)
    return (math.sqrt(2.0) * torch.cat([angles.sin(), angles.cos()], dim=1)).float()


def whole_wave_lengths(count: int, number: int) -> list[int]:
    """2, 3, 4, … for as long as geometric growth up to 2·count is slower than that, then geometric.

    Terms of an arithmetic sequence of step d agree modulo d, whatever was inserted or deleted
    between them, which a wave of length d shows and one of any other length does not.

    >>> whole_wave_lengths(512, 16)
    [2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 202, 303, 455, 683, 1024]
    """
    waves = [SHORTEST_WHOLE_WAVE]
    for left in range(number - 1, 0, -1):
        growth = max(2.0 * count / waves[-1], 1.0) ** (1.0 / left)
        waves.append(max(waves[-1] + 1, round(waves[-1] * growth)))
    return waves
