"""`indel info`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from indel.atomic_files import read_json
from indel.commands.arguments import Model, run_config


def info(
    path: Model,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show what is in a model, a run or a checkpoint."""
    from indel.loading import model_folder

    folder = model_folder(path)
    facts = _facts(folder)
    config = run_config(path)
    if as_json:
        settings = None if config is None else config.to_dict()
        print(json.dumps({**facts, "config": settings}, ensure_ascii=False))
        return
    table = Table(show_header=False, box=None, padding=(0, 2))
    for name, value in facts.items():
        shown = f"{value:,}" if isinstance(value, int | float) else str(value)
        table.add_row(name.replace("_", " "), shown[:200])
    Console(soft_wrap=True, highlight=False).print(table)
    if config is not None:
        from indel.training import config_to_toml

        print(f"\n{config_to_toml(config)}")


def _facts(folder: Path) -> dict[str, Any]:
    """What a model is, under the names that `--json` gives."""
    from indel.loading import load

    denoiser = load(folder)
    schedule, vocabulary = denoiser.schedule, denoiser.vocabulary
    facts: dict[str, Any] = {
        "weights": str(folder),
        "parameters": sum(weight.numel() for weight in denoiser.parameters()),
        "backbone": denoiser.config.backbone.to_dict(),
        "vocabulary": repr(vocabulary),
        "vocabulary_size": vocabulary.size,
        "steps_of_the_process": schedule.num_steps,
        "deleted_before_the_last_step": round(1.0 - schedule.jump(schedule.num_steps - 1).keep, 6),
        "max_length": denoiser.config.max_length,
        "length_limit": denoiser.length_limit,
        "edit_weights": denoiser.config.edit_weights,
    }
    state = folder.parent / "state.json"
    if state.is_file():
        record = read_json(state)
        names = ("step", "seconds", "best_step", "best_bound", "bad_steps")
        facts |= {name: record[name] for name in names if record.get(name) is not None}
    return facts
