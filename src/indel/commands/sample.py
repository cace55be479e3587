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
    from indel.sharing import Processes
    from indel.vocabularies import IntegerVocabulary

    processes = Processes.launched()
    denoiser = load(model, device=processes.device(device))
    sharpening = Sharpening(temperature=temperature, top_p=top_p)
    last = denoiser.schedule.num_steps
    options = SamplingOptions(
        tokens=sharpening,
        deletions=sharpening,
        times=None if calls is None else evenly_spaced(last, calls),
        approximate_strides=calls is not None,
    )

    def lines(start: int) -> list[str]:
        rows = min(batch_size, count - start)
        samples = generate(
            denoiser,
            rows,
            generator=RowSeeds(sample_seeds(seed, start, rows).to(denoiser.device)),
            options=options,
            progress=sys.stderr.isatty() and count > batch_size and processes.is_first,
        )
        if not as_json:
            return samples.texts
        numbers = isinstance(denoiser.vocabulary, IntegerVocabulary)
        items = samples.x.to_lists() if numbers else samples.texts
        return [json.dumps(item, ensure_ascii=False) for item in items]

    for batch in processes.map(lines, range(0, count, batch_size)):
        if processes.is_first:
            print(*batch, sep="\n")
