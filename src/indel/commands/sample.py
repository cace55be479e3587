"""`indel sample`."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from indel.commands.arguments import BatchSize, Device, Model, Seed


def sample(
    model: Model,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=100_000, help="How many.")] = 5,
    seed: Seed = 0,
    temperature: Annotated[float, typer.Option(help="Of both heads; 1 is the model itself.")] = 1.0,
    top_p: Annotated[float, typer.Option(help="Keep this share of the mass of both heads.")] = 1.0,
    calls: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Call the network only so often: approximate with inserts and deletes.",
        ),
    ] = None,
    batch_size: BatchSize = 64,
    device: Device = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value per line.")] = False,
) -> None:
    """Generate sequences, one per line."""
    from indel.api import sample_seeds
    from indel.loading import load
    from indel.randomness import RowSeeds
    from indel.sampling.generation import SamplingOptions, generate
    from indel.sampling.strides import evenly_spaced
    from indel.sampling.truncation import Sharpening
    from indel.vocabularies import IntegerVocabulary

    denoiser = load(model, device=device)
    sharpening = Sharpening(temperature=temperature, top_p=top_p)
    last = denoiser.schedule.num_steps
    options = SamplingOptions(
        tokens=sharpening,
        deletions=sharpening,
        times=None if calls is None else evenly_spaced(last, calls),
        approximate_strides=calls is not None,
    )
    for start in range(0, count, batch_size):
        rows = min(batch_size, count - start)
        generator = RowSeeds(sample_seeds(seed, start, rows).to(denoiser.device))
        samples = generate(
            denoiser,
            rows,
            generator=generator,
            options=options,
            progress=sys.stderr.isatty() and count > batch_size,
        )
        for row, text in zip(samples.x.to_lists(), samples.texts, strict=True):
            item = row if isinstance(denoiser.vocabulary, IntegerVocabulary) else text
            print(json.dumps(item, ensure_ascii=False) if as_json else text)
