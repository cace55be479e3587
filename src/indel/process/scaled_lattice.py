"""The lattice of `alignments` in linear numbers: products and sums instead of log Σ exp.

Each cell's number is relative to a scale of its own row i of the lattice, which is renewed every
few anti-diagonals, so that numbers of any size fit into the range of float64. The scales of
neighbouring rows differ by at most e^±SLOPE. Where a number could have left the range all the same
the sequence is reported, and the caller sums in log space.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from indel.process.tables import JumpTables

# In RENEWAL anti-diagonals a number grows to at most (2 e^SLOPE)^RENEWAL = e^321.
RENEWAL, SLOPE = 12, 26.0
_SMALLEST = -700.0  # e^−700 is the smallest number that is relied on.

Cells = Float[Tensor, "cells batch"]


class Moves(NamedTuple):
    """The probabilities of all moves, so laid out that an anti-diagonal is one slice.

    Entry p belongs to token j = (length + source) − p of x_t; outside 1…length all is 0.
    """

    insert: Float[Tensor, "places batch"]
    tokens: Int[Tensor, "places batch"]
    matching: Float[Tensor, "places batch"]
    """Q̄_t[z, z]"""
    other: Float[Tensor, "places batch"]
    """Q̄_t[x, z] for x ≠ z"""
    source: Int[Tensor, "source batch"]
    stop: Float[Tensor, " batch"]
    delete: Float[Tensor, " batch"]

    @classmethod
    def of(
        cls,
        tables: JumpTables,
        source: Int[Tensor, "batch source"],
        tokens: Int[Tensor, "batch length"],
        t: Int[Tensor, " batch"],
    ) -> Moves | None:
        """Look the moves up; None where Q̄_t[x, z] depends on more than z and whether x = z."""
        parts = tables.spike_and_background(t[:, None], tokens)
        if parts is None:
            return None
        spike, other = parts
        width = source.shape[1]
        # Short integers are compared faster.
        small = torch.int16 if tables.vocab_size + 2 < 1 << 15 else torch.int32

        def laid_out(values: Tensor, fill: float) -> Tensor:
            flipped = torch.nn.functional.pad(values.flip(1), (width, width + 1), value=fill)
            return flipped.T.contiguous()

        return cls(
            insert=laid_out(tables.insert_prob(t[:, None], tokens), 0.0),
            tokens=laid_out(tokens, -1).to(small),
            matching=laid_out(other + spike, 0.0),
            other=laid_out(other, 0.0),
            # Padding matches no token, and no padding.
            source=source.masked_fill(source < 0, -2).T.contiguous().to(small),
            stop=tables.stop[t],
            delete=tables.delete[t],
        )

    @property
    def last(self) -> int:
        """The number of the last anti-diagonal."""
        return len(self.insert) - len(self.source) - 1

    def smallest(self) -> Float[Tensor, " batch"]:
        """log of the smallest probability of a move that is possible."""
        each = [self.insert, self.matching, self.other, self.stop[None], self.delete[None]]
        least = [torch.where(one > 0, one, 1.0).amin(dim=0) for one in each]
        return torch.stack(least).amin(dim=0).log()


class ScaledTotal(NamedTuple):
    """The sum over all alignments."""

    log_prob: Float[Tensor, " batch"]
    """log q(x_t | x_0)"""
    reliable: Bool[Tensor, " batch"]
    """Whether no possible number can have been lost."""


def scaled_total(
    moves: Moves, source_lengths: Int[Tensor, " batch"], lengths: Int[Tensor, " batch"]
) -> ScaledTotal:
    """log F_B at the end of both sequences, by the recursion of `Lattice.forward`."""
    source, last, cells = moves.source, moves.last, len(moves.source) + 1
    a = moves.stop.new_zeros(cells, source.shape[1])
    a[0] = 1.0
    b = a * moves.stop
    scale = torch.zeros_like(a)
    down = _from_above(scale, source)
    # b, ready to be consumed by a token: of the last anti-diagonal and of the one before it.
    ready, waiting = b[:-1] * down, torch.zeros_like(b[:-1])
    down_delete = down * moves.delete
    ends = _rows_by_end(source_lengths + lengths)
    total = torch.full_like(moves.stop, -torch.inf)
    smallest = (_SMALLEST - RENEWAL * (moves.smallest() - SLOPE)).exp()
    doubtful = torch.zeros_like(a, dtype=torch.bool)
    for k in range(last + 1):
        if k:
            start = last - k
            here, below = slice(start, start + cells), slice(start + 1, start + cells)
            replace = torch.where(
                source == moves.tokens[below], moves.matching[below], moves.other[below]
            )
            a = a * moves.insert[here]
            a[1:].addcmul_(waiting, replace)
            waiting, previous = ready, b
            b = a * moves.stop
            b[1:].addcmul_(previous[:-1], down_delete)
            ready = b[:-1] * down
        if k in ends:
            rows = ends[k].to(a.device)
            at = source_lengths[rows], rows
            total[rows] = b[at].log() + scale[at]
        if k % RENEWAL == RENEWAL - 1:
            for each, doubt in ((a, doubtful), (b, doubtful), (waiting, doubtful[1:])):
                # Written so that what is no number is doubtful too.
                doubt |= (each >= smallest) != (each != 0)
            largest = torch.maximum(a, b)
            largest[1:].copy_(torch.maximum(largest[1:], waiting))
            new = _limited(scale + largest.log())
            change = (scale - new).exp().masked_fill(largest == 0, 0.0)
            scale, a, b, waiting = new, a * change, b * change, waiting * change[1:]
            down = _from_above(scale, source)
            ready, down_delete = b[:-1] * down, down * moves.delete
    reliable = (smallest < 1.0) & ~doubtful.any(dim=0)
    return ScaledTotal(total, reliable)


def _limited(scale: Cells) -> Cells:
    """The least scale that is nowhere below this one and changes by at most SLOPE per row."""
    slope = SLOPE * torch.arange(len(scale), device=scale.device, dtype=scale.dtype)[:, None]
    below = (scale + slope).cummax(dim=0).values - slope
    above = (scale - slope).flip(0).cummax(dim=0).values.flip(0) + slope
    # A sequence that cannot be produced has no number at all.
    return torch.maximum(below, above).nan_to_num(neginf=0.0)


def _from_above(scale: Cells, source: Int[Tensor, "source batch"]) -> Float[Tensor, "source batch"]:
    """What a number is multiplied by when a token is consumed; nothing consumes padding."""
    return (scale[:-1] - scale[1:]).exp().masked_fill(source < 0, 0.0)


def _rows_by_end(ends: Int[Tensor, " batch"]) -> dict[int, Tensor]:
    """Which sequences end on which anti-diagonal."""
    rows: dict[int, list[int]] = {}
    for row, end in enumerate(ends.tolist()):
        rows.setdefault(end, []).append(row)
    return {end: torch.tensor(each) for end, each in rows.items()}
