"""Train, sample and evaluate: loss, generate, denoise_from, evaluate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.bound import likelihood
from indel.bound.conditional import evaluate_conditional
from indel.bound.estimates import BoundEstimate
from indel.bound.objective import Objective
from indel.data.sequences import Sequences
from indel.data.streams import BatchStream, Split
from indel.model import Denoiser
from indel.process.freezing import Freezing, FrozenKind
from indel.randomness import Randomness, RowSeeds, seeds_for
from indel.sampling import generation
from indel.sampling.generation import Samples, SamplingOptions
from indel.sampling.patterns import encoded
from indel.sampling.renoising import corrected_samples
from indel.sampling.strides import evenly_spaced
from indel.sampling.truncation import Sharpening

Examples = Batch | Sequence[str] | Sequence[Sequence[int]]
"""Sequences x_0: a batch of ids, texts, or lists of integers."""

_STREAM_EXAMPLES = 256


def loss(model: Denoiser, x_0: Examples, *, generator: Randomness) -> Float[Tensor, " batch"]:
    """The training loss of each sequence in nats, from one random t each, with its gradient.

    L = E[−log p_θ(x_T)] + Σ_t E[−log p_θ(x_{t−1}|x_t) + log q(x_t|x_{t−1})]

    Without a length limit its mean is the bound on −log p_θ(x_0). With one, x_t is drawn again
    until it keeps the limit, as in the paper; then `evaluate` has the bound.

    Args:
        model: Any denoiser; its length limit and edit weights are used.
        x_0: Data: a batch, texts or lists of integers.
        generator: A torch.Generator, or `RowSeeds` with one seed per sequence.

    Returns:
        One value per sequence; `.mean().backward()` trains.

    >>> import indel
    >>> acgt = indel.CharacterVocabulary("ACGT")
    >>> model = indel.Denoiser.from_preset("tiny", acgt, indel.Schedule.paper(4, 10, 0.6))
    >>> loss(model, ["GATTACA", "ACT"], generator=torch.Generator().manual_seed(0)).shape
    torch.Size([2])

    Reference: Johnson et al. 2021, Eqs. (2) and (3)
    """
    batch = _batch(model, x_0)
    objective = Objective(
        model.schedule,
        max_length=model.length_limit,
        weights=model.edit_weights(model.schedule.tables(model.device).jump),
    )
    return objective(model, model.length, batch, generator=generator).total


def generate(
    model: Denoiser,
    count: int = 1,
    *,
    seed: int = 0,
    temperature: float = 1.0,
    top_p: float = 1.0,
    calls: int | None = None,
    correct: int = 0,
    batch_size: int = 64,
    keep_trajectories: bool = False,
    progress: bool = False,
) -> Samples:
    """Sample sequences from the model: |x_T| ~ p_θ(|x_T|), then x_{t−1} ~ p_θ(x_{t−1} | x_t).

    p_θ(x_0) = Σ p_θ(|x_T|) Π_t p_θ(x_{t−1} | x_t)

    Args:
        model: A trained denoiser (`indel.load`).
        count: How many sequences.
        seed: The same seed gives the same sequences, whatever the batch size; sample i of a larger
            `count` is sample i of a smaller one.
        temperature: Of both heads: 1 is the model itself, 0 takes the likeliest edits.
        top_p: The share of the probability that each head keeps.
        calls: How often the network is called; None: once per step of the process. Fewer calls
            approximate a process that inserts and deletes.
        correct: How often each sample then goes a quarter of the steps forward with the exact q and
            back again; trajectories end before.
        batch_size: Sequences at a time.
        keep_trajectories: Whether the states of all steps are kept.
        progress: Whether a bar is shown.

    Returns:
        `Samples`: `.texts`, or the ids in `.x`.

    >>> import indel
    >>> model = indel.load("text8")
    >>> len(generate(model, 2, seed=1, calls=4).texts)
    2

    Reference: Johnson et al. 2021, Sec. 3.2 and 3.3
    """
    options = sampling_options(model, temperature, top_p, calls)
    parts = []
    with likelihood.evaluation_mode(model):
        for start in range(0, count, batch_size):
            rows = min(batch_size, count - start)
            generator = RowSeeds(sample_seeds(seed, start, rows).to(model.device))
            samples = generation.generate(
                model,
                rows,
                generator=generator,
                options=options,
                keep_trajectories=keep_trajectories,
                progress=progress,
            )
            parts.append(
                corrected_samples(model, samples, correct, generator=generator, options=options)
            )
    if not parts:
        raise ValueError(f"count must be at least 1, got {count}")
    return Samples.joined(parts)


def denoise_from(
    model: Denoiser,
    x_t: Examples,
    t: Int[Tensor, " batch"] | int,
    *,
    seed: int = 0,
    temperature: float = 1.0,
    top_p: float = 1.0,
    keep_trajectories: bool = False,
) -> Samples:
    """Sample x_0 ~ p_θ(x_0 | x_t): what noisy sequences may have been t steps ago.

    p_θ(x_0 | x_t) = Σ Π_{s≤t} p_θ(x_{s−1} | x_s)

    Args:
        model: A trained denoiser (`indel.load`).
        x_t: Noisy sequences: texts, lists of integers, or a batch that may hold INS and DEL.
        t: The time they are at, one for all or one each: how noisy they are.
        seed: The same seed gives the same answer.
        temperature: Of both heads, as in `generate`.
        top_p: Of both heads, as in `generate`.
        keep_trajectories: Whether the states of all steps are kept.

    Returns:
        `Samples`: `.texts`, or the ids in `.x`.

    >>> import indel
    >>> len(denoise_from(indel.load("text8"), ["thsi is a tset"], 2).texts)
    1

    Reference: Johnson et al. 2021, Sec. 3.2
    """
    batch = _batch(model, x_t)
    with likelihood.evaluation_mode(model):
        return generation.denoise_from(
            model,
            batch,
            t,
            generator=RowSeeds(sample_seeds(seed, 0, len(batch)).to(model.device)),
            options=sampling_options(model, temperature, top_p, None),
            keep_trajectories=keep_trajectories,
        )


def evaluate(
    model: Denoiser,
    data: Examples | BatchStream,
    *,
    seed: int = 0,
    split: Split = "valid",
    examples: int | None = None,
    num_times: int | None = None,
    num_chains: int = 1,
    frozen: FrozenKind | None = None,
    batch_size: int = 64,
    progress: bool | None = None,
) -> BoundEstimate:
    """The bound on −log p_θ(x_0), with standard errors.

    −log p_θ(x_0) ≤ E_q[−log p_θ(|x_T|) + Σ_t log q(x_t|x_{t−1}) − log p_θ(x_{t−1}|x_t)]

    Args:
        model: A trained denoiser; the length limit and edit weights are its own.
        data: Texts, lists of integers, a batch, or data with splits such as `Sequences`.
        seed: Of the noise; the same seed gives the same numbers, however the data is cut.
        split: Which split of data that has splits.
        examples: How many examples of it; None: all of `Sequences`, 256 of an endless stream.
        num_times: Random t per sequence; None: all of them, which is less noisy.
        num_chains: Chains of the importance-weighted bound, which is tighter.
        frozen: Bound −log p_θ(free | frozen) instead, of a model trained so: random "spans" are
            frozen, or the "source" of pairs.
        batch_size: Sequences at a time.
        progress: Whether a bar is shown; None: on a terminal.

    Returns:
        `BoundEstimate`: `.bits_per_token`, `.nats_per_sequence`, `.by_part`, `.by_time`, `.nats`.

    >>> import indel
    >>> model = indel.load("text8")
    >>> 0 < evaluate(model, ["the history of the city"], num_times=4).bits_per_token.mean < 10
    True

    Reference: Johnson et al. 2021, Eq. (2), Tables 1 and 2
    """
    measure: Callable[..., BoundEstimate] = likelihood.evaluate
    if frozen is not None:
        measure = partial(evaluate_conditional, freezing=Freezing.of(frozen, model.vocabulary))
    return measure(
        model,
        list(_batches(model, data, split, examples, batch_size)),
        seed=seed,
        num_times=num_times,
        num_chains=num_chains,
        progress=progress,
    )


def sample_seeds(seed: int, start: int, count: int) -> Int[Tensor, " {count}"]:
    """One seed per sample, so that sample i does not depend on how many are drawn together."""
    return seeds_for(seed, "sample", start, count)


def sampling_options(
    model: Denoiser, temperature: float, top_p: float, calls: int | None
) -> SamplingOptions:
    """The law that these settings stand for, the same for both heads."""
    sharpening = Sharpening(temperature=temperature, top_p=top_p)
    return SamplingOptions(
        tokens=sharpening,
        deletions=sharpening,
        times=None if calls is None else evenly_spaced(model.schedule.num_steps, calls),
        approximate_strides=calls is not None,
    )


def tokens_of(model: Denoiser, text: str | Sequence[int], where: str = "") -> list[int]:
    """The ids of a text, or of integers; integers in a text have spaces between them."""
    try:
        if isinstance(text, str):
            return encoded(text, model.vocabulary)
        return model.vocabulary.encode(text)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}{error}") from None


def _batch(model: Denoiser, sequences: Examples) -> Batch:
    if isinstance(sequences, Batch):
        return sequences.to(model.device)
    if isinstance(sequences, str):
        raise ValueError(f"expected a list of texts, got the single text {sequences[:40]!r}")
    rows = []
    each: Iterable[str | Sequence[int]] = sequences
    for number, sequence in enumerate(each):
        try:
            rows.append(model.vocabulary.encode(sequence))
        except (ValueError, TypeError) as error:
            raise ValueError(f"sequence {number}: {error}") from None
    return Batch.from_lists(rows, device=model.device)


def _batches(
    model: Denoiser, data: Examples | BatchStream, split: Split, count: int | None, size: int
) -> Iterator[Batch]:
    part: Callable[[int, int], Batch]
    if isinstance(data, BatchStream):
        if data.vocabulary != model.vocabulary:
            raise ValueError(
                f"model and data must have the same vocabulary, got {model.vocabulary!r:.80} and "
                f"{data.vocabulary!r:.80}"
            )
        if count is None:
            count = data.size(split) if isinstance(data, Sequences) else _STREAM_EXAMPLES

        def part(start: int, rows: int) -> Batch:
            return data.examples(start, rows, split)
    else:
        whole = _batch(model, data)
        count = len(whole) if count is None else min(count, len(whole))

        def part(start: int, rows: int) -> Batch:
            return whole.rows(torch.arange(start, start + rows, device=whole.device))

    for start in range(0, count, size):
        yield part(start, min(size, count - start)).trimmed()
