"""What the forward process made of a batch: it travels from the corruption to the loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from indel.batch import Batch, pack
from indel.process import INSERTED, Edits, Schedule, corrupt, sample_edits
from indel.randomness import Randomness


class SeenEdits(NamedTuple):
    """The edits at the tokens that the network sees, and at EOS."""

    origin: Int[Tensor, "batch length"]
    """The token of x_0 that each comes from; any number where it was inserted."""
    inserted: Bool[Tensor, "batch length"]
    deleted: Int[Tensor, "batch slots"]
    """How many tokens of x_0 were deleted without a trace before each token, and before EOS."""


@dataclass(frozen=True)
class Noised:
    """Data x_0, the noisy x_t, what the network sees of it, and the edits between them."""

    x_0: Batch
    x_t: Batch
    seen: Batch
    """x_t without INS."""
    edits: Edits | None
    """a_{0→t}; None where it is not known: terms are then averages over all of them."""
    t: Int[Tensor, " batch"]

    @classmethod
    def of(
        cls,
        schedule: Schedule,
        x_0: Batch,
        x_t: Batch,
        edits: Edits | None,
        t: Int[Tensor, " batch"],
    ) -> Noised:
        """Given sequences and edits."""
        return cls(x_0, x_t, x_t.without(schedule.ins), edits, t)

    @classmethod
    def draw(
        cls,
        schedule: Schedule,
        x_0: Batch,
        t: Int[Tensor, " batch"],
        *,
        generator: Randomness,
        max_length: int | None = None,
    ) -> Noised:
        """x_t and the edits drawn from q(x_t, a_{0→t} | x_0), as `corrupt` does."""
        x_t, edits = corrupt(schedule, x_0, t, generator=generator, max_length=max_length)
        return cls.of(schedule, x_0, x_t, edits, t)

    def with_edits(self, edits: Edits | None) -> Noised:
        """The same sequences with another edit summary, or with none."""
        return replace(self, edits=edits)

    def with_other_edits(self, schedule: Schedule, *, generator: Randomness) -> Noised:
        """The same sequences with edits drawn anew from q(a_{0→t} | x_0, x_t)."""
        edits = sample_edits(schedule, self.x_0, self.x_t, self.t, generator=generator)
        return self.with_edits(edits)

    def seen_edits(self, *, ins: int) -> SeenEdits:
        """The edits as those of the tokens that are not INS."""
        if self.edits is None:
            raise ValueError("the edits of x_t are not known, so there are none of what is seen")
        x_t, seen, edits = self.x_t, self.seen, self.edits
        kept = x_t.mask & (x_t.tokens != ins)
        source = pack(edits.source, kept, fill=INSERTED)[:, : seen.width]
        deleted = pack(edits.deletions[:, :-1], kept, fill=0)[:, : seen.width]
        deleted = torch.nn.functional.pad(deleted, (0, 1))
        at_end = edits.deletions.gather(1, x_t.lengths[:, None])
        deleted = deleted.scatter(1, seen.lengths[:, None], at_end)
        origin = self.x_0.tokens.gather(1, source.clamp_min(0)) if self.x_0.width else source
        return SeenEdits(origin, source == INSERTED, deleted)
