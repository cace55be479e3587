"""What a name or path on the command line means: a model, and the data it was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indel.data import BatchStream
    from indel.model import Denoiser
    from indel.repairing.repairer import Repairer
    from indel.training import TrainingConfig

WEIGHTS = "model.safetensors"


def model_folder(model: str | Path) -> Path:
    """The folder with weights that is meant: a bundled model, a folder, or a run's best checkpoint.

    Names of bundled models come first; a folder of that name is reached by a longer path.
    """
    from indel.pretrained import MODELS, pretrained_folder

    path = pretrained_folder(str(model)) if str(model) in MODELS else Path(model)
    if not path.exists():
        raise ValueError(
            f"there is no model at {model}: expected is one of {', '.join(MODELS)}, or the folder "
            "of a model or a run"
        )
    if (path / WEIGHTS).is_file():
        return path
    # Only here: training needs packages that using a model does not.
    from indel.training.checkpoints import MODEL, find_checkpoint

    return find_checkpoint(path, prefer_best=True) / MODEL


def open_model(model: str | Path, device: str = "cpu") -> Denoiser:
    """The denoiser that is meant, ready to be used."""
    import torch

    from indel.model import Denoiser

    try:
        where = torch.device(device)
        torch.empty(0, device=where)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"--device {device!r} is not to be had here: {error}") from None
    return Denoiser.from_pretrained(model_folder(model), map_location=where).to(where).eval()


def open_repairer(model: str, device: str, *, with_words: bool, **settings: Any) -> Repairer:
    """What repairs text with a model, and with the words that lie beside it unless they are not
    wanted.
    """
    from indel.repairing.known_words import KnownWords
    from indel.repairing.repairer import Repairer

    words = KnownWords.read(model_folder(model)) if with_words else None
    return Repairer(open_model(model, device), words=words, **settings)


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
