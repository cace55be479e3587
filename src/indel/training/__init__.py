"""Training on Hugging Face Accelerate, with checkpoints from which a run goes on bit for bit."""

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
