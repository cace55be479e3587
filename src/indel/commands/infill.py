"""`indel infill`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from indel.commands.arguments import (
    AsJson,
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
from indel.commands.molecule_views import Draw, filled_panels, require_smiles, write_picture

if TYPE_CHECKING:
    from indel.sampling.particles import HeldSamples


def infill(
    model: Model,
    pattern: Annotated[
        str,
        typer.Argument(
            help="A text with gaps: {} of any length, {3} of 3 tokens, {2,8} of 2 to 8; {{ is a {."
        ),
    ],
    count: Count = 5,
    seed: Seed = 0,
    particles: Annotated[
        int,
        typer.Option(min=1, max=100_000, help="Choose each sample from so many, for look-ahead."),
    ] = 1,
    correct: Correct = 0,
    steps: Steps = None,
    guidance: Guidance = 1.0,
    look_ahead: Annotated[
        bool,
        typer.Option(help="Tell the model's counts what is frozen, if it has any."),
    ] = True,
    temperature: Temperature = 1.0,
    top_p: TopP = 1.0,
    draw: Draw = None,
    batch_size: BatchSize = 64,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Fill the gaps of a text, and leave everything else as it is."""
    from indel.api.editing import infill as fill
    from indel.loading import load

    denoiser = load(model, device=device)
    if draw is not None:
        from indel.molecules.chemistry import rdkit

        require_smiles(denoiser, str(model))
        rdkit()
    samples = fill(
        denoiser if steps is None else denoiser.with_steps(steps),
        pattern,
        count,
        seed=seed,
        particles=particles,
        correct=correct,
        guidance=guidance,
        look_ahead=look_ahead,
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
