"""Training on Hugging Face Accelerate, with checkpoints from which a run resumes bit for bit."""

from importlib import import_module
from typing import TYPE_CHECKING

from indel import extras

if TYPE_CHECKING:
    from indel.training.checkpoints import best, find_checkpoint, latest, read_checkpoint
    from indel.training.config import TrainingConfig
    from indel.training.config_files import config_to_toml, load_config, parse_value
    from indel.training.engine import TrainingResult, train
    from indel.training.errors import CheckpointError, NonFiniteError, TrainingError
    from indel.training.metrics import read_metrics
    from indel.training.presets import SCALES, TASKS
    from indel.training.resuming import load_run_config

__all__ = [
    "SCALES",
    "TASKS",
    "CheckpointError",
    "NonFiniteError",
    "TrainingConfig",
    "TrainingError",
    "TrainingResult",
    "best",
    "config_to_toml",
    "find_checkpoint",
    "latest",
    "load_config",
    "load_run_config",
    "parse_value",
    "read_checkpoint",
    "read_metrics",
    "train",
]

_ENGINE = "engine"
_HOMES = {
    "SCALES": "presets",
    "TASKS": "presets",
    "CheckpointError": "errors",
    "NonFiniteError": "errors",
    "TrainingConfig": "config",
    "TrainingError": "errors",
    "TrainingResult": _ENGINE,
    "best": "checkpoints",
    "config_to_toml": "config_files",
    "find_checkpoint": "checkpoints",
    "latest": "checkpoints",
    "load_config": "config_files",
    "load_run_config": "resuming",
    "parse_value": "config_files",
    "read_checkpoint": "checkpoints",
    "read_metrics": "metrics",
    "train": _ENGINE,
}


def __getattr__(name: str) -> object:
    """Import a name when it is first used: reading runs needs no Accelerate, training them does."""
    if name not in _HOMES:
        raise AttributeError(f"module 'indel.training' has no attribute {name!r}")
    if _HOMES[name] == _ENGINE:
        extras.require("training", "accelerate", "train")
    return getattr(import_module(f"indel.training.{_HOMES[name]}"), name)
