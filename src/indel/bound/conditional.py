"""The bound on −log p_θ(free tokens | frozen tokens), and the loss that trains it.

Both q and p_θ, given the frozen tokens and where the gaps are, are products over the gaps; they
meet in the network, which sees the whole sequence. So each gap is a sequence of its own, and what
is known of these holds:

    −log p_θ(free | frozen) ≤ Σ_gaps E[−log p_θ(gap of x_T | frozen)
        + Σ_t log q(gap of x_t | gap of x_{t−1}) − log p_θ(gap of x_{t−1} | x_t, frozen)]

A limit on the length is kept by each gap. Where nothing is frozen all this is the usual bound.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.bound.estimates import BoundEstimate, SequenceBounds, accumulate
from indel.bound.likelihood import (
    ChainTerms,
    LengthLimit,
    assembled,
    chain_terms,
    draw_times,
    evaluation_mode,
    importance_weighted,
    own_weights,
)
from indel.bound.objective import Loss, Objective, StepTerms
from indel.log_space import weighted
from indel.model.denoiser import Denoiser
from indel.model.gap_network import GapNetwork, MarkedDenoise
from indel.model.length import LengthTable
from indel.process.freezing import Divided, Freezing
from indel.process.gaps import Gaps
from indel.process.length_distribution import last_length_distributions
from indel.randomness import Randomness, split
from indel.sharing import ALONE, Processes


def conditional_loss(
    objective: Objective,
    denoise: MarkedDenoise,
    length: LengthTable,
    divided: Divided,
    *,
    generator: Randomness,
    t: Int[Tensor, " batch"],
    weight: Float[Tensor, " batch"],
) -> Loss:
    """weight · L_{t−1} + L_T of each sequence, of its gaps alone, as `Objective` has it."""
    gaps, contents = divided
    network = GapNetwork(denoise, gaps)
    noise = gaps.noise(generator)
    terms = objective.terms(network, contents, t[gaps.row], generator=noise)
    total = StepTerms(*(gaps.summed(part) for part in terms))
    law, which = last_length_distributions(objective.schedule, contents.lengths)
    logp = network.log_start(length, objective.schedule.num_steps, law.shape[1] - 1)
    at_end = gaps.summed(-weighted(law.to(logp.dtype)[which], logp).sum(dim=-1))
    whole = weight.to(total.total.dtype) * total.total + at_end
    return Loss(whole, total, at_end, t, weight)


def conditional_bound(
    denoiser: Denoiser,
    divided: Divided,
    *,
    generator: Randomness,
    max_length: LengthLimit = "own",
    num_times: int | None = None,
) -> SequenceBounds:
    """One sample of the bound on −log p_θ(free | frozen) for each sequence, from chains.

    `lengths` and so bits per token count the free tokens. The model must have been trained with
    frozen tokens.
    """
    gaps, contents = divided
    check_marks(denoiser)
    schedule = denoiser.schedule
    schedule.check_ends_empty()
    max_length = denoiser.length_limit if max_length == "own" else max_length
    if max_length is not None and bool((contents.lengths > max_length).any()):
        raise ValueError(
            f"a gap must not be longer than max_length = {max_length}, got "
            f"{int(contents.lengths.max())} tokens"
        )
    times = draw_times(schedule, gaps.frozen, num_times, generator)
    terms, logp_last, last = chain_terms(
        GapNetwork(denoiser, gaps),
        schedule,
        contents,
        times[:, gaps.row],
        max_length,
        own_weights(denoiser, contents),
        generator=gaps.noise(split(generator)),
    )
    length = logp_last - _log_start(denoiser, gaps, last)
    return assembled(
        schedule,
        gaps.summed(contents.lengths.to(length.dtype)).long(),
        times,
        [ChainTerms(*(gaps.summed(part) for part in term)) for term in terms],
        gaps.summed(length),
    )


def evaluate_conditional(
    denoiser: Denoiser,
    batches: Iterable[Batch],
    freezing: Freezing,
    *,
    seed: int,
    max_length: LengthLimit = "own",
    num_times: int | None = None,
    num_chains: int = 1,
    first_row: int = 0,
    progress: bool | None = None,
    processes: Processes = ALONE,
) -> BoundEstimate:
    """The mean of `conditional_bound` over a data set.

    What is frozen is drawn for each sequence from its own noise. Seeds, rows and processes are
    those of `likelihood.evaluate`.
    """
    check_marks(denoiser)
    if num_chains != 1 and num_times is not None:
        raise ValueError(
            f"importance weights need every t: num_times must be None with num_chains = "
            f"{num_chains}, got {num_times}"
        )

    def of_batch(x_0: Batch, generator: Randomness) -> SequenceBounds:
        divided = freezing(x_0, generator=split(generator))
        return importance_weighted(
            lambda: conditional_bound(
                denoiser,
                divided,
                generator=generator,
                max_length=max_length,
                num_times=num_times,
            ),
            num_chains,
        )

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


def check_marks(denoiser: Denoiser) -> None:
    """Refuse a model that cannot be told what is frozen."""
    if denoiser.config.frozen == "nothing":
        raise ValueError(
            "the model was not trained with frozen tokens, so it has no conditional likelihood: "
            "train one with training.frozen = 'spans' or 'source'"
        )


def _log_start(
    denoiser: Denoiser, gaps: Gaps, counts: Int[Tensor, " gaps"]
) -> Float[Tensor, " gaps"]:
    """log p_θ(this many DELs of x_T lie in the gap | frozen)."""
    most = int(counts.max()) if len(counts) else 0
    with torch.no_grad():
        logp = GapNetwork(denoiser, gaps).log_start(
            denoiser.length, denoiser.schedule.num_steps, most
        )
    dtype = denoiser.schedule.tables(logp.device).dtype
    return logp.to(dtype).gather(1, counts[:, None])[:, 0]
