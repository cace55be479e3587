"""The training objective: one term L_{t−1} of the bound in closed form, and L_T.

L = E[−log p_θ(x_T)] + Σ_t E[−log p_θ(x_{t−1}|x_t) + log q(x_t|x_{t−1})], in nats per sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.bound.deletion_entropies import deletion_terms
from indel.bound.noised import Noised, SeenEdits
from indel.bound.times import TimeDistribution
from indel.bound.token_entropies import token_terms
from indel.log_space import weighted
from indel.model.denoiser import DenoiserOutput
from indel.model.length import LengthTable
from indel.model.reverse import EditWeights, ReverseStep
from indel.process import Schedule
from indel.process.counts import slot_laws
from indel.process.length_distribution import last_length_distributions
from indel.process.posteriors import (
    posterior_of_possible,
    prob_pair,
    refuse_impossible_edits,
)
from indel.process.tables import Tables
from indel.randomness import Randomness

Denoise = Callable[[Batch, Tensor], DenoiserOutput]
"""The network: x_t without INS and t in, logits out."""


class StepTerms(NamedTuple):
    """One term L_{t−1} for each sequence, in parts; their sum is the term."""

    tokens: Float[Tensor, " batch"]
    """−E log p_θ of the tokens' values."""
    deletions: Float[Tensor, " batch"]
    """−E log p_θ of the numbers of DELs."""
    forward: Float[Tensor, " batch"]
    """E log q(x_t | x_{t−1}), at most 0."""

    @property
    def total(self) -> Float[Tensor, " batch"]:
        """L_{t−1}."""
        return self.tokens + self.deletions + self.forward


class Loss(NamedTuple):
    """An unbiased estimate of the bound for each sequence, in nats, from one random t each."""

    total: Float[Tensor, " batch"]
    terms: StepTerms
    """L_{t−1} at the drawn t, not weighted."""
    length: Float[Tensor, " batch"]
    """L_T."""
    t: Int[Tensor, " batch"]
    weight: Float[Tensor, " batch"]
    """Of the term at t: total = weight · terms.total + length."""


@dataclass(frozen=True)
class Objective:
    """Draws x_t for given data and evaluates the bound at t.

    Paper: Eqs. (2) and (3)
    """

    schedule: Schedule
    _: KW_ONLY
    max_length: int | None = None
    """Over-long x_t are drawn again, as in the paper; None means no limit."""
    edit_samples: int = 1
    """How many edit summaries are averaged; 1 takes the one that made x_t."""
    marginalize: bool = False
    """Sum over all edit summaries instead: lower variance, at a higher price."""
    weights: EditWeights | None = None

    def __post_init__(self) -> None:
        self.schedule.check_ends_empty()
        if self.edit_samples < 1:
            raise ValueError(f"edit_samples must be at least 1, got {self.edit_samples}")

    def __call__(
        self,
        denoise: Denoise,
        length: LengthTable,
        x_0: Batch,
        *,
        generator: Randomness,
        t: Int[Tensor, " batch"] | None = None,
        weight: Float[Tensor, " batch"] | None = None,
    ) -> Loss:
        """The loss of each sequence at its time t, weight · L_{t−1} + L_T.

        With t ~ P(t) and weight = 1 / P(t) (`TimeDistribution.draw`) its mean is the bound. Without
        a t, one is drawn uniformly.

        Paper: Eq. (2), with t drawn at random
        """
        if t is None or weight is None:
            if t is not None or weight is not None:
                raise ValueError("t and weight must be given together, got one of them")
            times = TimeDistribution.uniform(self.schedule.num_steps, device=x_0.device)
            t, weight = times.draw(len(x_0), generator=generator)
        terms = self.terms(denoise, x_0, t, generator=generator)
        at_end = length_term(self.schedule, length, x_0.lengths)
        total = weight.to(terms.total.dtype) * terms.total + at_end
        return Loss(total, terms, at_end, t, weight)

    def terms(
        self, denoise: Denoise, x_0: Batch, t: Int[Tensor, " batch"], *, generator: Randomness
    ) -> StepTerms:
        """L_{t−1}, averaged over the edit summaries; q has drawn these, so it can make them."""
        noised = Noised.draw(self.schedule, x_0, t, generator=generator, max_length=self.max_length)
        output = denoise(noised.seen, t)
        if self.marginalize:
            return _possible_terms(self.schedule, output, noised.with_edits(None), self.weights)
        draws = [noised]
        for _ in range(self.edit_samples - 1):
            draws.append(noised.with_other_edits(self.schedule, generator=generator))
        each = [_possible_terms(self.schedule, output, draw, self.weights) for draw in draws]
        return StepTerms(*(torch.stack(part).mean(dim=0) for part in zip(*each, strict=True)))


def step_terms(
    schedule: Schedule, output: DenoiserOutput, noised: Noised, weights: EditWeights | None = None
) -> StepTerms:
    """L_{t−1} in closed form for one edit summary, or averaged over all where it is not known.

    The average has the same mean over x_t and a smaller variance.

    Paper: Eq. (3)
    """
    if noised.edits is not None:
        refuse_impossible_edits(schedule, noised.x_0, noised.x_t, noised.edits, noised.t)
    return _possible_terms(schedule, output, noised, weights)


def _possible_terms(
    schedule: Schedule, output: DenoiserOutput, noised: Noised, weights: EditWeights | None
) -> StepTerms:
    """`step_terms` for edits that q can make, in the fast way if there is one."""
    tables = schedule.tables(noised.x_t.device)
    weights = EditWeights.normalized(tables.jump) if weights is None else weights
    mixtures = tables.mixtures()
    if noised.edits is None or mixtures is None:
        return _dense_terms(schedule, output, noised, weights)
    edits = noised.seen_edits(ins=schedule.ins)
    tokens = token_terms(mixtures, weights, output.logits_token, noised.seen, edits, noised.t)
    forward = tokens.forward.sum(dim=1)
    return StepTerms(
        tokens=tokens.cross_entropy.sum(dim=1),
        deletions=_deletion_cross_entropy(tables, weights, output, noised, edits),
        forward=forward + _log_inserts(tables, noised).to(forward.dtype),
    )


def length_term(
    schedule: Schedule, length: LengthTable, lengths: Int[Tensor, " batch"]
) -> Float[Tensor, " batch"]:
    """L_T = E[−log p_θ(|x_T|)] with the exact law of |x_T| given |x_0|.

    Paper: Sec. 3.3
    """
    schedule.check_ends_empty()
    law, rows = last_length_distributions(schedule, lengths)
    logp = length.log_prob(torch.arange(law.shape[1], device=law.device))
    return -weighted(law.to(logp.dtype), logp).sum(dim=-1)[rows]


def _dense_terms(
    schedule: Schedule, output: DenoiserOutput, noised: Noised, weights: EditWeights | None
) -> StepTerms:
    """The same by way of the dense posterior: for any transition, and for all summaries at once."""
    x_0, x_t, edits, t = noised.x_0, noised.x_t, noised.edits, noised.t
    law = posterior_of_possible(schedule, x_0, x_t, edits, t)
    largest = output.logits_deletions.shape[-1] - 1
    if edits is not None and edits.deletions.numel():
        _check_deletions(int(edits.deletions.max()), largest)
    reverse = ReverseStep.of(schedule, output, noised.seen, t, weights=weights)
    entropy = reverse.cross_entropy(law, x_t)
    # With the edits unknown more deletions than the network knows only cost something, unless
    # nothing else explains the DELs.
    if bool((entropy.deletions == torch.inf).any()):
        _check_deletions(x_0.width, largest)
    return StepTerms(*entropy, law.expected_log_step.to(entropy.tokens.dtype))


def _deletion_cross_entropy(
    tables: Tables, weights: EditWeights, output: DenoiserOutput, noised: Noised, edits: SeenEdits
) -> Float[Tensor, " batch"]:
    """−Σ_n q(n_obs = n) log Σ_m p̃(m) M_{t−1}[m, n], summed over the slots."""
    seen, t, deleted = noised.seen, noised.t, edits.deleted
    largest = output.logits_deletions.shape[-1] - 1
    _check_deletions(int(deleted.max()) if deleted.numel() else 0, largest)
    dtype = torch.promote_types(output.logits_deletions.dtype, torch.float32)
    pair = prob_pair(tables, edits.origin, seen.tokens, t[:, None])
    pair = torch.nn.functional.pad(pair.masked_fill(edits.inserted, 0.0), (0, 1))
    laws = slot_laws(tables.jump, t, deleted, pair, largest, dtype)
    positions = torch.arange(seen.width + 1, device=t.device)
    laws.slots.masked_fill_((positions > seen.lengths[:, None])[..., None], 0.0)
    return deletion_terms(laws, weights, output.logits_deletions, t).sum(dim=1)


def _log_inserts(tables: Tables, noised: Noised) -> Float[Tensor, " batch"]:
    """#INS·log α_t + (|w| + 1) log(1 − α_t), what E[log q(x_t|x_{t−1})] has besides the tokens."""
    insert, remaining = tables.step.insert[noised.t], noised.seen.lengths
    inserts = (noised.x_t.lengths - remaining).to(insert.dtype)
    return torch.xlogy(inserts, insert) + (remaining + 1) * torch.log1p(-insert)


def _check_deletions(most: int, largest: int) -> None:
    if most > largest:
        raise ValueError(
            f"{most} tokens were deleted in one slot, but the network predicts at most "
            f"{largest}: max_deletions must be at least {most}"
        )
