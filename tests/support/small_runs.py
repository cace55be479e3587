"""A run that takes a second, in the process of a test or as a program of its own."""

from __future__ import annotations

import json
import logging
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from indel.training import TrainingConfig, TrainingError, latest, load_config, read_metrics, train
from indel.training.checkpoints import Snapshot, read_checkpoint
from support.programs import environment

VERY_SMALL: dict[str, Any] = {
    "data.options.numbers": 16,
    "data.options.max_step": 2,
    "data.options.min_length": 3,
    "data.options.max_length": 6,
    "process.num_steps": 4,
    "model.width": 16,
    "model.num_layers": 1,
    "model.num_heads": 2,
    "model.head_width": 8,
    "model.feedforward_width": 32,
    "model.max_length": 24,
    "optimizer.warm_up": 4,
    "optimizer.schedule": "cosine",
    "optimizer.period": 40,
    "optimizer.average_decay": 0.99,
    # Whatever the processor is fast with: sums in another order must agree to many digits.
    "training.precision": "float32",
    "training.steps": 20,
    "training.batch_size": 8,
    "training.save_every": 5,
    "training.log_every": 1,
    "training.tensorboard": False,
    "validation.every": 10,
    "validation.examples": 8,
    "validation.samples": 4,
}


def very_small(**changes: Any) -> TrainingConfig:
    """The config of a run that takes a second; `section__name` stands for section.name."""
    return load_config("arithmetic", "tiny", overrides=settings(**changes))


def settings(**changes: Any) -> dict[str, Any]:
    """The same as dotted names and values."""
    return VERY_SMALL | {name.replace("__", "."): value for name, value in changes.items()}


def final(folder: Path) -> Snapshot:
    """What a run has come to."""
    newest = latest(folder)
    assert newest is not None
    return read_checkpoint(newest)


def records(folder: Path) -> list[dict[str, Any]]:
    """What a run has recorded, but for the clock."""
    clocks = ("seconds", "cpu_seconds")
    return [{k: v for k, v in r.items() if k not in clocks} for r in read_metrics(folder)]


def start_program(
    folder: Path,
    *,
    resume: bool = False,
    file_limit: int | None = None,
    launcher: tuple[str, ...] = (sys.executable,),
    **changes: Any,
) -> subprocess.Popen[str]:
    """Start a very small run as a program; no file of it may grow beyond the limit."""
    arguments = json.dumps([settings(**changes), str(folder), resume, file_limit])
    return subprocess.Popen(
        [*launcher, "-m", "support.small_runs", arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def main() -> None:
    """The program."""
    logging.basicConfig(format="%(message)s")
    overrides, folder, resume, file_limit = json.loads(sys.argv[1])
    if file_limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    config = load_config("arithmetic", "tiny", overrides=overrides)
    print("started", flush=True)
    try:
        result = train(config, folder, resume=resume)
    except TrainingError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(json.dumps({"step": result.step, "interrupted": result.interrupted}), flush=True)


if __name__ == "__main__":
    main()
