"""The deletions part of L_{t−1}: −Σ_n q(n_obs = n) log Σ_m p̃(m) M_{t−1}[m, n] for each slot.

A product of matrices in the logits' own precision, with one pass over the logits each way. All
sums are of positive numbers, so no digits cancel; slots where they underflow are summed again in
log space and float64.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.log_space import finite, logsumexp, weighted
from indel.model.reverse import EditWeights, log_deleted
from indel.process.counts import SlotLaws

Slots = Float[Tensor, "batch slots"]


def deletion_terms(
    laws: SlotLaws,
    weights: EditWeights,
    logits: Float[Tensor, "batch slots counts"],
    t: Int[Tensor, " batch"],
) -> Slots:
    """The cross-entropy of each slot in nats; 0 for a slot without a law.

    Paper: Eq. (3) and App. B.4
    """
    logits = logits.to(laws.slots.dtype)
    counts = torch.arange(logits.shape[-1], device=t.device)
    each = weights.log_delete[t].to(logits.dtype)[:, None]
    allowed = torch.where(counts > 0, counts * each, 0.0)
    total: Tensor
    total, lost = _DeletionSum.apply(  # type: ignore[no-untyped-call]
        logits, allowed[:, None, :], laws.plain, laws.slots
    )
    rows, slots = lost.nonzero(as_tuple=True)
    if len(rows):
        logp = log_deleted(logits[rows, slots, None].double(), t[rows], weights)[:, 0]
        logp = logsumexp(logp[..., None] + laws.plain[rows].double().log(), dim=1)
        again = -weighted(laws.slots[rows, slots].double(), logp).sum(dim=-1)
        total = total.index_put((rows, slots), again.to(total.dtype))
    return total


class _DeletionSum(torch.autograd.Function):
    """−Σ_n law_n log(Σ_m e_m M[m, n] / Σ_m e_m) with e = exp(logits + allowed)."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, allowed: Tensor, plain: Tensor, law: Tensor
    ) -> tuple[Tensor, Tensor]:
        values = logits + allowed
        values.sub_(finite(values.amax(dim=-1, keepdim=True))).exp_()
        total = values.sum(dim=-1)
        reached = values @ plain
        # What is lost of a sum by underflow is less than N · tiny.
        floor = 1e8 * torch.finfo(values.dtype).tiny
        counts = law > 0
        lost = ((reached < floor) & counts).any(dim=-1)
        counts &= ~lost[..., None]
        law = law.masked_fill(~counts, 0.0)
        reached.masked_fill_(~counts, 1.0)
        mass = law.sum(dim=-1)
        ctx.save_for_backward(values, plain, law / reached, mass / total)
        ctx.mark_non_differentiable(lost)
        return mass * total.log() - (law * reached.log_()).sum(dim=-1), lost

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        values, plain, ratio, share = ctx.saved_tensors
        grad = grads[0][..., None]
        # d/d logit_m = e_m (Σ_n law_n / Σ e − Σ_n M[m, n] law_n / reached_n)
        each = torch.baddbmm(
            share[..., None] * grad, ratio * grad, plain.transpose(1, 2), alpha=-1.0
        )
        return each.mul_(values), None, None, None
