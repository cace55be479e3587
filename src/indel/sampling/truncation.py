"""Temperature and top-p: the network's guess of the edits, made bolder before q joins it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.model.denoiser import DenoiserOutput
from indel.model.reverse import EditWeights
from indel.process.tables import Tables


@dataclass(frozen=True)
class Sharpening:
    """Less noise in the network's guess p̃, at the price of variety; by default none is taken away.

    p̃(v) ∝ exp(logit_v / temperature), restricted to the likeliest values that together have at
    least `top_p` of the probability. Temperature 0 leaves the likeliest value alone.

    >>> logits = torch.tensor([0.5, 0.3, 0.2]).log()
    >>> Sharpening(top_p=0.6)(logits).softmax(dim=-1)
    tensor([0.6250, 0.3750, 0.0000])
    """

    temperature: float = 1.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not (isfinite(self.temperature) and self.temperature >= 0.0):
            raise ValueError(f"temperature must be a number ≥ 0, got {self.temperature!r}")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p must lie in (0, 1], got {self.top_p!r}")

    @property
    def is_off(self) -> bool:
        """Whether nothing is changed."""
        return self.temperature == 1.0 and self.top_p == 1.0

    def __call__(self, logits: Float[Tensor, "*rows values"]) -> Float[Tensor, "*rows values"]:
        """The sharpened logits; −inf for what is ruled out."""
        if self.temperature == 0.0:
            best = logits.argmax(dim=-1, keepdim=True)
            return torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0)
        # Dividing the largest logit's distance: a low temperature must not overflow.
        scaled = (logits - logits.amax(dim=-1, keepdim=True)) / self.temperature
        return (
            scaled if self.top_p == 1.0 else scaled.masked_fill(~self._nucleus(scaled), -torch.inf)
        )

    def _nucleus(self, logits: Float[Tensor, "*rows values"]) -> Bool[Tensor, "*rows values"]:
        prob, order = logits.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
        # A value stays as long as those before it have not reached the share: the first always.
        kept = prob.cumsum(dim=-1) - prob < self.top_p
        return torch.zeros_like(kept).scatter(-1, order, kept)


OFF = Sharpening()


def sharpened(
    output: DenoiserOutput,
    seen: Batch,
    t: Int[Tensor, " batch"],
    tables: Tables,
    weights: EditWeights,
    *,
    tokens: Sharpening,
    deletions: Sharpening,
) -> DenoiserOutput:
    """Sharpen both heads among the edits that q can make.

    Impossible edits go first: a guess sharpened to one of them would leave nothing to sample from.
    On the exact law this has no influence, since q gives them probability zero anyway.
    """
    logits_token, logits_deletions = output
    if not tokens.is_off:
        logits_token = tokens(_barred(logits_token, _possible_edits(seen, t, tables, weights)))
    if not deletions.is_off:
        counts = torch.arange(logits_deletions.shape[-1], device=t.device)
        possible = (counts == 0) | (weights.log_delete[t] > -torch.inf)[:, None, None]
        logits_deletions = deletions(_barred(logits_deletions, possible))
    return DenoiserOutput(logits_token, logits_deletions)


def _possible_edits(
    seen: Batch, t: Int[Tensor, " batch"], tables: Tables, weights: EditWeights
) -> Bool[Tensor, "batch length values"]:
    """Which of x ↦ z, for each x, and ε ↦ z (last) have a positive probability under q.

    Σ_y Ā_{t−1}[x,y] Q_t[y,z] > 0 and Σ_y ᾱ_{t−1}[y] Q_t[y,z] > 0
    """
    jump, at = tables.jump, t[:, None]
    is_del = seen.tokens > jump.vocab_size
    alive = (tables.step.delete[at] < 1) & ~is_del
    marked = (tables.step.delete[at] > 0) & is_del
    regular = seen.tokens.clamp(0, jump.vocab_size - 1)
    reached = jump.kept.columns(at, regular) > 0
    kept = (alive[..., None] & reached | marked[..., None]) & (weights.keep[t] > 0)[:, None, None]
    inserted = (jump.insert_prob(at, seen.tokens) > 0) & (weights.insert[at] > 0)
    return torch.cat([kept, inserted[..., None]], dim=-1)


def _barred(
    logits: Float[Tensor, "batch slots values"], possible: Bool[Tensor, "batch #slots values"]
) -> Float[Tensor, "batch slots values"]:
    # Where nothing at all is possible (padding, or an x_t that q cannot make) the logits stay as
    # they are: whoever combines them with q finds out, and says so.
    return logits.masked_fill(~possible & possible.any(dim=-1, keepdim=True), -torch.inf)
