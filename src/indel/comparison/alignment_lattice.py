"""All alignments of two sequences, summed by a dynamic program over prefixes.

A path goes through the gaps and tokens of x_1 in order. F(i, j) is the total weight of all ways
to make the first j tokens of x from the first i tokens of x_1, before gap i; G(i, j) after it.

    G(i, j) = F(i, j)·(no extra) + F(i, j−1)·(extra)                   at most one extra token
    F(i, j) = G(i−1, j)·(blank) + G(i−1, j−1)·replace[x_1[i], x[j]]    token i is missing, or is x_j
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class AlignmentPosterior(NamedTuple):
    """What each part of an alignment is, given both sequences; zero at padding."""

    source: Float[Tensor, "batch source length"]
    """P(token j of x stands at the site of token i of x_1)."""
    extra: Float[Tensor, "batch length"]
    """P(token j of x stands in a gap)."""
    blank: Float[Tensor, "batch source slots"]
    """P(token i of x_1 is missing, and the first j tokens of x stand before it)."""


@dataclass(frozen=True)
class AlignmentLattice:
    """The weights of all parts of an alignment: probabilities, or multiples of them.

    A factor for each token of x cancels in `posterior`, and is the caller's to take out of
    `log_prob`.
    """

    extra: Float[Tensor, " batch"]
    """Of one certain extra token in a gap."""
    no_extra: Float[Tensor, " batch"]
    blank: Float[Tensor, " batch"]
    replace: Float[Tensor, "batch source length"]
    source_lengths: Int[Tensor, " batch"]
    lengths: Int[Tensor, " batch"]

    def log_prob(self) -> Float[Tensor, " batch"]:
        """log of the total weight of all alignments."""
        _, after_gap, scales = self._forward()
        return self._total(after_gap).log() + scales.sum(dim=1)

    def posterior(self) -> AlignmentPosterior:
        """The marginals of all alignments, each in proportion to its weight."""
        before_gap, after_gap, scales = self._forward()
        total = self._total(after_gap)
        if bool((total == 0).any()):
            row = int((total == 0).nonzero()[0])
            raise ValueError(f"row {row}: x cannot be made from x_1 by this process")
        to_end_f, to_end_g = self._backward(scales)
        # Both sums are relative to the scales of rows 1…i: what leads from row i−1 to row i takes
        # its scale away from the way there; `_backward` has those of the rows after i.
        share = 1.0 / total
        step = share[:, None, None] / scales[:, :, None].exp()
        enter, leave = after_gap[:, :-1], to_end_f[:, 1:]
        source = step * enter[:, :, :-1] * self.replace * leave[:, :, 1:]
        blank = step * enter * self.blank[:, None, None] * leave
        extra = before_gap[:, :, :-1] * self.extra[:, None, None] * to_end_g[:, :, 1:]
        return AlignmentPosterior(source, (extra * share[:, None, None]).sum(dim=1), blank)

    def _forward(self) -> tuple[Tensor, Tensor, Float[Tensor, "batch source"]]:
        """F and G, and for each token of x_1 the log of what its row was divided by."""
        batch, sources, length = self.replace.shape
        before = self.replace.new_zeros(batch, sources + 1, length + 1)
        before[:, 0, 0] = 1.0
        after = torch.zeros_like(before)
        scales = self.replace.new_zeros(batch, sources)
        inside = torch.arange(sources, device=before.device) < self.source_lengths[:, None]
        for i in range(sources + 1):
            if i:
                last = after[:, i - 1]
                row = last * self.blank[:, None]
                row[:, 1:] += last[:, :-1] * self.replace[:, i - 1]
                largest = row.amax(dim=1)
                # Rows of padding are never read, and those without any way stay zero.
                usable = inside[:, i - 1] & (largest > 0)
                scale = torch.where(usable, largest, 1.0)
                before[:, i] = row / scale[:, None]
                scales[:, i - 1] = scale.log()
            after[:, i] = before[:, i] * self.no_extra[:, None]
            after[:, i, 1:] += before[:, i, :-1] * self.extra[:, None]
        return before, after, scales

    def _backward(self, scales: Float[Tensor, "batch source"]) -> tuple[Tensor, Tensor]:
        """The total weight of all ways from F(i, j) and from G(i, j) to the end."""
        batch, sources, length = self.replace.shape
        to_end_f = self.replace.new_zeros(batch, sources + 1, length + 1)
        to_end_g = torch.zeros_like(to_end_f)
        rows = torch.arange(batch, device=to_end_f.device)
        to_end_g[rows, self.source_lengths, self.lengths] = 1.0
        for i in range(sources, -1, -1):
            if i < sources:
                onward = to_end_f[:, i + 1] * self.blank[:, None]
                onward[:, :-1] += to_end_f[:, i + 1, 1:] * self.replace[:, i]
                to_end_g[:, i] += onward / scales[:, i, None].exp()
            to_end_f[:, i] = to_end_g[:, i] * self.no_extra[:, None]
            to_end_f[:, i, :-1] += to_end_g[:, i, 1:] * self.extra[:, None]
        return to_end_f, to_end_g

    def _total(self, after_gap: Float[Tensor, "batch rows columns"]) -> Float[Tensor, " batch"]:
        rows = torch.arange(len(after_gap), device=after_gap.device)
        return after_gap[rows, self.source_lengths, self.lengths]
