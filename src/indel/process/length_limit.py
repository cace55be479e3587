"""Draws of where tokens and inserts go, given that the sequence keeps a limit on its length."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from indel.process.counts import logp_binomial, logp_negative_binomial
from indel.randomness import Randomness, index_at, uniform


class Places(NamedTuple):
    """Which tokens are emitted, and how many inserts stand at the start and after each."""

    emitted: Bool[Tensor, "batch length"]
    inserts: Int[Tensor, "batch length+1"]


def logp_within(
    more: Float[Tensor, " batch"], max_length: int
) -> Float[Tensor, "batch {max_length}+1"]:
    """log P(m + NB(m + 1, 1 − more) ≤ max) for m = 0…max: m tokens and their inserts fit.

    They do if among max + 1 coins, each an insert with chance `more` or the end of a gap, at
    least m + 1 end one: a tail of the binomial.
    """
    ends = torch.arange(max_length + 2, device=more.device)
    logp = logp_binomial(ends, torch.tensor(max_length + 1), (1.0 - more)[:, None])
    # From the far end, so that small tails are sums of small numbers. Rounding may lift a sum
    # of probabilities over 1 by a few units in the last place.
    return logp.flip(1).logcumsumexp(dim=1).flip(1)[:, 1:].clamp_max(0.0)


def draw_places(
    tokens: Bool[Tensor, "batch length"],
    emit: Float[Tensor, " batch"],
    more: Float[Tensor, " batch"],
    max_length: int,
    *,
    generator: Randomness,
) -> Places:
    """Each token is emitted with chance `emit`, inserts are geometric: given that all fit.

    In three steps, each exact, so that no draw is ever thrown away: how many tokens are emitted,
    how many inserts there are, and which of all arrangements, which are equally likely.
    """
    rows, width = tokens.shape
    noise = uniform(generator, rows, 2, dtype=more.dtype)
    emitted, inserted = _draw_counts(tokens.sum(dim=1), emit, more, max_length, noise)
    chosen = _subset(uniform(generator, rows, width, dtype=more.dtype), tokens, emitted)
    places = torch.arange(max_length, device=more.device) < (emitted + inserted)[:, None]
    noise = uniform(generator, rows, max_length, dtype=more.dtype)
    is_insert = _subset(noise, places, inserted)
    # An insert stands in the gap that the tokens before it have opened.
    gap = (places & ~is_insert).cumsum(dim=1)
    counts = torch.zeros(rows, max_length + 1, dtype=torch.long, device=more.device)
    counts = counts.scatter_add(1, gap, is_insert.long())
    opened = torch.nn.functional.pad(chosen.cumsum(dim=1), (1, 0))
    return Places(chosen, counts.gather(1, opened))


def _draw_counts(
    lengths: Int[Tensor, " batch"],
    emit: Float[Tensor, " batch"],
    more: Float[Tensor, " batch"],
    max_length: int,
    noise: Float[Tensor, "batch 2"],
) -> tuple[Int[Tensor, " batch"], Int[Tensor, " batch"]]:
    """How many tokens are emitted, m, and how many inserts there are, n.

    m ∝ Binomial(m; length, emit) · P(m + NB(m + 1, 1 − more) ≤ max), then
    n ∝ NB(n; m + 1, 1 − more) where m + n ≤ max.
    """
    counts = torch.arange(max_length + 1, device=more.device)
    logp = logp_binomial(counts, lengths[:, None], emit[:, None]) + logp_within(more, max_length)
    emitted = _draw(logp, noise[:, 0])
    logp = logp_negative_binomial(counts, emitted[:, None] + 1, more[:, None])
    fits = counts <= (max_length - emitted)[:, None]
    return emitted, _draw(logp.masked_fill(~fits, -torch.inf), noise[:, 1])


def _draw(
    logp: Float[Tensor, "batch entries"], noise: Float[Tensor, " batch"]
) -> Int[Tensor, " batch"]:
    """An entry in proportion to exp(logp), however small all of them are."""
    return index_at((logp - logp.amax(dim=1, keepdim=True)).exp().cumsum(dim=1), noise)


def _subset(
    noise: Float[Tensor, "batch width"],
    allowed: Bool[Tensor, "batch width"],
    count: Int[Tensor, " batch"],
) -> Bool[Tensor, "batch width"]:
    """`count` of the allowed columns, each choice equally likely: those of the least noise."""
    order = noise.masked_fill(~allowed, torch.inf).argsort(dim=1)
    return order.argsort(dim=1) < count[:, None]
