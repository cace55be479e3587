"""`indel train`."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.logging import RichHandler

from indel.commands.arguments import parsed_settings

if TYPE_CHECKING:
    from indel.training import TrainingConfig

INTERRUPTED = 130


def train(
    task: Annotated[
        str | None,
        typer.Argument(
            metavar="[TASK]",
            help="arithmetic, text8, text8-sample, moses, moses-sample, or data of your own: "
            "lines:FILE, csv:FILE:COLUMN, pairs:FILE.tsv, smiles:FILE, file:PATH, "
            "huggingface:NAME.",
        ),
    ] = None,
    scale: Annotated[str, typer.Option(help="tiny, laptop or paper.")] = "laptop",
    config: Annotated[
        Path | None, typer.Option(help="A TOML file whose settings replace the preset's.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting, e.g. training.steps=100."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Where the data lies: text8.zip, MOSES's folder.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder of the run.")] = None,
    steps: Annotated[int | None, typer.Option(help="Updates of the weights.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Sequences per update.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, data and noise.")] = None,
    vocabulary: Annotated[
        str | None,
        typer.Option(
            help="Of lines, csv, file and huggingface: bytes, text8, characters:LIST, "
            "integers:SIZE or tokenizer:PATH; default: found from the data."
        ),
    ] = None,
    rate: Annotated[float | None, typer.Option(help="The insert/delete rate; 0: in place.")] = None,
    steps_of_noise: Annotated[
        int | None, typer.Option(help="T, the steps of the forward process.")
    ] = None,
    width: Annotated[int | None, typer.Option(help="Of the hidden states.")] = None,
    layers: Annotated[int | None, typer.Option(help="Of the network.")] = None,
    contexts: Annotated[
        int | None,
        typer.Option(help="Of a model by counts that the network corrects; 0: none."),
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of Adam, also next to Muon.")] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="Start from the weights of a model: a bundled name, or the folder of a model, a "
            "run or a checkpoint."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the newest checkpoint in --out.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the config, the size and the estimated time.")
    ] = False,
    help_settings: Annotated[
        bool, typer.Option("--help-settings", help="Say what each setting of --set is, and exit.")
    ] = False,
) -> None:
    """Train a denoiser: preset, then --config, then the other options, then --set."""
    if help_settings:
        from indel.training.settings_reference import settings_reference

        print(settings_reference())
        return
    from indel.training import load_config, load_run_config
    from indel.training.config_files import changed

    options = {
        "data.options.path": None if data is None else str(data),
        "data.options.vocabulary": vocabulary,
        "process.num_steps": steps_of_noise,
        "process.rate": rate,
        "model.start": None if start is None else _model_name(start),
        "model.width": width,
        "model.num_layers": layers,
        "model.contexts": contexts,
        "optimizer.learning_rate": learning_rate,
        "training.steps": steps,
        "training.batch_size": batch_size,
        "training.seed": seed,
    }
    overrides = {name: value for name, value in options.items() if value is not None}
    overrides |= parsed_settings(set_ or [], "--set")
    if task is None and config is None and resume and out is not None:
        settings = changed(load_run_config(out), overrides)
    elif task is None and config is None:
        raise ValueError(
            "name a task (arithmetic, text8, text8-sample, moses, moses-sample, lines:FILE, "
            "csv:FILE:COLUMN, pairs:FILE.tsv, smiles:FILE, file:PATH, huggingface:NAME) or give "
            "--config FILE"
        )
    else:
        settings = load_config(task, scale, file=config, overrides=overrides)
    folder = out or Path("runs") / _run_name(task or "run", scale, settings)
    if dry_run:
        _show_plan(settings, folder)
        return
    # Only here: the plan needs no package that training alone needs.
    from indel.training import train as run_training

    logging.basicConfig(
        level=logging.WARNING, format="%(message)s", handlers=[RichHandler(show_path=False)]
    )
    result = run_training(settings, folder, resume=resume)
    state = "interrupted; --resume continues" if result.interrupted else "done"
    print(f"{state}: step {result.step}, {result.seconds:.0f} s, {folder}")
    for name, value in result.validation.items():
        if isinstance(value, float):
            print(f"  {name}: {value:.4g}")
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)


def _model_name(start: str) -> str:
    """A bundled model by its name, others by the folder of their weights."""
    from indel.loading import model_folder
    from indel.pretrained import MODELS

    return start if start in MODELS else str(model_folder(start).resolve())


def _run_name(task: str, scale: str, config: TrainingConfig) -> str:
    """What tells runs of a task apart, without the signs of paths."""
    rate = "" if config.process is None else f"-rate{config.process.rate:g}"
    return re.sub(r"[^\w.-]+", "-", task) + f"-{scale}{rate}"


def _show_plan(config: TrainingConfig, folder: Path) -> None:
    """The config as TOML, how large the network is, and how long a few real steps say it takes."""
    import time

    import torch

    from indel.bound.objective import Objective
    from indel.training import config_to_toml

    data = config.open_data()
    denoiser = config.denoiser(data)
    objective = Objective(denoiser.schedule, max_length=denoiser.length_limit)
    rows = min(config.training.batch_size, 32)
    generator = torch.Generator().manual_seed(0)
    seconds = []
    for number in range(3):
        start = time.perf_counter()
        loss = objective(
            denoiser, denoiser.length, data.batch(number, rows, "train"), generator=generator
        )
        loss.total.mean().backward()  # type: ignore[no-untyped-call]
        seconds.append(time.perf_counter() - start)
    # The first step also warms up; the paper's batch of 512 is measured on 32 rows.
    each = min(seconds[1:]) * config.training.batch_size / rows
    print(config_to_toml(config))
    print(f"# folder: {folder}")
    print(f"# parameters: {sum(p.numel() for p in denoiser.parameters()):,}")
    hours = each * config.training.steps / 3600
    print(f"# estimated time on this machine: {hours:.2g} hours ({each:.2g} s a step), one process")
