"""Training runs of an experiment: finished ones are kept, the others go on or start."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indel.experiments.requests import RUNS, Interrupted, Request
from indel.loading import load, model_folder
from indel.model import Denoiser
from indel.model.saving import read_config
from indel.training import (
    TrainingConfig,
    latest,
    load_config,
    load_run_config,
    read_metrics,
    train,
)
from indel.training.checkpoints import run_of, step_of
from indel.training.config_files import JSON_NAME, config_to_toml
from indel.vocabularies import IntegerVocabulary

LAST_SHARE = 0.1
"""The share of training whose validations are averaged, as in the paper."""


@dataclass(frozen=True)
class Run:
    """One model of a table."""

    name: str
    rate: float
    seed: int
    folder: Path
    config: TrainingConfig
    """What it is trained with, or, for one from elsewhere, what is measured on."""
    foreign: bool = False
    """Whether it is from elsewhere: taken as it is, never trained and not written to."""
    checkpoint: Path | None = None
    """Which of its checkpoints is meant, so that runs compare at one step; None: the newest."""

    @property
    def steps_done(self) -> int:
        """The step of the checkpoint."""
        found = self.checkpoint or latest(self.folder)
        return 0 if found is None else step_of(found)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to train."""
        return self.foreign or (
            (self.folder / JSON_NAME).is_file()
            and load_run_config(self.folder) == self.config
            and self.steps_done >= self.config.training.steps
        )

    def model(self) -> Denoiser:
        """The model of the checkpoint, with averaged weights if there are any."""
        return load(model_folder(self.checkpoint or self.folder, newest=True))

    def metrics(self, kind: str) -> list[dict[str, Any]]:
        """Records of training or validation up to here; nothing if only the model is there."""
        done = self.steps_done
        return [
            each
            for each in read_metrics(self.folder)
            if each["kind"] == kind and each["step"] <= done
        ]

    def training(self) -> TrainingConfig | None:
        """The config that it was trained with, if that is known."""
        return load_run_config(self.folder) if (self.folder / JSON_NAME).is_file() else None


def planned_run(
    request: Request, task: str, rate: float, seed: int, changes: dict[str, Any], suffix: str = ""
) -> Run:
    """The run of a task at the scale asked for; a folder given with --use serves instead."""
    overrides = {"training.tensorboard": False, **changes, **request.overrides}
    overrides |= {"process.rate": rate, "training.seed": seed}
    config = load_config(task, request.scale, overrides=overrides)
    name = f"{task}-rate{rate:g}"
    used = request.used.get(rate)
    if used is not None and _holds_numbers(used) == (task == "arithmetic"):
        folder = run_of(used)
        chosen = used if used != folder else None
        return Run(f"{name}-used", rate, 0, folder, config, foreign=True, checkpoint=chosen)
    name = f"{name}{suffix}-seed{seed}"
    return Run(name, rate, seed, request.folder / RUNS / name, config)


def different(runs: Iterable[Run]) -> list[Run]:
    """Each run once: one from elsewhere serves for all seeds of its rate."""
    return list({run.name: run for run in runs}.values())


def complete(request: Request, runs: Sequence[Run]) -> None:
    """Train what is not finished, one run after the other, and say how long it will take."""
    waiting = [run for run in runs if not run.finished]
    if len(waiting) < len(runs):
        request.say(f"{len(runs) - len(waiting)} of {len(runs)} runs are there already")
    steps_left = sum(run.config.training.steps - run.steps_done for run in waiting)
    steps_done, began = 0, time.monotonic()
    for number, run in enumerate(waiting, start=1):
        left = "time left is known after the first run"
        if steps_done:
            seconds = (time.monotonic() - began) / steps_done * steps_left
            left = f"about {_duration(seconds)} left"
        request.say(f"run {number} of {len(waiting)}, {run.name}: {left}")
        steps = run.config.training.steps - run.steps_done
        resume = (run.folder / JSON_NAME).is_file()
        result = train(run.config, run.folder, resume=resume, console=request.console)
        if result.interrupted:
            raise Interrupted(f"interrupted in {run.name} at step {result.step}")
        steps_done, steps_left = steps_done + steps, steps_left - steps


def settings_beside(config: TrainingConfig) -> str:
    """The config as TOML, without where this machine keeps its data."""
    lines = config_to_toml(config).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("path = "))


def _holds_numbers(folder: Path) -> bool:
    """Whether a model from elsewhere is one of arithmetic sequences, and not of text."""
    return isinstance(read_config(model_folder(folder, newest=True)).vocabulary, IntegerVocabulary)


def _duration(seconds: float) -> str:
    """
    >>> _duration(59), _duration(600), _duration(7200)
    ('59 s', '10 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
