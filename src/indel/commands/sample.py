"""`indel sample`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from indel.commands.arguments import (
    BatchSize,
    Correct,
    Count,
    Device,
    Guidance,
    Model,
    Seed,
    Steps,
    Temperature,
    TopP,
)
from indel.commands.infill import print_samples
from indel.commands.rewards import open_reward

if TYPE_CHECKING:
    from indel.model import Denoiser
    from indel.sampling.rewards import Reward


def sample(
    model: Model,
    count: Count = 5,
    seed: Seed = 0,
    temperature: Temperature = 1.0,
    top_p: TopP = 1.0,
    calls: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Call the network only so often: approximate with inserts and deletes.",
        ),
    ] = None,
    steps: Steps = None,
    guidance: Guidance = 1.0,
    correct: Correct = 0,
    prefix: Annotated[str, typer.Option(help="What each sequence begins with.")] = "",
    suffix: Annotated[str, typer.Option(help="What each sequence ends with.")] = "",
    reward: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="A function of a list of texts that gives each a number; its module is imported.",
        ),
    ] = None,
    strength: Annotated[float, typer.Option(help="How much the reward counts.")] = 1.0,
    particles: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000,
            help="Choose each sample from so many; default: 16 with a reward, otherwise 1.",
        ),
    ] = None,
    batch_size: BatchSize = 64,
    device: Device = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value per line.")] = False,
) -> None:
    """Generate sequences, one per line."""
    from indel.api.basics import sample_seeds, sampling_options
    from indel.loading import load
    from indel.randomness import RowSeeds
    from indel.sampling.generation import generate
    from indel.sampling.renoising import corrected_samples
    from indel.sharing import Processes
    from indel.vocabularies import IntegerVocabulary

    processes = Processes.launched()
    denoiser = load(model, device=processes.device(device))
    denoiser = denoiser if steps is None else denoiser.with_steps(steps)
    if prefix or suffix or reward is not None or particles is not None:
        if calls is not None:
            raise ValueError(
                "--calls has no meaning with --prefix, --suffix, --reward, --particles"
            )
        settings: dict[str, Any] = {
            "seed": seed,
            "correct": correct,
            "guidance": guidance,
            "temperature": temperature,
            "top_p": top_p,
            "batch_size": batch_size,
            "progress": sys.stderr.isatty(),
        }
        chosen = None if reward is None else open_reward(reward)
        many = (1 if reward is None else 16) if particles is None else particles
        # Particles of one sample depend on each other: the first process does it all.
        if processes.is_first:
            _print_held(denoiser, prefix, suffix, count, chosen, strength, many, as_json, settings)
        return
    if guidance != 1.0:
        raise ValueError("--guidance needs a --prefix that is a source, with its tab at the end")
    options = sampling_options(denoiser, temperature, top_p, calls)

    def lines(start: int) -> list[str]:
        rows = min(batch_size, count - start)
        generator = RowSeeds(sample_seeds(seed, start, rows).to(denoiser.device))
        samples = generate(
            denoiser,
            rows,
            generator=generator,
            options=options,
            progress=sys.stderr.isatty() and count > batch_size and processes.is_first,
        )
        samples = corrected_samples(
            denoiser, samples, correct, generator=generator, options=options
        )
        if not as_json:
            return samples.texts
        numbers = isinstance(denoiser.vocabulary, IntegerVocabulary)
        items = samples.x.to_lists() if numbers else samples.texts
        return [json.dumps(item, ensure_ascii=False) for item in items]

    for batch in processes.map(lines, range(0, count, batch_size)):
        if processes.is_first:
            print(*batch, sep="\n")


def _print_held(
    denoiser: Denoiser,
    prefix: str,
    suffix: str,
    count: int,
    reward: Reward | None,
    strength: float,
    particles: int,
    as_json: bool,
    settings: dict[str, Any],
) -> None:
    """Samples with a prefix, a suffix or a reward; as JSON beside those without the reward."""
    from indel.api.editing import infill
    from indel.sampling.patterns import escaped
    from indel.sampling.rewards import Steering

    # A model of integers separates them by spaces.
    pattern = f"{escaped(prefix)}{{}}{escaped(suffix)}"
    steered = infill(
        denoiser,
        pattern,
        count,
        reward=reward,
        strength=strength,
        particles=particles,
        **settings,
    )
    if reward is None or not as_json:
        print_samples(steered, as_json)
        return
    free = infill(denoiser, pattern, count, particles=1, **settings).texts
    steering = Steering(reward, strength)
    rewards, without = (steering.rewards(texts).tolist() for texts in (steered.texts, free))
    beside = [
        {"reward": new, "unguided": text, "unguided_reward": old}
        for new, text, old in zip(rewards, free, without, strict=True)
    ]
    print_samples(steered, as_json, beside)
