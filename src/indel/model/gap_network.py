"""The network as each gap has it: it sees whole sequences, and is read gap by gap.

p_θ(x_{t−1} | x_t, frozen) = Π_gaps Π_tokens p_θ(y_i | x_t) Π_slots p_θ(n_i | x_t)

The slot before the frozen token that ends a gap, or before EOS, is the gap's last one. What the
network says of frozen tokens, and of slots outside of gaps, is not used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.model.denoiser import Denoiser, DenoiserOutput
from indel.model.length import LengthTable
from indel.process.gaps import Gaps, slots_in_gaps


@runtime_checkable
class MarkedDenoise(Protocol):
    """The network: x_t without INS, t and which tokens are frozen in, logits out."""

    def __call__(
        self,
        x_t: Batch,
        t: Tensor,
        frozen: Bool[Tensor, "batch length"] | None = None,
        *,
        open_slots: Bool[Tensor, "batch slots"] | None = None,
        start: bool = False,
    ) -> DenoiserOutput: ...


@dataclass(frozen=True)
class GapNetwork:
    """A network for a batch with a row for each gap."""

    denoise: MarkedDenoise
    gaps: Gaps

    def __call__(self, seen: Batch, t: Int[Tensor, " gaps"]) -> DenoiserOutput:
        """The logits of each gap, from all gaps of its sequence and what is frozen there."""
        joined = self.gaps.join(seen)
        # A sequence that has no gap is not asked about; any time will do.
        times = torch.ones_like(joined.x.lengths).index_put((self.gaps.row,), t)
        open_slots = slots_in_gaps(joined.frozen, self.gaps.open)
        output = self.denoise(joined.x, times, joined.frozen, open_slots=open_slots)
        return DenoiserOutput(
            self.gaps.read(output.logits_token, joined.starts, seen.width),
            self.gaps.read(output.logits_deletions, joined.starts, seen.width + 1),
        )

    def log_start(self, table: LengthTable, last: int, most: int) -> Float[Tensor, "gaps {most}+1"]:
        """log p_θ(n DELs of x_T lie in the gap), n = 0…most, for each gap.

        Where nothing is frozen this is the table p_θ(|x_T|). Otherwise the network sees the frozen
        tokens alone, and its second head has n = 0…N−1 and "N or more", which then goes on like
        the tosses of a coin: p(n) = p̃(N) / 2^{n−N+1}. So it sums to 1 over all n ≥ 0.
        """
        counts = torch.arange(most + 1, device=self.gaps.row.device)
        whole = self.gaps.is_whole
        logp = table.log_prob(counts).expand(len(whole), -1)
        rows, which = torch.unique(self.gaps.row[~whole], return_inverse=True)
        if not len(rows):
            return logp
        frozen = self.gaps.frozen.rows(rows)
        times = torch.full_like(frozen.lengths, last)
        open_slots = slots_in_gaps(frozen.mask, self.gaps.open[rows])
        output = self.denoise(frozen, times, frozen.mask, open_slots=open_slots, start=True)
        logits = output.logits_deletions[which, self.gaps.place[~whole]]
        longest = logits.shape[1] - 1
        tail = (counts - longest + 1).clamp_min(0) * -math.log(2.0)
        each = torch.log_softmax(logits.to(logp.dtype), dim=-1)[:, counts.clamp_max(longest)] + tail
        return logp.index_put(((~whole).nonzero()[:, 0],), each)


@dataclass(frozen=True)
class UnmarkedNetwork:
    """A denoiser that has not learned of frozen tokens in the place of one that has.

    They stand in every x_t, t < T, with their own values, in x_T as DELs. `told` says whether its
    counts know which they are, if it has any.
    """

    denoiser: Denoiser
    told: bool = True

    def __call__(
        self,
        x_t: Batch,
        t: Tensor,
        frozen: Bool[Tensor, "batch length"] | None = None,
        *,
        open_slots: Bool[Tensor, "batch slots"] | None = None,
        start: bool = False,
    ) -> DenoiserOutput:
        """The logits; it has none for the start."""
        if frozen is None or open_slots is None or start:
            raise ValueError("this network has no law of where gaps start: give their lengths at T")
        at_end = (t == self.denoiser.schedule.num_steps)[:, None]
        tokens = x_t.tokens.masked_fill(frozen & at_end, self.denoiser.schedule.del_)
        shown = Batch(tokens, x_t.lengths)
        if not self.told or self.denoiser.prior is None:
            return self.denoiser(shown, t)
        return self.denoiser(shown, t, frozen & ~at_end, open_slots=open_slots | at_end)
