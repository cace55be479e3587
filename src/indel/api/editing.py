"""Write into a text: infill, steer, mutate, score an edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from indel.api.basics import sampling_options, tokens_of
from indel.bound.edit_scores import EditScore, edit_scores
from indel.bound.likelihood import evaluation_mode
from indel.model import Denoiser
from indel.randomness import RowSeeds, seeds_for
from indel.sampling import renoising
from indel.sampling.conditioning import Held
from indel.sampling.particles import HeldSamples, sample_held
from indel.sampling.patterns import EVERYTHING, Pattern
from indel.sampling.renoising import Mutations, corrected
from indel.sampling.rewards import Reward, Steering


def infill(
    model: Denoiser,
    pattern: str | Pattern,
    n: int = 1,
    *,
    seed: int = 0,
    particles: int = 1,
    reward: Reward | None = None,
    strength: float = 1.0,
    correct: int = 0,
    guidance: float = 1.0,
    look_ahead: bool = True,
    temperature: float = 1.0,
    top_p: float = 1.0,
    batch_size: int = 64,
    progress: bool = False,
) -> HeldSamples:
    """Fill the gaps of a text; everything else stays as it is.

    p_θ(x_{t−1} | x_t, the frozen tokens are in place), step by step; with particles
    p_θ(x_0 | the frozen tokens are in place at all times) exp(strength · reward(x_0)) / Z.
    A model trained with frozen tokens has p_θ(x_{t−1} | x_t, frozen) itself, and one with counts
    has such a law of its own.

    Args:
        model: A trained denoiser (`indel.load`).
        pattern: A text with gaps: `{}` of any length, `{3}` of 3 tokens, `{2,8}` of 2 to 8; a
            brace is `{{` or `}}`. Or a `Pattern`.
        n: How many samples.
        seed: The same seed gives the same samples, whatever the batch size.
        particles: How many each sample is chosen from. One lacks look-ahead; time grows with them.
        reward: A function of a list of texts that gives each a number; needs particles.
        strength: How much the reward counts.
        correct: How often each sample goes some steps forward with q and back again.
        guidance: How much a frozen source counts, for a model trained with sources that were
            sometimes dropped; 1 is the model itself.
        look_ahead: Whether a model's counts are told what is frozen, if it has any; otherwise each
            step is conditioned on it, and particles look ahead.
        temperature: Of both heads: 1 is the model itself.
        top_p: The share of the probability that each head keeps.
        batch_size: Samples at a time.
        progress: Whether a bar is shown.

    Returns:
        `HeldSamples`: `.texts`, what is in the `.gaps`, `.effective` numbers of particles.

    >>> import indel
    >>> model = indel.load("arithmetic")
    >>> filled = infill(model, "3 {,8} 9 {2} 15")
    >>> filled.texts[0].split()[0], filled.texts[0].split()[-1]
    ('3', '15')
    >>> [len(gap.split()) <= 8 for gap in filled.gaps[0]]
    [True, True]

    Reference: docs/infilling.md
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    given = Pattern.parse(pattern, model.vocabulary) if isinstance(pattern, str) else pattern
    steering = None if reward is None else Steering(reward, strength)
    options = replace(
        sampling_options(model, temperature, top_p, None), guidance=guidance, look_ahead=look_ahead
    )
    parts = []
    with evaluation_mode(model):
        for start in range(0, n, batch_size):
            rows = min(batch_size, n - start)
            generator = RowSeeds(seeds_for(seed, "infill", start, rows).to(model.device))
            samples = sample_held(
                model,
                given,
                rows,
                generator=generator,
                particles=particles,
                steering=steering,
                options=options,
                progress=progress,
            )
            state = corrected(
                model,
                given,
                Held(samples.x, samples.frozen),
                correct,
                generator=generator,
                options=options,
            )
            parts.append(replace(samples, x=state.x, frozen=state.frozen))
    return HeldSamples.joined(parts)


def steer(
    model: Denoiser,
    reward: Reward,
    n: int = 1,
    *,
    particles: int = 16,
    strength: float = 1.0,
    seed: int = 0,
    temperature: float = 1.0,
    top_p: float = 1.0,
    batch_size: int = 64,
    progress: bool = False,
) -> HeldSamples:
    """Sample whole sequences in proportion to p_θ(x_0) exp(strength · reward(x_0)).

    Args:
        model: A trained denoiser (`indel.load`).
        reward: A function of a list of texts that gives each a number; −∞ forbids a text.
        n: How many samples.
        particles: How many each sample is chosen from: the more, the nearer to that law.
        strength: How much the reward counts; 0 is the model itself.
        seed: The same seed gives the same samples, whatever the batch size.
        temperature: Of both heads: 1 is the model itself.
        top_p: The share of the probability that each head keeps.
        batch_size: Samples at a time.
        progress: Whether a bar is shown.

    Returns:
        `HeldSamples`: `.texts`, `.effective` numbers of particles at each step.

    >>> import indel
    >>> acgt, schedule = indel.CharacterVocabulary("ACGT"), indel.Schedule.paper(4, 8, 0.6)
    >>> model = indel.Denoiser.from_preset("tiny", acgt, schedule, max_length=16)
    >>> short = steer(model, lambda texts: [-len(text) for text in texts], n=2, particles=4)
    >>> len(short.texts)
    2

    Reference: docs/infilling.md
    """
    return infill(
        model,
        EVERYTHING,
        n,
        seed=seed,
        particles=particles,
        reward=reward,
        strength=strength,
        temperature=temperature,
        top_p=top_p,
        batch_size=batch_size,
        progress=progress,
    )


def mutate(
    model: Denoiser,
    text: str | Sequence[int],
    n: int = 1,
    *,
    edits: tuple[int, int] = (1, 5),
    keep: Sequence[tuple[int, int]] = (),
    seed: int = 0,
    temperature: float = 1.0,
    top_p: float = 1.0,
) -> Mutations:
    """Variants of a text that differ from it by a number of edits.

    x_0 → q(x_t | x_0) → p_θ(x_0 | x_t), drawn again until the distance is as asked for

    Args:
        model: A trained denoiser (`indel.load`).
        text: The text, or its ids.
        n: How many variants.
        edits: The least and the largest distance (Levenshtein, in tokens).
        keep: Spans (start, end) that must not change, as in `text[start:end]`.
        seed: The same seed gives the same variants; variant i does not depend on how many.
        temperature: Of both heads: 1 is the model itself.
        top_p: The share of the probability that each head keeps.

    Returns:
        `Mutations`: `.texts`, `.edits`, the `.t` that each was taken to.

    >>> import indel
    >>> model = indel.load("text8")
    >>> near = mutate(model, "the history of the city", edits=(1, 4), keep=[(0, 12)])
    >>> near.texts[0][:12], 1 <= int(near.edits[0]) <= 4
    ('the history ', True)

    Reference: docs/infilling.md
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    with evaluation_mode(model):
        return renoising.mutate(
            model,
            tokens_of(model, text),
            n,
            edits=edits,
            keep=keep,
            generator=RowSeeds(seeds_for(seed, "mutate", 0, n).to(model.device)),
            options=sampling_options(model, temperature, top_p, None),
        )


def score_edits(
    model: Denoiser,
    texts: Sequence[str | Sequence[int]],
    references: Sequence[str | Sequence[int]],
    *,
    seed: int = 0,
    chains: int = 16,
    num_times: int | None = None,
) -> list[EditScore]:
    """How much likelier or less likely edits make texts, and what the edits most likely are.

    bound(text) − bound(reference) under common noise;   argmax_a q(a | reference, text)

    Args:
        model: A trained denoiser (`indel.load`).
        texts: Texts, or their ids.
        references: What each was before.
        seed: Of the noise.
        chains: Of each pair: more of them, a smaller standard error.
        num_times: Random t per chain; None: all of them.

    Returns:
        For each pair an `EditScore`: `.difference` in nats with its standard error, `.alignment`.

    >>> import indel
    >>> model = indel.load("text8")
    >>> (score,) = score_edits(model, ["the cat"], ["the bat"], chains=2, num_times=2)
    >>> score.alignment.source
    (0, 1, 2, 3, 4, 5, 6)

    Reference: docs/infilling.md
    """
    return edit_scores(
        model,
        [tokens_of(model, text, f"text {number}: ") for number, text in enumerate(texts)],
        [tokens_of(model, text, f"reference {number}: ") for number, text in enumerate(references)],
        seed=seed,
        chains=chains,
        num_times=num_times,
    )
