"""`indel evaluate`."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table

from indel.commands.arguments import (
    BatchSize,
    Device,
    Model,
    Seed,
    open_named_data,
    parsed_settings,
)

if TYPE_CHECKING:
    from indel.bound.estimates import BoundEstimate, Estimate
    from indel.model import Denoiser
    from indel.process.freezing import FrozenKind


def evaluate(
    model: Model,
    data: Annotated[
        str | None,
        typer.Option(help="arithmetic, text8, text8-sample, moses, moses-sample, file:PATH …"),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="Of --data, e.g. path=text8.zip."),
    ] = None,
    split: Annotated[str, typer.Option(help="train, valid or test.")] = "valid",
    examples: Annotated[int, typer.Option(min=2, max=1_000_000, help="How many sequences.")] = 256,
    times: Annotated[
        int | None, typer.Option(min=1, help="So many random t per sequence; default: all.")
    ] = None,
    chains: Annotated[
        int,
        typer.Option(min=1, max=10_000, help="The importance-weighted bound with so many chains."),
    ] = 1,
    max_length: Annotated[
        int | None,
        typer.Option(
            min=0, max=1_000_000, help="The limit on |x_t|; default: the model's. 0 for none."
        ),
    ] = None,
    frozen: Annotated[
        str | None,
        typer.Option(
            help="Also the bound on p(free | frozen tokens): spans, source or nothing; default: "
            "what the model was trained with."
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(
            metavar="N,N…",
            help="The bound for each of these numbers of steps, of a model trained for several.",
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, max=100_000, help="Arithmetic: samples for the error rate.")
    ] = 256,
    seed: Seed = 0,
    batch_size: BatchSize = 64,
    device: Device = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """The bound on the log-likelihood of data, by part and by step; error rate for arithmetic.

    For a model trained with frozen tokens also that of the free tokens given the frozen ones.
    """
    import torch

    from indel.bound.conditional import evaluate_conditional
    from indel.bound.estimates import Estimate
    from indel.bound.likelihood import evaluate as evaluate_bound
    from indel.data import SPLITS, ArithmeticData
    from indel.loading import load
    from indel.process.freezing import Freezing
    from indel.randomness import RowSeeds, seeds_for
    from indel.sampling.generation import generate
    from indel.sharing import Processes

    if split not in SPLITS:
        raise ValueError(f"--split must be one of {', '.join(SPLITS)}, got {split!r}")
    processes = Processes.launched()
    denoiser = load(model, device=processes.device(device))
    stream = open_named_data(data, parsed_settings(option or [], "--option"), model)
    if stream.vocabulary != denoiser.vocabulary:
        raise ValueError(
            f"the model at {model} has another vocabulary than the data: "
            f"{denoiser.vocabulary!r:.80} against {stream.vocabulary!r:.80}"
        )
    kind = denoiser.config.frozen if frozen is None else frozen
    if kind not in ("nothing", "spans", "source"):
        raise ValueError(f"--frozen must be nothing, spans or source, got {kind!r}")
    limit = denoiser.length_limit if max_length is None else (max_length or None)
    batches = [
        stream.examples(start, min(batch_size, examples - start), split).trimmed()
        for start in range(0, examples, batch_size)
    ]
    settings: dict[str, Any] = {
        "seed": seed,
        "max_length": limit,
        "num_times": times,
        "num_chains": chains,
        "processes": processes,
    }

    def measured(chosen: Denoiser) -> tuple[BoundEstimate, dict[str, Estimate]]:
        """The bound, and what is reported of it and of that on the free tokens alone."""
        found = evaluate_bound(chosen, batches, **settings)
        report = {
            "nats_per_sequence": found.nats_per_sequence,
            "bits_per_sequence": found.bits_per_sequence,
            "bits_per_token": found.bits_per_token,
        }
        if kind != "nothing":
            freezing = Freezing.of(cast("FrozenKind", kind), chosen.vocabulary)
            given = evaluate_conditional(chosen, batches, freezing, **settings)
            report["conditional_nats_per_sequence"] = given.nats_per_sequence
            report["conditional_bits_per_token"] = given.bits_per_token
        return found, report

    if steps is not None:
        reports = {each: measured(denoiser.with_steps(each))[1] for each in _numbers(steps)}
        if processes.is_first:
            _print_by_steps(reports, as_json)
        return
    estimate, report = measured(denoiser)
    if isinstance(stream, ArithmeticData) and samples:

        def error_rates(start: int) -> list[float]:
            count = min(batch_size, samples - start)
            seeds = seeds_for(seed, "evaluate samples", start, count).to(denoiser.device)
            return stream.error_rates(
                generate(denoiser, count, generator=RowSeeds(seeds)).x.to("cpu")
            ).tolist()

        rates = processes.map(error_rates, range(0, samples, batch_size))
        errors = torch.tensor([rate for part in rates for rate in part])
        spread = float(errors.std()) / samples**0.5 if samples > 1 else math.nan
        report["error_rate"] = Estimate(float(errors.mean()), spread)
    if not processes.is_first:
        return
    parts = estimate.by_part
    if as_json:
        named: dict[str, Any] = {name: _plain(each) for name, each in report.items()}
        named["parts"] = {name: _plain(each) for name, each in parts.items()}
        named["steps"] = [_plain(each) for each in estimate.by_time]
        print(json.dumps({"sequences": len(estimate), **named}, allow_nan=False))
        return
    table = Table("", "mean", "standard error", box=None, padding=(0, 2))
    rows = {name.replace("_", " "): each for name, each in report.items()}
    rows |= {f"  {name}": part for name, part in parts.items()}
    rows |= {f"  step {t}": term for t, term in enumerate(estimate.by_time, start=1)}
    for name, (mean, error) in rows.items():
        table.add_row(name, f"{mean:.4f}", f"{error:.4f}")
    Console(soft_wrap=True).print(table)


def _numbers(steps: str) -> list[int]:
    """The numbers of a list with commas."""
    try:
        return [int(each) for each in steps.split(",")]
    except ValueError:
        raise ValueError(f"--steps takes numbers with commas between, got {steps!r}") from None


def _print_by_steps(reports: dict[int, dict[str, Estimate]], as_json: bool) -> None:
    """A line for each number of steps."""
    if as_json:
        rows = [
            {"steps": each, **{name: _plain(value) for name, value in report.items()}}
            for each, report in reports.items()
        ]
        print(json.dumps({"by_steps": rows}, allow_nan=False))
        return
    names = list(next(iter(reports.values())))
    table = Table("steps", *(name.replace("_", " ") for name in names), box=None, padding=(0, 2))
    for each, report in reports.items():
        table.add_row(str(each), *(f"{mean:.4f} ± {error:.4f}" for mean, error in report.values()))
    # A line is a line, however narrow the terminal is.
    Console(soft_wrap=True, width=40 * (len(names) + 1)).print(table)


def _plain(estimate: Estimate) -> dict[str, float | None]:
    """JSON has neither NaN nor infinity: both become null."""
    values = estimate._asdict().items()
    return {name: value if math.isfinite(value) else None for name, value in values}
