"""`indel sample` and `indel evaluate`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from indel.commands.opening import open_named_data, parsed_settings

if TYPE_CHECKING:
    from indel.bound_estimates import BoundEstimate

Model = Annotated[
    Path,
    typer.Argument(help="A bundled model, or the folder of a model, a run or a checkpoint."),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The same seed, the same output.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps …")]


def sample(
    model: Model,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=100_000)] = 5,
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
    batch_size: Annotated[int, typer.Option(min=1)] = 64,
    device: Device = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value a line.")] = False,
) -> None:
    """Generate sequences, one a line."""
    from indel.api import sample_seeds
    from indel.loading import load
    from indel.randomness import RowSeeds
    from indel.sampling import SamplingOptions, generate
    from indel.sharpening import Sharpening
    from indel.strides import evenly_spaced
    from indel.tokens import IntegerVocabulary

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


def evaluate(
    model: Model,
    data: Annotated[
        str | None,
        typer.Option(help="arithmetic, text8, text8-sample, file:PATH …"),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="Of --data, e.g. path=text8.zip."),
    ] = None,
    split: Annotated[str, typer.Option(help="train, valid or test.")] = "valid",
    examples: Annotated[int, typer.Option(min=2)] = 256,
    times: Annotated[
        int | None, typer.Option(min=1, help="So many random t a sequence; default: all.")
    ] = None,
    chains: Annotated[
        int, typer.Option(min=1, help="The importance-weighted bound with so many chains.")
    ] = 1,
    max_length: Annotated[
        int | None, typer.Option(help="The limit on |x_t|; default: the model's. 0 for none.")
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Arithmetic: samples for the error rate.")
    ] = 256,
    seed: Seed = 0,
    batch_size: Annotated[int, typer.Option(min=1)] = 64,
    device: Device = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """The bound on the log-likelihood of data, by part and by step; error rate for arithmetic."""
    from indel.data import SPLITS, ArithmeticData
    from indel.likelihood import evaluate as evaluate_bound
    from indel.loading import load
    from indel.randomness import RowSeeds
    from indel.sampling import generate

    if split not in SPLITS:
        raise ValueError(f"--split must be one of {', '.join(SPLITS)}, got {split!r}")
    denoiser = load(model, device=device)
    stream = open_named_data(data, parsed_settings(option or [], "--option"), model)
    if stream.vocabulary != denoiser.vocabulary:
        raise ValueError(
            f"the model at {model} has another vocabulary than the data: "
            f"{denoiser.vocabulary!r:.80} against {stream.vocabulary!r:.80}"
        )
    limit = denoiser.length_limit if max_length is None else (max_length or None)
    batches = [
        stream.examples(start, min(batch_size, examples - start), split).trimmed()
        for start in range(0, examples, batch_size)
    ]
    estimate = evaluate_bound(
        denoiser, batches, seed=seed, max_length=limit, num_times=times, num_chains=chains
    )
    report = _report(estimate)
    if isinstance(stream, ArithmeticData) and samples:
        import torch

        generator = RowSeeds(torch.arange(samples, device=denoiser.device) + seed)
        drawn = generate(denoiser, samples, generator=generator).x.to("cpu")
        errors = stream.error_rates(drawn)
        spread = float(errors.std()) / samples**0.5 if samples > 1 else float("nan")
        report["error rate"] = (float(errors.mean()), spread)
    if as_json:
        print(json.dumps({name: list(pair) for name, pair in report.items()}))
        return
    table = Table("", "mean", "standard error", box=None, padding=(0, 2))
    for name, (mean, error) in report.items():
        table.add_row(name, f"{mean:.4f}", f"{error:.4f}")
    Console(soft_wrap=True).print(table)


def _report(estimate: BoundEstimate) -> dict[str, tuple[float, float]]:
    """The bound in three units, then in nats its parts and the divergence of each step."""
    report = {
        "nats a sequence": estimate.nats_per_sequence,
        "bits a sequence": estimate.bits_per_sequence,
        "bits a token": estimate.bits_per_token,
    }
    report |= {f"  {name}": part for name, part in estimate.by_part.items()}
    report |= {f"  step {t}": term for t, term in enumerate(estimate.by_time, start=1)}
    return {name: (pair.mean, pair.standard_error) for name, pair in report.items()}
