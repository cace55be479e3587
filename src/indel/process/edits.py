"""Edit summaries a_{0→t}: how x_0 became x_t, without the steps in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Int
from torch import Tensor

from indel.batch import PADDING, Batch
from indel.process import checks

INSERTED = -1
"""The source of a token of x_t that comes from no token of x_0."""


@dataclass(frozen=True, eq=False)
class Edits:
    """For each token of x_t where it comes from, and for each slot how many tokens were lost.

    A deletion followed by an insert is a replacement, so a slot with deletions ends in a token
    that has a source, or in EOS.

    Paper: Fig. 2
    """

    source: Int[Tensor, "batch length"]
    """Index into x_0, or −1 where the token was inserted (and at padding)."""
    deletions: Int[Tensor, "batch length+1"]
    """Tokens of x_0 deleted right before each token of x_t; the entry at |x_t| is EOS's."""

    @classmethod
    def from_source(cls, x_0: Batch, x_t: Batch, source: Int[Tensor, "batch length"]) -> Edits:
        """Fill in the deletions: whatever lies between two sources was deleted.

        >>> x_0, x_t = Batch.from_lists([[0, 1, 1, 0]]), Batch.from_lists([[1, 2, 0]])
        >>> Edits.from_source(x_0, x_t, torch.tensor([[1, -1, 2]])).deletions.tolist()
        [[1, 0, 0, 1]]
        """
        checks.same_rows(x_0=x_0, x_t=x_t)
        if source.shape != x_t.tokens.shape or source.dtype != torch.int64:
            raise ValueError(
                f"source must be int64 of the shape of x_t {tuple(x_t.tokens.shape)}, "
                f"got {source.dtype} of shape {tuple(source.shape)}"
            )
        source = source.masked_fill(~x_t.mask, INSERTED)
        before = _last_source_before(source)
        present = source >= 0
        wrong = (source < INSERTED) | (source >= x_0.lengths[:, None])
        wrong |= present & (source <= before[:, :-1])
        if bool(wrong.any()):
            row, position = wrong.nonzero()[0].tolist()
            raise ValueError(
                f"source[{row}, {position}] = {source[row, position].item()} must be −1 or an "
                f"index into x_0 (length {x_0.lengths[row].item()}) beyond those to its left"
            )
        gaps = torch.where(present, source - before[:, :-1] - 1, 0)
        deletions = torch.nn.functional.pad(gaps, (0, 1))
        at_end = x_0.lengths - 1 - before[:, -1]
        return cls(source, deletions.scatter_add(1, x_t.lengths[:, None], at_end[:, None]))

    def checked(self, x_0: Batch, x_t: Batch) -> Edits:
        """The same edits with −1 at padding; refused if they are no edits of these sequences."""
        expected = Edits.from_source(x_0, x_t, self.source)
        if not torch.equal(expected.deletions, self.deletions):
            raise ValueError(
                f"deletions must follow from source, {expected.deletions.tolist()} as in "
                f"Edits.from_source, got {self.deletions.tolist()}"
            )
        return expected

    def to(self, device: torch.device | str) -> Edits:
        """The same edits on another device."""
        return Edits(self.source.to(device), self.deletions.to(device))


def summarize(chain: Sequence[Batch], vocab_size: int) -> Edits:
    """The edit summary a_{0→t} of a chain x_0, x_1, …, x_t.

    A token's source is followed from step to step; a deletion right before an insert is a pair.

    Args:
        chain: x_0, x_1, …, x_t.
        vocab_size: The number K of regular tokens: INS is K, DEL is K + 1.

    Returns:
        One edit summary for each sequence.

    >>> chain = [Batch.from_lists([row]) for row in ([0, 1], [0, 3], [0])]  # 1 becomes DEL
    >>> summarize(chain, vocab_size=2).deletions.tolist()
    [[0, 1]]

    Paper: Fig. 2
    """
    if not chain:
        raise ValueError("chain must hold at least x_0")
    checks.data("chain[0]", chain[0], vocab_size)
    source = torch.arange(chain[0].width, device=chain[0].device).expand(chain[0].tokens.shape)
    for number, each in enumerate(chain):
        checks.noisy(f"chain[{number}]", each, vocab_size)
    for before, after in pairwise(chain):
        parent = step_parents(before, after, vocab_size)
        inherited = _pair_deletions(before, source, vocab_size)
        inherited = torch.nn.functional.pad(inherited, (0, 1), value=INSERTED)
        # A parent of −1 reads the column of INSERTED just added.
        source = torch.gather(inherited, 1, parent % inherited.shape[1])
    return Edits.from_source(chain[0], chain[-1], source.clone())


def step_parents(x_prev: Batch, x_t: Batch, vocab_size: int) -> Int[Tensor, "batch length"]:
    """For each token of x_t its position in x_{t−1}, −1 for INS: one step aligns in one way only.

    Args:
        x_prev: x_{t−1}: regular tokens, INS and DEL.
        x_t: What one step made of it.
        vocab_size: The number K of regular tokens: INS is K, DEL is K + 1.

    Returns:
        A position for each token; −1 also at padding.

    >>> x_prev, x_t = Batch.from_lists([[0, 3, 1]]), Batch.from_lists([[0, 2, 1]])
    >>> step_parents(x_prev, x_t, vocab_size=2).tolist()
    [[0, -1, 2]]

    Paper: Sec. 3.1
    """
    checks.same_rows(x_prev=x_prev, x_t=x_t)
    checks.noisy("x_prev", x_prev, vocab_size)
    checks.noisy("x_t", x_t, vocab_size)
    ins, del_ = vocab_size, vocab_size + 1
    parents = x_prev.mask & (x_prev.tokens != del_)
    children = x_t.mask & (x_t.tokens != ins)
    if not torch.equal(parents.sum(dim=1), children.sum(dim=1)):
        row = int((parents.sum(dim=1) != children.sum(dim=1)).nonzero()[0])
        raise ValueError(
            f"row {row}: x_t must have as many tokens that are not INS as x_prev has that are "
            f"not DEL, got {children[row].sum().item()} and {parents[row].sum().item()}"
        )
    found = torch.full_like(x_t.tokens, INSERTED)
    # Both masks list their hits row by row and in order, so the hits correspond.
    found[children] = parents.nonzero()[:, 1]
    return found


def _pair_deletions(
    batch: Batch, source: Int[Tensor, "batch length"], vocab_size: int
) -> Int[Tensor, "batch length"]:
    """Give an inserted token the source of a DEL right before it: it replaces what was deleted.

    DELs that were themselves inserted vanish between the two and do not count.

    Paper: Eq. (9)
    """
    is_del = batch.tokens == vocab_size + 1
    passed_over = (is_del & (source == INSERTED)) | (batch.tokens == PADDING)
    positions = torch.arange(batch.width, device=batch.device).expand(batch.tokens.shape)
    anchors = torch.cummax(positions.masked_fill(passed_over, -1), dim=1).values
    previous = torch.nn.functional.pad(anchors, (1, 0), value=-1)[:, :-1]
    at = previous.clamp_min(0)
    deleted = (previous >= 0) & torch.gather(is_del, 1, at)
    inserted = (source == INSERTED) & ~is_del
    return torch.where(inserted & deleted, torch.gather(source, 1, at), source)


def _last_source_before(source: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length+1"]:
    """The largest source to the left of each position and of the end, −1 if there is none."""
    padded = torch.nn.functional.pad(source, (1, 0), value=INSERTED)
    return torch.cummax(padded, dim=1).values
