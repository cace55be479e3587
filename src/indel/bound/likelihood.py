"""The bound on −log p_θ(x_0) of given data: by sampled chains, in closed form, over a data set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.bound.estimates import BoundEstimate, BoundParts, SequenceBounds, accumulate
from indel.bound.noised import Noised
from indel.bound.objective import Denoise, length_term, step_terms
from indel.model.denoiser import Denoiser, DenoiserOutput
from indel.model.reverse import EditWeights, ReverseStep
from indel.process import Schedule, corrupt_chain, log_prob, log_prob_step, log_prob_within
from indel.process.length_distribution import length_distribution
from indel.randomness import Randomness, split, uniform
from indel.sharing import ALONE, Processes

__all__ = [
    "BoundEstimate",
    "SequenceBounds",
    "accumulate",
    "chain_bound",
    "closed_form_bound",
    "evaluate",
    "importance_weighted_bound",
]


LengthLimit = int | Literal["own"] | None
"""The longest x_t: a number, None for any length, or the model's own limit."""


class ChainTerms(NamedTuple):
    """One term L_{t−1} for each sequence; their sum is the term."""

    tokens: Float[Tensor, " batch"]
    deletions: Float[Tensor, " batch"]
    forward: Float[Tensor, " batch"]
    limit: Float[Tensor, " batch"]


def chain_bound(
    denoiser: Denoiser,
    x_0: Batch,
    *,
    generator: Randomness,
    max_length: LengthLimit = "own",
    num_times: int | None = None,
    weights: EditWeights | None = None,
) -> SequenceBounds:
    """One sample of the bound for each sequence, from a chain of q′ = q / P(|x_t| ≤ max | x_{t−1}).

    log q′(x_{1:T}|x_0) / p_θ(x_{0:T}) = log q(x_T|x_0) / p_θ(x_T)
        + Σ_t [log q(x_{t−1}|x_t,x_0) / p_θ(x_{t−1}|x_t) − log P(|x_t| ≤ max | x_{t−1})]

    as log q(x_{t−1}|x_t,x_0) = log q(x_t|x_{t−1}) − log q(x_t|x_0) + log q(x_{t−1}|x_0), where the
    last two cancel between the steps but for log q(x_T|x_0). Without a limit the mean of each term
    is a Kullback–Leibler divergence, so at least 0.

    Its mean is at least −log Σ p_θ(x_{0:T}) over the chains that keep the limit, and so at least
    −log p_θ(x_0). p_θ is not restricted: what its table gives to lengths over the limit is lost,
    −log P_θ(|x_T| ≤ max) nats, and the bound holds for the model as it is, with a limit or without.
    It is +∞ where p_θ cannot have made the chain: a network with too few `max_deletions`.

    The limit and the weights of the edits are the model's own unless they are given.

    With `num_times` = m only m random t per sequence are evaluated, weighted by T / m: the mean is
    the same, at a fraction of the cost.

    Paper: Eq. (2), App. C.3
    """
    max_length = denoiser.length_limit if max_length == "own" else max_length
    weights = own_weights(denoiser, x_0) if weights is None else weights
    _check(denoiser, x_0, max_length)
    times = draw_times(denoiser.schedule, x_0, num_times, generator)
    noise = split(generator)
    terms, logp_last, last = chain_terms(
        denoiser, denoiser.schedule, x_0, times, max_length, weights, generator=noise
    )
    length = logp_last - denoiser.length.log_prob(last)
    return assembled(denoiser.schedule, x_0.lengths, times, terms, length)


def closed_form_bound(
    denoiser: Denoiser,
    x_0: Batch,
    *,
    generator: Randomness,
    num_times: int | None = None,
    marginalize: bool = False,
    weights: EditWeights | None = None,
) -> SequenceBounds:
    """The bound without a length limit, from a jump to x_t and closed forms for each t.

    E[−log p_θ(|x_T|)] + Σ_t E_{q(x_{t−1}|x_t,x_0,a)}[−log p_θ(x_{t−1}|x_t) + log q(x_t|x_{t−1})]

    Its `by_time` holds these terms, each with an equal share of the entropy of |x_T|, and not the
    divergences of `chain_bound`: they may be negative.
    It has the mean of `chain_bound` with no limit, by another way: a check. Its noise is mostly
    larger (std 8.3 against 2.2 nats on a toy language at rate 0.5): each t has an x_t of its own,
    and only along one chain does log q(x_t|x_0) cancel between the terms.
    `marginalize` sums over all edit summaries a instead of taking the one that was drawn;
    `num_times` chooses random t, as in `chain_bound`.

    Paper: Eqs. (2) and (3)
    """
    _check(denoiser, x_0, None)
    schedule = denoiser.schedule
    weights = own_weights(denoiser, x_0) if weights is None else weights
    times = draw_times(schedule, x_0, num_times, generator)
    noise = split(generator)
    terms = []
    for t in times:
        noised = Noised.draw(schedule, x_0, t, generator=noise)
        output = _predict(denoiser, schedule, noised.seen, t)
        known = noised.with_edits(None) if marginalize else noised
        term = step_terms(schedule, output, known, weights)
        terms.append(ChainTerms(*term, torch.zeros_like(term.total)))
    cross_entropy = length_term(schedule, denoiser.length, x_0.lengths)
    entropy = _length_entropy(schedule, x_0.lengths)
    # As in `chain_bound`: what q itself says of x_T belongs to the length.
    terms = [term._replace(forward=term.forward + entropy / schedule.num_steps) for term in terms]
    length = cross_entropy - entropy
    return assembled(schedule, x_0.lengths, times, terms, length)


def importance_weighted_bound(
    denoiser: Denoiser,
    x_0: Batch,
    *,
    generator: Randomness,
    max_length: LengthLimit = "own",
    num_chains: int,
    weights: EditWeights | None = None,
) -> SequenceBounds:
    """One sample of the tighter bound from k chains of q′ for each sequence.

    −log (1/k) Σ_i p_θ(x_{0:T}^i) / q′(x_{1:T}^i | x_0)   (Burda, Grosse, Salakhutdinov 2015)

    In the mean it falls with k, from `chain_bound` at k = 1 towards −log of what p_θ gives x_0
    through chains that keep the limit. The parts and times are means over the chains.
    """
    of_chain = partial(chain_bound, max_length=max_length, weights=weights)
    return importance_weighted(lambda: of_chain(denoiser, x_0, generator=generator), num_chains)


def importance_weighted(chain: Callable[[], SequenceBounds], num_chains: int) -> SequenceBounds:
    """The bound from k independent chains, of any bound that is −log p/q of one chain."""
    if num_chains < 1:
        raise ValueError(f"num_chains must be at least 1, got {num_chains}")
    chains = [chain() for _ in range(num_chains)]
    each = torch.stack([chain.nats for chain in chains])
    nats = math.log(num_chains) - torch.logsumexp(-each, dim=0)
    parts = [torch.stack(part).mean(dim=0) for part in zip(*(c.parts for c in chains), strict=True)]
    return SequenceBounds(
        nats,
        BoundParts(*parts)._replace(importance=nats - each.mean(dim=0)),
        torch.stack([chain.by_time for chain in chains]).mean(dim=0),
        chains[0].evaluated,
        chains[0].lengths,
    )


def evaluate(
    denoiser: Denoiser,
    batches: Iterable[Batch],
    *,
    seed: int,
    max_length: LengthLimit = "own",
    num_times: int | None = None,
    num_chains: int = 1,
    weights: EditWeights | None = None,
    first_row: int = 0,
    progress: bool | None = None,
    processes: Processes = ALONE,
) -> BoundEstimate:
    """The mean of `chain_bound` over a data set, or of the importance-weighted bound of k chains.

    A sequence gets its noise from (seed, its number in the data), counted from `first_row`: the
    batches may be cut anywhere, and parts of a data set evaluated apart merge into the same result.
    A bar is shown on a terminal unless `progress` says otherwise. Several processes share the
    batches (`indel.sharing`).

    Paper: Eq. (2), Tables 1 and 2
    """
    bound: Callable[..., SequenceBounds] = partial(chain_bound, num_times=num_times)
    if num_chains != 1:
        if num_times is not None:
            raise ValueError(
                f"importance weights need every t: num_times must be None with "
                f"num_chains = {num_chains}, got {num_times}"
            )
        bound = partial(importance_weighted_bound, num_chains=num_chains)

    def of_batch(x_0: Batch, generator: Randomness) -> SequenceBounds:
        return bound(denoiser, x_0, generator=generator, max_length=max_length, weights=weights)

    with evaluation_mode(denoiser):
        return accumulate(
            of_batch,
            batches,
            seed=seed,
            device=denoiser.device,
            first_row=first_row,
            progress=progress,
            processes=processes,
        )


class _Chain(NamedTuple):
    """x_0 … x_T of all rows, at one width."""

    tokens: Int[Tensor, "times batch length"]
    lengths: Int[Tensor, "times batch"]

    @classmethod
    def of(cls, chain: list[Batch]) -> _Chain:
        width = max(batch.width for batch in chain)
        tokens = torch.stack([batch.widened(width).tokens for batch in chain])
        return cls(tokens, torch.stack([batch.lengths for batch in chain]))

    def at(self, t: Int[Tensor, " batch"]) -> Batch:
        """x_t, each row at its own t."""
        rows = torch.arange(len(t), device=t.device)
        return Batch(self.tokens[t, rows], self.lengths[t, rows]).trimmed()


def chain_terms(
    denoise: Denoise,
    schedule: Schedule,
    x_0: Batch,
    times: Int[Tensor, "draws batch"],
    max_length: int | None,
    weights: EditWeights,
    *,
    generator: Randomness,
) -> tuple[list[ChainTerms], Float[Tensor, " batch"], Int[Tensor, " batch"]]:
    """Draw a chain and take its terms at some times; also log q(x_T|x_0) and |x_T|."""
    chain = corrupt_chain(schedule, x_0, generator=generator, max_length=max_length)
    stacked = _Chain.of(chain)
    terms = [
        _terms_at(denoise, schedule, stacked.at(t - 1), stacked.at(t), t, max_length, weights)
        for t in times
    ]
    shifts, logp_last = _shifts(schedule, x_0, stacked, times)
    shifted = [
        term._replace(forward=term.forward - shift)
        for term, shift in zip(terms, shifts, strict=True)
    ]
    return shifted, logp_last, chain[-1].lengths


def _terms_at(
    denoise: Denoise,
    schedule: Schedule,
    x_prev: Batch,
    x_t: Batch,
    t: Int[Tensor, " batch"],
    max_length: int | None,
    weights: EditWeights,
) -> ChainTerms:
    """log q′(x_t|x_{t−1}) / p_θ(x_{t−1}|x_t) for one pair of each chain."""
    seen = x_t.without(schedule.ins)
    output = _predict(denoise, schedule, seen, t)
    reverse = ReverseStep.of(schedule, output, seen, t, weights=weights)
    kept = x_prev.without(schedule.del_).tokens
    logp_values = reverse.logp_previous.gather(2, kept.clamp_min(0)[..., None])[..., 0]
    tokens = -logp_values.masked_fill(~seen.mask, 0.0).sum(dim=1)
    # What is left of a probability of zero is not asked for.
    deletions = torch.where(tokens == torch.inf, 0.0, -reverse.log_prob(x_prev) - tokens)
    forward = log_prob_step(schedule, x_prev, x_t, t)
    if max_length is None:
        return ChainTerms(tokens, deletions, forward, torch.zeros_like(forward))
    limit = -log_prob_within(schedule, x_prev, t, max_length)
    return ChainTerms(tokens, deletions, forward, limit)


def assembled(
    schedule: Schedule,
    lengths: Int[Tensor, " batch"],
    times: Int[Tensor, "draws batch"],
    terms: list[ChainTerms],
    length: Float[Tensor, " batch"],
) -> SequenceBounds:
    """Sum the terms at the drawn times, weighted so that the mean is the sum over all t."""
    num_steps = schedule.num_steps
    weight = num_steps / len(times)
    tokens, deletions, forward, limit = (
        weight * torch.stack(part).sum(dim=0) for part in zip(*terms, strict=True)
    )
    length = length.to(tokens.dtype)
    parts = BoundParts(tokens, deletions, forward, limit, length, torch.zeros_like(length))
    each = torch.stack([torch.stack(term).sum(dim=0) for term in terms], dim=1)
    # A t drawn twice for a sequence counts once among the means of each t.
    place = times.T - 1
    by_time = each.new_zeros(len(lengths), num_steps).scatter(1, place, each)
    evaluated = torch.zeros_like(by_time, dtype=torch.bool).scatter(1, place, True)
    return SequenceBounds(torch.stack(parts).sum(dim=0), parts, by_time, evaluated, lengths)


def _shifts(
    schedule: Schedule, x_0: Batch, chain: _Chain, times: Int[Tensor, "draws batch"]
) -> tuple[Float[Tensor, "draws batch"], Float[Tensor, " batch"]]:
    """log q(x_t|x_0) − log q(x_{t−1}|x_0) at each t that was drawn, and log q(x_T|x_0).

    That under a limit the chain is one of q′ moves terms between the steps, but not their sum: any
    function of x_t would do.
    """
    needed = torch.zeros(len(chain.tokens), dtype=torch.bool, device=times.device)
    needed[times.flatten()] = needed[times.flatten() - 1] = needed[-1] = True
    logp = torch.zeros(chain.lengths.shape, dtype=schedule.tables(x_0.device).dtype)
    logp = logp.to(times.device)
    for t in needed.nonzero()[:, 0]:
        logp[t] = log_prob(schedule, x_0, chain.at(t.expand(len(x_0))), t.expand(len(x_0)))
    return logp.gather(0, times) - logp.gather(0, times - 1), logp[-1]


def _length_entropy(schedule: Schedule, lengths: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """−E log q(x_T|x_0): of x_T only the length is random."""
    law = length_distribution(schedule, lengths, schedule.num_steps)
    return -torch.xlogy(law, law).sum(dim=-1)


def own_weights(denoiser: Denoiser, x_0: Batch) -> EditWeights:
    return denoiser.edit_weights(denoiser.schedule.tables(x_0.device).jump)


def _predict(
    denoise: Denoise, schedule: Schedule, seen: Batch, t: Int[Tensor, " batch"]
) -> DenoiserOutput:
    """The network's logits in the precision of q: what follows is summed in it."""
    dtype = schedule.tables(seen.device).dtype
    return DenoiserOutput(*(logits.to(dtype) for logits in denoise(seen, t)))


def draw_times(
    schedule: Schedule, x_0: Batch, num_times: int | None, generator: Randomness
) -> Int[Tensor, "draws batch"]:
    """Random t for each row, one from each of m equal parts of 1…T; m = T takes every t once.

    t_j = ⌊(jT + r_j) / m⌋ + 1 with r_j uniform on 0…T−1: over j, each t is expected m/T times.
    """
    num_steps, dtype = schedule.num_steps, schedule.tables(x_0.device).dtype
    many = num_steps if num_times is None else num_times
    if not 1 <= many <= num_steps:
        raise ValueError(f"num_times must lie in 1…{num_steps}, got {num_times}")
    noise = uniform(generator, len(x_0), many, dtype=dtype).T
    # In float32 the product may round up to T itself.
    drawn = (noise * num_steps).to(torch.int64).clamp_max(num_steps - 1)
    part = torch.arange(many, device=drawn.device)[:, None]
    return (part * num_steps + drawn) // many + 1


def _check(denoiser: Denoiser, x_0: Batch, max_length: int | None) -> None:
    denoiser.schedule.check_ends_empty()
    if max_length is None:
        return
    long = (x_0.lengths > max_length).nonzero()
    if len(long):
        row = int(long[0])
        raise ValueError(
            f"x_0 must not be longer than max_length = {max_length}, "
            f"got {int(x_0.lengths[row])} tokens in row {row}"
        )


@contextmanager
def evaluation_mode(denoiser: Denoiser) -> Iterator[None]:
    """Switch dropout off, and afterwards on again where it was."""
    training = {module: module.training for module in denoiser.modules()}
    denoiser.eval()
    try:
        yield
    finally:
        for module, mode in training.items():
            module.training = mode
