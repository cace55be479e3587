"""`indel infill`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from indel.commands.arguments import BatchSize, Device, Model, Seed
from indel.commands.molecule_views import Draw, filled_panels, require_smiles, write_picture

if TYPE_CHECKING:
    from indel.sampling.particles import HeldSamples

Particles = Annotated[
    int,
    typer.Option(min=1, max=100_000, help="Choose each sample from so many, for look-ahead."),
]
Correct = Annotated[
    int,
    typer.Option(
        min=0, max=10_000, help="Go a quarter of the steps forward and back again, so often."
    ),
]


def infill(
    model: Model,
    pattern: Annotated[
        str,
        typer.Argument(
            help="A text with gaps: {} of any length, {3} of 3 tokens, {2,8} of 2 to 8; {{ is a {."
        ),
    ],
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=100_000, help="How many.")] = 5,
    seed: Seed = 0,
    particles: Particles = 1,
    correct: Correct = 0,
    temperature: Annotated[float, typer.Option(help="Of both heads; 1 is the model itself.")] = 1.0,
    top_p: Annotated[float, typer.Option(help="Keep this share of the mass of both heads.")] = 1.0,
    draw: Draw = None,
    batch_size: BatchSize = 64,
    device: Device = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Fill the gaps of a text, and leave everything else as it is."""
    from indel.editing import infill as fill
    from indel.loading import load

    denoiser = load(model, device=device)
    if draw is not None:
        from indel.molecules.chemistry import rdkit

        require_smiles(denoiser, str(model))
        rdkit()
    samples = fill(
        denoiser,
        pattern,
        count,
        seed=seed,
        particles=particles,
        correct=correct,
        temperature=temperature,
        top_p=top_p,
        batch_size=batch_size,
        progress=sys.stderr.isatty(),
    )
    if draw is not None:
        write_picture(draw, filled_panels(samples))
    print_samples(samples, as_json)


def print_samples(
    samples: HeldSamples, as_json: bool, more: list[dict[str, Any]] | None = None
) -> None:
    """A text per line, or a JSON object with what is known of each."""
    for row, text in enumerate(samples.texts):
        if not as_json:
            print(text)
            continue
        extra = {} if more is None else more[row]
        effective = [round(value, 3) for value in samples.effective[:, row].tolist()]
        # A weight of zero has no logarithm that JSON could hold.
        known = float(samples.log_normalizer[row])
        found = {
            "text": text,
            "ids": samples.x.to_lists()[row],
            "gaps": samples.gaps[row],
            "log_normalizer": known if abs(known) != float("inf") else None,
            "effective_particles": effective,
            "resampled": samples.resampled[:, row].tolist(),
            **extra,
        }
        print(json.dumps(found, ensure_ascii=False, allow_nan=False))
