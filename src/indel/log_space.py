"""Sums of probabilities in log space whose gradients stay finite where a probability is zero.

Zero is a true −inf. torch's own functions divide 0 by 0 in the backward pass where every summand
is −inf; these give zero there.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def logaddexp(a: Float[Tensor, "..."], b: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """log(eᵃ + eᵇ)."""
    nothing = (a == -torch.inf) & (b == -torch.inf)
    total = torch.logaddexp(a.masked_fill(nothing, 0.0), b.masked_fill(nothing, 0.0))
    return total.masked_fill(nothing, -torch.inf)


def logsumexp(
    values: Float[Tensor, "..."], *, dim: int, keepdim: bool = False
) -> Float[Tensor, "..."]:
    """log Σ eᵛ along one axis."""
    nothing = (values == -torch.inf).all(dim=dim, keepdim=True)
    total = torch.logsumexp(values.masked_fill(nothing, 0.0), dim=dim, keepdim=True)
    total = total.masked_fill(nothing, -torch.inf)
    return total if keepdim else total.squeeze(dim)


def safe_log(values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """log v, −inf with gradient zero where v = 0."""
    zero = values == 0
    return values.masked_fill(zero, 1.0).log().masked_fill(zero, -torch.inf)


def weighted(weight: Float[Tensor, "..."], logp: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """weight · logp, where something that never happens costs nothing: 0 · (−inf) = 0."""
    return weight * logp.masked_fill((weight == 0) & (logp == -torch.inf), 0.0)


def finite(values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The values, with 0 for −inf: a shift that may be taken away from them."""
    return values.masked_fill(values == -torch.inf, 0.0)
