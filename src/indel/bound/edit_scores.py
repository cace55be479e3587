"""How an edit changes the bound, and which edits of the forward process it most likely is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.bound.estimates import Estimate, Moments
from indel.bound.likelihood import chain_bound, evaluation_mode
from indel.model.denoiser import Denoiser
from indel.process import Schedule, log_prob, log_prob_edits, most_likely_edits
from indel.randomness import RowSeeds, seeds_for
from indel.sharing import ALONE, Processes


@dataclass(frozen=True)
class Alignment:
    """The most likely edits that make one sequence of another, under q at the likeliest t."""

    source: tuple[int, ...]
    """For each token the place in the reference that it comes from, −1 if it was inserted."""
    deleted: tuple[int, ...]
    """The places of the reference that nothing comes from."""
    prob: float
    """q(these edits | both sequences): 1 if they leave no doubt."""
    log_likelihood: float
    """log q(sequence | reference) at t, over all edits; −inf if q cannot make it."""
    t: int
    """The time at which it is largest."""


@dataclass(frozen=True)
class EditScore:
    """One sequence and its reference."""

    nats: Estimate
    """The bound on −log p_θ of the sequence."""
    reference_nats: Estimate
    """That of the reference."""
    difference: Estimate
    """The first less the second under common noise: below 0, the model prefers the sequence."""
    alignment: Alignment


def edit_scores(
    denoiser: Denoiser,
    sequences: Sequence[Sequence[int]],
    references: Sequence[Sequence[int]],
    *,
    seed: int = 0,
    chains: int = 16,
    num_times: int | None = None,
    processes: Processes = ALONE,
) -> list[EditScore]:
    """The difference of the bounds of each pair, from `chains` chains of q with common noise.

    A chain of the sequence and one of the reference share their seed, and so the noise of the
    places that they share up to the first insertion or deletion: much of it cancels in the
    difference. The standard error is that of its mean over the chains. Several processes share the
    pairs, and each gets all scores.

    >>> import indel
    >>> model = indel.load("text8")
    >>> texts = [model.vocabulary.encode(text) for text in ("the cat", "teh cat")]
    >>> (score,) = edit_scores(model, texts[:1], texts[1:], chains=2, num_times=2)
    >>> score.alignment.source[3:]
    (3, 4, 5, 6)
    """
    if len(sequences) != len(references):
        raise ValueError(
            f"there must be a reference for each sequence, got {len(references)} for "
            f"{len(sequences)}"
        )
    if chains < 2:
        raise ValueError(f"chains must be at least 2, to know a standard error, got {chains}")

    def scored(number: int) -> EditScore:
        seeds = seeds_for(seed, "score", number * chains, chains).to(denoiser.device)

        def bounds(x: Sequence[int]) -> Float[Tensor, "chains 1"]:
            x_0 = Batch.from_lists([list(x)] * chains, device=denoiser.device)
            noise = RowSeeds(seeds)
            found = chain_bound(denoiser, x_0, generator=noise, num_times=num_times)
            return found.nats.double().cpu()[:, None]

        new, old = bounds(sequences[number]), bounds(references[number])
        return EditScore(
            _estimate(new),
            _estimate(old),
            _estimate(new - old),
            align(denoiser.schedule, references[number], sequences[number]),
        )

    with evaluation_mode(denoiser), torch.inference_mode():
        numbers = range(len(sequences))
        shared = processes.map(scored, numbers, to_bytes=_to_bytes, from_bytes=_from_bytes)
        return list(shared)


def align(schedule: Schedule, reference: Sequence[int], sequence: Sequence[int]) -> Alignment:
    """The most likely edits from the reference to the sequence, at the t that explains it best.

    t* = argmax_t q(x_t = sequence | x_0 = reference),   argmax_a q(a | x_0, x_t) at t*
    """
    last = schedule.num_steps
    times = torch.arange(last + 1)
    x_0 = Batch.from_lists([list(reference)] * (last + 1))
    x_t = Batch.from_lists([list(sequence)] * (last + 1))
    logp = log_prob(schedule, x_0, x_t, times)
    t = int(logp.argmax())
    if not bool(logp[t] > -torch.inf):
        every = tuple(range(len(reference)))
        return Alignment((-1,) * len(sequence), every, float("nan"), -torch.inf, t)
    one: Int[Tensor, " one"] = torch.tensor([t])
    first, then = x_0.rows(one), x_t.rows(one)
    edits = most_likely_edits(schedule, first, then, t)
    prob = (log_prob_edits(schedule, first, then, edits, t) - logp[t]).exp()
    source = tuple(edits.source[0, : len(sequence)].tolist())
    deleted = tuple(place for place in range(len(reference)) if place not in set(source))
    return Alignment(source, deleted, min(1.0, float(prob)), float(logp[t]), t)


def _to_bytes(score: EditScore) -> bytes:
    # Infinity and NaN are written as Python reads them.
    return json.dumps(asdict(score)).encode()


def _from_bytes(content: bytes) -> EditScore:
    values = json.loads(content)
    alignment = values.pop("alignment")
    for name in ("source", "deleted"):
        alignment[name] = tuple(alignment[name])
    estimates = {name: Estimate(*each) for name, each in values.items()}
    return EditScore(**estimates, alignment=Alignment(**alignment))


def _estimate(values: Float[Tensor, "chains 1"]) -> Estimate:
    return Moments.of(values, torch.ones_like(values, dtype=torch.bool)).estimates()[0]
