"""Arguments that several commands have, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from indel.data import BatchStream
    from indel.text_repair.repairer import Repairer
    from indel.training import TrainingConfig

Model = Annotated[
    Path,
    typer.Argument(help="A bundled model, or the folder of a model, a run or a checkpoint."),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The same seed, the same output.")]
Count = Annotated[int, typer.Option("--count", "-n", min=1, max=100_000, help="How many.")]
Temperature = Annotated[float, typer.Option(help="Of both heads; 1 is the model itself.")]
TopP = Annotated[float, typer.Option(help="Keep this share of the mass of both heads.")]
Correct = Annotated[
    int,
    typer.Option(
        min=0, max=10_000, help="Go a quarter of the steps forward and back again, so often."
    ),
]
BatchSize = Annotated[
    int, typer.Option(min=1, help="Sequences at a time: memory and speed, not the output.")
]
Steps = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="The steps of the process, for a model trained for several numbers of them.",
    ),
]
Guidance = Annotated[
    float,
    typer.Option(
        min=0.0, help="How much a frozen source counts, for a model trained so; 1 is the model."
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps …")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object per line.")]


def open_repairer(model: str, device: str, *, with_words: bool, **settings: Any) -> Repairer:
    """What repairs text with a model and the weights that lie beside it, and with the words there
    unless they are not wanted.
    """
    from indel.loading import load, model_folder
    from indel.text_repair.known_words import KnownWords
    from indel.text_repair.repairer import Repairer
    from indel.text_repair.weights import RepairWeights

    folder = model_folder(model)
    words = KnownWords.read(folder) if with_words else None
    weights = RepairWeights.read(folder)
    return Repairer(load(model, device=device), words=words, weights=weights, **settings)


def run_folder(path: Path) -> Path | None:
    """The folder of the run that a path lies in, if it lies in one."""
    from indel.training.config_files import TOML_NAME

    folders = (path, *path.absolute().parents[:3])
    return next((folder for folder in folders if (folder / TOML_NAME).is_file()), None)


def run_config(path: Path) -> TrainingConfig | None:
    """The config of the run that a path lies in, if it lies in one."""
    from indel.training import load_run_config

    folder = run_folder(path)
    return None if folder is None else load_run_config(folder)


def open_named_data(name: str | None, options: dict[str, Any], path: Path) -> BatchStream:
    """The data that is named, or that of the model's own run."""
    from indel.data import open_data

    if name is not None:
        return open_data(name, **{"seed": 0, **options})
    config = run_config(path)
    if config is None:
        raise ValueError(f"{path} lies in no training run: say with --data what to evaluate on")
    place = config.data.name.removeprefix("huggingface:")
    if place != config.data.name and not Path(place).exists():
        # The config of a folder may come from others: only the user's own word fetches anything.
        raise ValueError(
            f"the config of {path} names data of the Hub: give --data {config.data.name} and its "
            "options to fetch it"
        )
    return config.open_data()


def parsed_settings(settings: list[str], option: str) -> dict[str, Any]:
    """KEY=VALUE pairs, values as in TOML."""
    from indel.training import parse_value

    pairs: dict[str, Any] = {}
    for setting in settings:
        key, sign, value = setting.partition("=")
        if not sign or not key:
            raise ValueError(f"{option} takes KEY=VALUE, got {setting!r}")
        pairs[key.strip()] = parse_value(value.strip())
    return pairs
