"""What a path on the command line means: a model, and the data it was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indel.data import BatchStream
    from indel.model import Denoiser
    from indel.training import TrainingConfig

WEIGHTS = "model.safetensors"


def model_folder(path: Path) -> Path:
    """The folder with weights that a path means: itself, or that of a run's best checkpoint."""
    from indel.training.checkpoints import MODEL, find_checkpoint

    if not path.exists():
        raise ValueError(f"there is no model at {path}: expected is the folder of a model or a run")
    if (path / WEIGHTS).is_file():
        return path
    return find_checkpoint(path, prefer_best=True) / MODEL


def open_model(path: Path, device: str) -> Denoiser:
    """The denoiser at a path, ready to be used."""
    import torch

    from indel.model import Denoiser

    try:
        where = torch.device(device)
        torch.empty(0, device=where)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"--device {device!r} is not to be had here: {error}") from None
    return Denoiser.from_pretrained(model_folder(path), map_location=where).to(where).eval()


def run_config(path: Path) -> TrainingConfig | None:
    """The config of the run that a path lies in, if it lies in one."""
    from indel.training import load_run_config
    from indel.training.config_files import TOML_NAME

    for folder in (path, *path.absolute().parents[:3]):
        if (folder / TOML_NAME).is_file():
            return load_run_config(folder)
    return None


def open_named_data(name: str | None, options: dict[str, Any], path: Path) -> BatchStream:
    """The data that is named, or that of the model's own run."""
    from indel.data import open_data

    if name is not None:
        return open_data(name, **{"seed": 0, **options})
    config = run_config(path)
    if config is None:
        raise ValueError(f"{path} lies in no training run: say with --data what to evaluate on")
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
