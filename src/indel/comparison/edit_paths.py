"""The probability path of an edit flow: from noise x_0 to data x_1, given x_1, edit by edit.

x_1 = a b c has a site for each token and one for each gap: · a · b · c ·
At each site z_0 stands before its edit and z_1 after it; ε is nothing at all.

    token v : z_1 = v, and z_0 = ε with probability `blank`, else a uniform token
    gap     : z_1 = ε, and z_0 = a uniform token with probability `extra`, else ε

Each site makes its edit at its own uniform time κ in [0, 1] (the paper's κ_t): P(z_κ = z_1) = κ,
else z_κ = z_0. x_κ is z_κ without ε. A site that differs from z_1 is a pending edit: an insertion
(z_κ = ε), a deletion (z_1 = ε) or a substitution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from indel import checks
from indel.batch import PADDING, Batch, pack
from indel.comparison.alignment_lattice import AlignmentLattice

BLANK = PADDING
"""ε: stored like padding, so that packing a row takes it out."""


class PendingEdits(NamedTuple):
    """How many edits of each kind are pending, or are expected to be."""

    insert: Float[Tensor, "batch slots tokens"]
    """Of token v right before position j, or before the end."""
    token: Float[Tensor, "batch length values"]
    """Of position j: it becomes token v (0…K−1), which for v = x_j is no edit, or goes (K)."""


@dataclass(frozen=True)
class EditPath:
    """One draw of the path z for each x_1: sites · a · b · c · in this order."""

    before: Int[Tensor, "batch sites"]
    after: Int[Tensor, "batch sites"]
    times: Float[Tensor, "batch sites"]
    vocab_size: int

    def at(self, kappa: Float[Tensor, " batch"]) -> tuple[Batch, PendingEdits]:
        """x_κ, and the edits that are pending in it by this alignment."""
        now = torch.where(self.times < kappa[:, None], self.after, self.before)
        present = now != BLANK
        x = Batch(pack(now, present, fill=BLANK), present.sum(dim=1)).trimmed()
        position = present.cumsum(dim=1) - present.long()
        value = torch.where(self.after == BLANK, self.vocab_size, self.after)
        missing = ~present & (self.after != BLANK)
        return x, PendingEdits(
            insert=_counted(position, value, missing, x.width + 1, self.vocab_size),
            token=_counted(position, value, present, x.width, self.vocab_size + 1),
        )


def _counted(
    place: Int[Tensor, "batch sites"],
    value: Int[Tensor, "batch sites"],
    counts: Bool[Tensor, "batch sites"],
    places: int,
    values: int,
) -> Float[Tensor, "batch {places} {values}"]:
    """How many of the sites that count have each place and value."""
    # Sites that do not count go to an entry of their own, which is then cut off.
    entry = torch.where(counts, place * values + value, places * values)
    flat = torch.zeros(len(place), places * values + 1, device=place.device)
    flat = flat.scatter_add(1, entry, torch.ones_like(entry, dtype=flat.dtype))
    return flat[:, :-1].reshape(len(place), places, values)


@dataclass(frozen=True)
class EditSource:
    """How x_0 is made from x_1; blank = 1 and extra = 0 is the empty sequence."""

    vocab_size: int
    blank: float
    extra: float

    def __post_init__(self) -> None:
        checks.probability("blank", self.blank)
        checks.probability("extra", self.extra)

    @property
    def inserts(self) -> bool:
        """Whether a token of x_1 can be missing."""
        return self.blank > 0

    @property
    def substitutes(self) -> bool:
        """Whether a token can be wrong."""
        return self.blank < 1

    @property
    def deletes(self) -> bool:
        """Whether there can be a token too many."""
        return self.extra > 0

    def path(self, x_1: Batch, *, generator: torch.Generator) -> EditPath:
        """Draw z_0 and the time of each site's edit, given x_1."""

        def noise(width: int) -> Float[Tensor, "batch width"]:
            shape = (len(x_1), width)
            return torch.rand(shape, generator=generator, device=generator.device).to(x_1.device)

        gaps, tokens = x_1.width + 1, x_1.width
        uniform = (noise(gaps + tokens) * self.vocab_size).long().clamp_max(self.vocab_size - 1)
        is_gap = torch.arange(gaps, device=x_1.device) <= x_1.lengths[:, None]
        extra = is_gap & (noise(gaps) < self.extra)
        kept = x_1.mask & (noise(tokens) >= self.blank)
        nothing = torch.full_like(uniform, BLANK)
        before = interleaved(
            torch.where(extra, uniform[:, :gaps], nothing[:, :gaps]),
            torch.where(kept, uniform[:, gaps:], nothing[:, gaps:]),
        )
        after = interleaved(nothing[:, :gaps], x_1.tokens)
        return EditPath(before, after, noise(gaps + tokens), self.vocab_size)

    def lattice(self, x_1: Batch, x: Batch, kappa: Float[Tensor, " batch"]) -> AlignmentLattice:
        """The weights of all alignments of x_1 with x at κ, times K for each token of x."""
        # In double precision: products of many probabilities, and 1 − κ may be small. The factor K
        # makes the weights of ways through few and through many tokens comparable.
        left = 1.0 - kappa.double()
        equal = x_1.tokens[:, :, None] == x.tokens[:, None, :]
        right = torch.where(equal, self.vocab_size * (1.0 - left[:, None, None]), 0.0)
        replace = right + (left * (1.0 - self.blank))[:, None, None]
        return AlignmentLattice(
            extra=left * self.extra,
            no_extra=1.0 - left * self.extra,
            blank=left * self.blank,
            replace=replace,
            source_lengths=x_1.lengths,
            lengths=x.lengths,
        )

    def log_prob(
        self, x_1: Batch, x: Batch, kappa: Float[Tensor, " batch"]
    ) -> Float[Tensor, " batch"]:
        """log p_κ(x | x_1), summed over all alignments."""
        factor = x.lengths.double() * math.log(self.vocab_size)
        return self.lattice(x_1, x, kappa).log_prob() - factor

    def expected_edits(self, x_1: Batch, x: Batch, kappa: Float[Tensor, " batch"]) -> PendingEdits:
        """The expected pending edits given x_κ = x and x_1, over all alignments.

        Divided by 1 − κ these are the rates (per unit of κ) of the Markov process on sequences
        that has the law p_κ(x | x_1) at every κ.
        """
        found = self.lattice(x_1, x, kappa).posterior()
        values = functional.one_hot(x_1.tokens.clamp_min(0), self.vocab_size).to(found.blank.dtype)
        token = torch.einsum("bij,biv->bjv", found.source, values)
        return PendingEdits(
            insert=torch.einsum("bij,biv->bjv", found.blank, values).float(),
            token=torch.cat([token, found.extra[..., None]], dim=2).float(),
        )

    def prob_length(self, longest: int) -> Float[Tensor, "data source"]:
        """P(|x_0| = m | |x_1| = n) for n = 0…longest, m = 0…2·longest + 1."""
        law = torch.zeros(longest + 1, 2 * longest + 2, dtype=torch.float64)
        law[0, 0], law[0, 1] = 1.0 - self.extra, self.extra
        for n in range(longest):
            with_token = self.blank * law[n]
            with_token[1:] += (1.0 - self.blank) * law[n, :-1]
            law[n + 1] = (1.0 - self.extra) * with_token
            law[n + 1, 1:] += self.extra * with_token[:-1]
        return law


def interleaved(
    slots: Int[Tensor, "batch slots"], tokens: Int[Tensor, "batch length"]
) -> Int[Tensor, "batch sites"]:
    """slot 0, token 0, slot 1, token 1, …, the last slot."""
    pairs = torch.stack([slots[:, :-1], tokens], dim=2).flatten(1)
    return torch.cat([pairs, slots[:, -1:]], dim=1)
