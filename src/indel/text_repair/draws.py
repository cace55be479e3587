"""Draws from p_θ(x_0 | x_t), with the place in x_t that each of their tokens comes from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from indel.batch import Batch
from indel.model import Denoiser
from indel.process.edits import INSERTED, step_parents
from indel.randomness import Randomness
from indel.sampling.generation import SamplingOptions, denoise_from


@dataclass(frozen=True)
class Draws:
    """Sequences x_0, aligned with the x_t that they were drawn for by token identity."""

    x_0: Batch
    origins: Int[Tensor, "batch length"]
    """Where each token of x_0 stood in x_t; −1 for those that x_t had lost."""


def draw_origins(
    denoiser: Denoiser,
    x_t: Batch,
    t: int,
    *,
    generator: Randomness,
    options: SamplingOptions | None = None,
) -> Draws:
    """Sample x_0 ~ p_θ(x_0 | x_t) and follow every token of x_t on its way.

    Paper: Sec. 3.2
    """
    vocab_size = denoiser.schedule.vocab_size
    seen = x_t
    origins = torch.arange(x_t.width, device=x_t.device).expand(len(x_t), -1)

    def follow(time: int, earlier: Batch) -> None:
        nonlocal seen, origins
        if time != t:
            origins = _earlier_origins(origins, seen, earlier, vocab_size)
            seen = earlier

    samples = denoise_from(denoiser, x_t, t, generator=generator, options=options, callback=follow)
    return Draws(samples.x, origins.clone())


def _earlier_origins(
    origins: Int[Tensor, "batch later"], x_t: Batch, x_prev: Batch, vocab_size: int
) -> Int[Tensor, "batch earlier"]:
    """The origins of the tokens of x_{t−1}: those of the tokens of x_t that they became."""
    parents = step_parents(x_prev, x_t, vocab_size)
    found = torch.full_like(x_prev.tokens, INSERTED)
    row, child = (parents != INSERTED).nonzero(as_tuple=True)
    found[row, parents[row, child]] = origins[row, child]
    return found
