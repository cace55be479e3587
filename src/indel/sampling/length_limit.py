"""Draws from the reverse process that never exceed a length: drawn again, and in the end cut."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from indel.batch import PADDING, Batch, pack
from indel.model.length import LengthTable
from indel.model.reverse import ReverseStep
from indel.randomness import Randomness, select, split


class LimitedDraw(NamedTuple):
    """Sequences within the limit and what it took to keep it."""

    x: Batch
    redrawn: Int[Tensor, " batch"]
    """How often each row came out too long and was drawn again."""
    dropped: Int[Tensor, " batch"]
    """How many DELs were taken off because every draw was too long."""


def draw_within(
    reverse: ReverseStep, limit: int, *, redraws: int, generator: Randomness
) -> LimitedDraw:
    """x_{t−1} ~ p_θ(x_{t−1} | x_t, |x_{t−1}| ≤ limit), as far as a few draws reach.

    What is still too long after so many further draws loses its last DELs. They suffice where x_t
    itself keeps the limit: without its DELs x_{t−1} is as long as x_t without its INS.
    """
    drawn = reverse.sample(generator=generator)
    redrawn = torch.zeros_like(drawn.lengths)
    rows = torch.arange(len(drawn), device=drawn.device)
    for _ in range(redraws):
        long = (drawn.lengths[rows] > limit).nonzero()[:, 0]
        if not len(long):
            break
        rows, generator = rows[long], select(generator, long)
        again = reverse.rows(rows).sample(generator=generator)
        drawn = with_rows(drawn, rows, again)
        redrawn = redrawn.index_add(0, rows, torch.ones_like(rows))
    del_ = reverse.tables.jump.vocab_size + 1
    within = _without_last(drawn, del_, drawn.lengths - limit)
    return LimitedDraw(within, redrawn, drawn.lengths - within.lengths)


def draw_start_within(
    table: LengthTable,
    rows: int,
    limit: int,
    *,
    del_: int,
    redraws: int,
    generator: Randomness,
) -> LimitedDraw:
    """x_T = DEL…DEL with |x_T| ~ p_θ(|x_T|), likewise within the limit."""
    noise = split(generator)
    lengths = table.sample(rows, generator=noise)
    redrawn = torch.zeros_like(lengths)
    for _ in range(redraws):
        long = lengths > limit
        if not bool(long.any()):
            break
        # All rows draw, so that the noise of one does not depend on the others.
        lengths = torch.where(long, table.sample(rows, generator=noise), lengths)
        redrawn = redrawn + long.long()
    within = lengths.clamp_max(limit)
    width = int(within.max()) if rows else 0
    marks = torch.full((rows, width), del_, device=lengths.device)
    return LimitedDraw(Batch(marks, within), redrawn, lengths - within)


def with_rows(batch: Batch, rows: Int[Tensor, " rows"], new: Batch) -> Batch:
    """The batch with some rows replaced, no wider than it needs to be."""
    batch, new = batch.widened(new.width), new.widened(batch.width)
    lengths = batch.lengths.index_put((rows,), new.lengths)
    return Batch(batch.tokens.index_put((rows,), new.tokens), lengths).trimmed()


def _without_last(batch: Batch, token: int, surplus: Int[Tensor, " batch"]) -> Batch:
    """Take so many occurrences of a token out, the last ones of each row."""
    if not bool((surplus > 0).any()):
        return batch
    found = batch.tokens == token
    # How many stand at this place or to the right of it.
    from_end = found.flip(1).cumsum(dim=1).flip(1)
    kept = batch.mask & ~(found & (from_end <= surplus[:, None]))
    return Batch(pack(batch.tokens, kept, fill=PADDING), kept.sum(dim=1)).trimmed()
