"""The learned law of the length of x_T, the only thing that is left of a sequence then."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn
from torch.nn import functional

from indel import checks
from indel.randomness import Randomness, uniform


class LengthTable(nn.Module):
    """p_θ(|x_T|): one entry for each length 0…max_length, and a geometric tail.

    p(n) = softmax(logits)[n] up to max_length; beyond, with one more entry for "longer",
    p(n) = softmax(logits)[max_length+1] · (1−g) g^{n−max_length−1}. So it sums to 1 over all n ≥ 0.
    It starts uniform over the entries with g = ½.

    Paper: App. C.1 (a table; the tail makes the bound hold for every length)
    """

    def __init__(self, max_length: int) -> None:
        super().__init__()
        checks.integer("max_length", max_length, least=0)
        self.max_length = max_length
        self.logits = nn.Parameter(torch.zeros(max_length + 2))
        self.logit_tail = nn.Parameter(torch.zeros(()))
        """g = sigmoid(logit_tail): how likely a sequence in the tail goes on."""

    def log_prob(self, lengths: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """log p_θ(n) for each length n ≥ 0."""
        if bool((lengths < 0).any()):
            raise ValueError(f"lengths must be ≥ 0, got {int(lengths.min())}")
        logp = functional.log_softmax(self.logits, dim=0)
        longer = self.max_length + 1
        excess = lengths - longer
        # A tail of exactly one length has g = 0: nothing times −∞ is nothing.
        further = torch.where(excess > 0, excess * functional.logsigmoid(self.logit_tail), 0.0)
        tail = functional.logsigmoid(-self.logit_tail) + further
        return logp[lengths.clamp_max(longer)] + torch.where(excess >= 0, tail, 0.0)

    @torch.no_grad()
    def sample(self, rows: int, *, generator: Randomness) -> Int[Tensor, "{rows}"]:
        """Draw a length for each row: by the table, then on along the tail."""
        dtype = torch.float32 if self.logits.device.type == "mps" else torch.float64
        noise = uniform(generator, rows, 2, dtype=dtype)
        cumulative = functional.softmax(self.logits.to(dtype), dim=0).cumsum(0)
        # Divided by its end, it ends at exactly 1: no noise in [0, 1) lies beyond it.
        cumulative = cumulative / cumulative[-1]
        lengths = torch.searchsorted(cumulative, noise[:, 0].contiguous(), right=True)
        more = functional.logsigmoid(self.logit_tail.to(dtype))
        further = torch.floor(torch.log1p(-noise[:, 1]) / more).long()
        return torch.where(lengths > self.max_length, lengths + further, lengths)

    @torch.no_grad()
    def fit(self, counts: Num[Tensor, " lengths"], *, smoothing: float = 1.0) -> None:
        """Set the table to how often each length 0, 1, … was seen (`torch.bincount`).

        p(n) ∝ counts[n] + smoothing, and likewise for "longer" and for going on in the tail.
        With no smoothing an unseen length has probability 0.
        """
        if not bool((torch.isfinite(counts) & (counts >= 0)).all()):
            raise ValueError(f"counts must be finite and ≥ 0, got {counts.tolist()}")
        if not smoothing >= 0.0:
            raise ValueError(f"smoothing must be ≥ 0, got {smoothing!r}")
        counts = counts.to(self.logits)
        if float(counts.sum()) + smoothing == 0.0:
            raise ValueError("counts must not all be 0 without smoothing")
        longer = self.max_length + 1
        beyond = counts[longer:]
        table = functional.pad(counts[:longer], (0, max(0, longer - len(counts))))
        self.logits.copy_(torch.log(torch.cat([table, beyond.sum()[None]]) + smoothing))
        if float(beyond.sum()) + smoothing > 0.0:
            went_on = (beyond * torch.arange(len(beyond), device=beyond.device)).sum() + smoothing
            stopped = beyond.sum() + smoothing
            # The logit of went_on / (went_on + stopped), the likeliest g.
            self.logit_tail.copy_(torch.log(went_on) - torch.log(stopped))
