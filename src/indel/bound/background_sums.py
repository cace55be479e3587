"""Sums over a vocabulary in which the background is a mixture of a few parts.

A background is a weight for each part of a `Basis`; only the uniform part is common, and then a
background is one number for each token of x_t. docs/fast-loss.md says where the sums come from.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from indel.process.stacks import Basis

# So many numbers fit into a core's second-level cache, beside as many others.
_CACHE_NUMBERS = 1 << 16

Rows = Float[Tensor, "batch length"]
Parts = Float[Tensor, "batch length parts"]
Pieces = list[tuple[slice, slice]]
"""Rows and places that are worked on together."""


class BackgroundSum(torch.autograd.Function):
    """Σ_y w_y log(value_y · scale + smooth_y), with derivatives by shift = log scale and smooth."""

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        scale: Tensor,
        shift: Tensor,
        smooth: Tensor,
        weights: Tensor,
        basis: Basis,
        parts: Pieces,
    ) -> Tensor:
        total, by_smooth = torch.zeros_like(scale), torch.zeros_like(smooth)
        for part in parts:
            mixed = mix(values[part], scale[part], smooth[part], weights[part], basis)
            total[part] = _project(mixed.log(), weights[part], basis)
            by_smooth[part] = _smooth_gradient(mixed.reciprocal_(), weights[part], basis)
        # value · scale = sum − smooth, so this needs no further pass over the values.
        ctx.save_for_backward((weights - smooth * by_smooth).sum(dim=-1), by_smooth)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        by_shift, by_smooth = ctx.saved_tensors
        return None, None, by_shift * grads[0], by_smooth * grads[0][..., None], *[None] * 3


def pieces(values: Tensor, valid: Bool[Tensor, "batch length"]) -> Pieces:
    """Some sequences at a time, without the padding that they share.

    On a CPU so few that what is done to them stays in the processor's cache.
    """
    most = _CACHE_NUMBERS if values.device.type == "cpu" else values.numel()
    rows = max(1, most // max(1, values.shape[1:].numel()))
    ends = valid.sum(dim=1).tolist()
    return [
        (slice(first, first + rows), slice(0, max(ends[first : first + rows])))
        for first in range(0, len(values), rows)
    ]


def mix(values: Tensor, scale: Tensor, smooth: Parts, weights: Parts, basis: Basis) -> Tensor:
    """value_y · scale + smooth_y."""
    mixed = values * scale[..., None]
    mixed += expand(smooth, basis)
    if smooth.shape[-1] > 1:
        # Beside points and given parts the background may be 0 and an exponential underflow;
        # no weight is there.
        mixed.masked_fill_(expand(weights, basis) == 0, 1.0)
    return mixed


def matrix_of(basis: Basis, like: Tensor) -> Float[Tensor, "parts tokens"]:
    """The parts as rows."""
    every = torch.arange(basis.vocab_size, device=like.device)
    return basis.densities(every).T.to(like.dtype)


def expand(weights: Parts, basis: Basis) -> Tensor:
    """Mixture weights to values for each token, one column where only the uniform part is there."""
    if weights.shape[-1] == 1:
        return weights / basis.vocab_size
    return weights @ matrix_of(basis, weights)


def _project(values: Tensor, weights: Parts, basis: Basis) -> Rows:
    """Σ_y (mixture weight of y) · value_y."""
    if weights.shape[-1] == 1:
        return weights[..., 0] / basis.vocab_size * values.sum(dim=-1)
    return (weights * (values @ matrix_of(basis, values).T)).sum(dim=-1)


def _smooth_gradient(inverse: Tensor, scaled: Parts, basis: Basis) -> Parts:
    """Σ_y (mixture weight of y) / value_y · part_y for each part."""
    if scaled.shape[-1] == 1:
        return scaled * inverse.sum(dim=-1, keepdim=True) / basis.vocab_size**2
    matrix = matrix_of(basis, inverse)
    return (inverse * (scaled @ matrix)) @ matrix.T
