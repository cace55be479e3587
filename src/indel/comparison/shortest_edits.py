"""The oracle of the edit models: the fewest deletions and insertions that make x into y.

They are those off a longest common subsequence: |x| + |y| − 2·LCS(x, y) of them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from indel.batch import Batch, pack
from indel.comparison.edit_paths import BLANK
from indel.randomness import uniform

DELETED = -1


class ShortestEdits(NamedTuple):
    """Which tokens of x stay, and what is missing between them."""

    source: Int[Tensor, "batch length"]
    """The token of y that each token of x is kept as, or DELETED."""
    missing: Int[Tensor, "batch slots"]
    """How many tokens of y are missing right before each *kept* token, counted in the order in
    which they are kept, and then at the end; 0 behind it."""

    @property
    def deleted(self) -> Bool[Tensor, "batch length"]:
        """True for tokens of x that go (and for padding)."""
        return self.source == DELETED


def shortest_edits(x: Batch, y: Batch) -> ShortestEdits:
    """One of the shortest edit sequences, by the table of longest common subsequences.

    L[i, j] = max(L[i−1, j], L[i, j−1], L[i−1, j−1] + [x_i = y_j]), a row at a time.

    >>> edits = shortest_edits(Batch.from_lists([[0, 5, 1]]), Batch.from_lists([[0, 1, 2]]))
    >>> edits.source.tolist(), edits.missing.tolist()
    ([[0, -1, 1]], [[0, 0, 1, 0]])
    """
    # Walking back is faster in plain Python than as a hundred tiny operations on tensors.
    table = _common(x, y).cpu().numpy()
    source = [[DELETED] * x.width for _ in table]
    lengths = zip(x.lengths.tolist(), y.lengths.tolist(), strict=True)
    for cells, kept, (i, j) in zip(table, source, lengths, strict=True):
        while i and j:
            here = cells[i, j]
            if cells[i, j - 1] == here:
                j -= 1
            elif cells[i - 1, j] == here:
                i -= 1
            else:
                i, j = i - 1, j - 1
                kept[i] = j
    kept_as = torch.tensor(source, dtype=torch.int64, device=x.device).reshape(x.tokens.shape)
    return ShortestEdits(kept_as, _missing(kept_as, y.lengths))


def _common(x: Batch, y: Batch) -> Int[Tensor, "batch rows columns"]:
    """The length of the longest common subsequence of all prefixes."""
    table = torch.zeros(len(x), x.width + 1, y.width + 1, dtype=torch.int64, device=x.device)
    equal = (x.tokens[:, :, None] == y.tokens[:, None, :]) & x.mask[:, :, None]
    for i in range(x.width):
        longer = table[:, i, :-1] + equal[:, i].long()
        best = torch.maximum(table[:, i, 1:], longer)
        table[:, i + 1, 1:] = best.cummax(dim=1).values if y.width else best
    return table


def _missing(
    source: Int[Tensor, "batch length"], lengths: Int[Tensor, " batch"]
) -> Int[Tensor, "batch slots"]:
    kept = source != DELETED
    packed = pack(source, kept, fill=0)
    slots = torch.arange(source.shape[1] + 1, device=source.device)
    count = kept.sum(dim=1, keepdim=True)
    padded = torch.nn.functional.pad(packed, (0, 1))
    ends = torch.where(slots < count, padded, lengths[:, None])
    starts = torch.cat([torch.zeros_like(lengths)[:, None], padded[:, :-1] + 1], dim=1)
    return torch.where(slots <= count, ends - starts, 0)


def kept_tokens(x: Batch, deleted: Bool[Tensor, "batch length"]) -> Batch:
    """The sequences without the deleted tokens."""
    kept = x.mask & ~deleted
    return Batch(pack(x.tokens, kept, fill=BLANK), kept.sum(dim=1)).trimmed()


def random_subsequence(y: Batch, *, generator: torch.Generator) -> Batch:
    """k tokens of each sequence, every subset of this size alike; k is uniform in 0…|y|."""
    keys = _noise(y, generator).masked_fill(~y.mask, 2.0)
    rank = keys.argsort(dim=1).argsort(dim=1)
    size = torch.rand(len(y), generator=generator, device=generator.device).to(y.device)
    kept = (size * (y.lengths + 1)).long().minimum(y.lengths)
    return kept_tokens(y, rank >= kept[:, None])


def randomly_corrupted(
    y: Batch,
    vocab_size: int,
    *,
    rate: Float[Tensor, "batch 1"],
    generator: torch.Generator,
) -> Batch:
    """Each token is replaced by a uniform one or preceded by one, with probability rate/2 each."""
    noise = _noise(y, generator)
    tokens = (_noise(y, generator) * vocab_size).long().clamp_max(vocab_size - 1)
    changed = torch.where(noise < rate / 2, tokens, y.tokens)
    added = torch.where((noise >= rate / 2) & (noise < rate) & y.mask, tokens, BLANK)
    sites = torch.stack([added, changed.masked_fill(~y.mask, BLANK)], dim=2).flatten(1)
    present = sites != BLANK
    return Batch(pack(sites, present, fill=BLANK), present.sum(dim=1)).trimmed()


def corrupted_up_to(y: Batch, vocab_size: int, most: float, *, generator: torch.Generator) -> Batch:
    """`randomly_corrupted` at a rate of its own for each sequence, uniform up to `most`."""
    rate = most * uniform(generator, len(y), 1, dtype=torch.float32)
    return randomly_corrupted(y, vocab_size, rate=rate.to(y.device), generator=generator)


def deletion_cost(
    logits: Float[Tensor, "batch length"], x: Batch, y: Batch
) -> Float[Tensor, " batch"]:
    """−log of what the shortest edits from x to y delete, where P(delete x_i) = σ(logit)."""
    deleted = shortest_edits(x, y).deleted.to(logits.dtype)
    cost = functional.binary_cross_entropy_with_logits(logits, deleted, reduction="none")
    return cost.masked_fill(~x.mask, 0.0).sum(dim=1)


def _noise(y: Batch, generator: torch.Generator) -> Float[Tensor, "batch length"]:
    shape = y.tokens.shape
    return torch.rand(shape, generator=generator, device=generator.device).to(y.device)
