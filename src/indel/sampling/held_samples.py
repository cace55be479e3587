"""What sampling with frozen tokens gives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.sampling.conditioning import Held
from indel.sampling.patterns import Pattern
from indel.vocabularies import Vocabulary


@dataclass(frozen=True)
class HeldSamples:
    """Sequences x_0 that match a pattern, one from each run of particles."""

    x: Batch
    frozen: Bool[Tensor, "batch length"]
    """Which tokens are the frozen ones."""
    pattern: Pattern
    log_normalizer: Float[Tensor, " batch"]
    """log of an unbiased estimate of the target's total weight: of p_θ(the frozen tokens are in
    place at all times, gaps as asked), times E[exp(strength · reward)] under that condition."""
    effective: Float[Tensor, "times batch"]
    """(Σw)² / Σw² of the particles at t = T … 0, before they are resampled."""
    resampled: Bool[Tensor, "times batch"]
    """Whether they then were."""
    network_calls: int
    redrawn: Int[Tensor, " batch"]
    """How often the sample came out longer than allowed on its way, and was drawn again."""
    dropped: Int[Tensor, " batch"]
    """How many DELs and INS were taken off it because no draw was short enough."""
    possible: Bool[Tensor, " batch"]
    """Whether any particle fitted what was asked for; `sample_held` returns no others."""
    vocabulary: Vocabulary

    @property
    def texts(self) -> list[str]:
        """What each row spells (`Vocabulary.text`)."""
        return [self.vocabulary.text(row) for row in self.x.to_lists()]

    @property
    def gaps(self) -> list[tuple[str, ...]]:
        """What each row has in the gaps, one text for each of them."""
        found = []
        numbers = Held(self.x, self.frozen).gap_numbers().tolist()
        for row, own, where in zip(self.x.to_lists(), self.frozen.tolist(), numbers, strict=True):
            parts: dict[int, list[int]] = {
                number: [] for number, gap in enumerate(self.pattern.gaps) if gap is not None
            }
            for token, is_frozen, number in zip(row, own, where, strict=False):
                if not is_frozen:
                    parts[number].append(token)
            found.append(tuple(self.vocabulary.text(part) for part in parts.values()))
        return found

    @classmethod
    def joined(cls, parts: list[HeldSamples]) -> HeldSamples:
        """The rows of several runs, one after the other."""
        width = max(part.x.width for part in parts)
        pad = torch.nn.functional.pad
        return replace(
            parts[0],
            x=Batch(
                torch.cat([part.x.widened(width).tokens for part in parts]),
                torch.cat([part.x.lengths for part in parts]),
            ),
            frozen=torch.cat([pad(part.frozen, (0, width - part.x.width)) for part in parts]),
            log_normalizer=torch.cat([part.log_normalizer for part in parts]),
            effective=torch.cat([part.effective for part in parts], dim=1),
            resampled=torch.cat([part.resampled for part in parts], dim=1),
            network_calls=sum(part.network_calls for part in parts),
            redrawn=torch.cat([part.redrawn for part in parts]),
            dropped=torch.cat([part.dropped for part in parts]),
            possible=torch.cat([part.possible for part in parts]),
        )

    def rows(self, index: Int[Tensor, " rows"]) -> HeldSamples:
        """The chosen rows."""
        return replace(
            self,
            x=self.x.rows(index),
            frozen=self.frozen[index],
            log_normalizer=self.log_normalizer[index],
            effective=self.effective[:, index],
            resampled=self.resampled[:, index],
            redrawn=self.redrawn[index],
            dropped=self.dropped[index],
            possible=self.possible[index],
        )
