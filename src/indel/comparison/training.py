"""The loop that trains every process: the same recipe, batches and budget of processor time.

It is not the engine of `indel.training`, which takes denoisers alone, a number of steps and several
processes; optimizers, learning rates, logs, locks and signals are those of that engine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from indel.comparison.checkpoints import Checkpoint
from indel.comparison.interface import Method, Preparing
from indel.data import BatchStream
from indel.randomness import seeds_for
from indel.training.config import OptimizerSection
from indel.training.errors import NonFiniteError
from indel.training.interruption import Interruption
from indel.training.learning_rates import flat_by_share
from indel.training.locking import locked
from indel.training.metrics import MetricsLog
from indel.training.optimizers import hidden_matrices, make_optimizers
from indel.training.presets import recipe
from indel.training.states import (
    gather_optimizers,
    gather_weights,
    scatter_optimizers,
    scatter_weights,
)

CHECKPOINT = "checkpoint.safetensors"
_BAD_STEPS = 3
_SAVES, _LOGS = 20, 200
"""How often within the budget a checkpoint is written and a loss is logged."""

Clock = Callable[[], float]
Validate = Callable[[Method], dict[str, Any]]


class Interrupted(Exception):
    """A signal ended the comparison; the same command goes on from there."""


@dataclass(frozen=True)
class TrainingPlan:
    """How each process is trained."""

    budget: float
    """Seconds of processor time for training steps, all threads together; measuring is extra."""
    batch_size: int
    seed: int
    validations: int
    """How often the method is measured, evenly over the budget, the last time at its end."""
    optimizer: OptimizerSection = field(
        default_factory=lambda: OptimizerSection(**recipe(1000)["optimizer"])
    )


@dataclass
class Progress:
    """What is known besides weights."""

    step: int = 0
    cpu_seconds: float = 0.0
    bad_steps: int = 0
    validated: int = 0


def train_method(
    method: Method,
    data: BatchStream,
    folder: Path,
    plan: TrainingPlan,
    *,
    validate: Validate,
    clock: Clock = time.process_time,
) -> Progress:
    """Train until the budget is spent, from the checkpoint in the folder on if there is one.

    Step n is a pure function of the seed, n, the share of the budget that is spent, and the state
    before it. A first signal ends it after the step, with a checkpoint and `Interrupted`.
    """
    run = _Run(method, data, folder, plan, clock)
    with locked(folder), Interruption() as interruption:
        run.start()
        log = MetricsLog(folder, after_step=run.progress.step, tensorboard=False)
        try:
            run.go(log, validate, interruption)
        finally:
            log.close()
    return run.progress


def load_trained(method: Method, folder: Path) -> Progress:
    """Give a method the weights of its checkpoint."""
    saved = Checkpoint.read(folder / CHECKPOINT)
    scatter_weights(as_module(method), saved.weights, "")
    return Progress(**saved.state)


def as_module(method: Method) -> nn.Module:
    """The method as the module that it is."""
    assert isinstance(method, nn.Module)
    return cast("nn.Module", method)


class _Run:
    """One process, on its way."""

    def __init__(
        self, method: Method, data: BatchStream, folder: Path, plan: TrainingPlan, clock: Clock
    ) -> None:
        self.method, self.module = method, as_module(method)
        self.data, self.folder, self.plan, self.clock = data, folder, plan, clock
        self.progress = Progress()

    def start(self) -> None:
        """Fit what is fitted, or read the checkpoint."""
        if isinstance(self.method, Preparing):
            self.method.prepare(self.data, seed=self.plan.seed)
        if not hidden_matrices(self.module):
            raise ValueError(
                f"{self.method.name} has no linear layers in a module called backbone, which Muon "
                "trains for every process"
            )
        self.optimizers = make_optimizers(
            self.module, self.plan.optimizer, muon_dtype=torch.float32
        )
        self.rates = [[group["lr"] for group in o.param_groups] for o in self.optimizers]
        if (self.folder / CHECKPOINT).exists():
            saved = Checkpoint.read(self.folder / CHECKPOINT)
            scatter_weights(self.module, saved.weights, "")
            scatter_optimizers(self.module, self.optimizers, saved.optimizers)
            self.progress = Progress(**saved.state)

    @property
    def share(self) -> float:
        """Of the budget, that is spent."""
        return min(1.0, self.progress.cpu_seconds / self.plan.budget)

    def go(self, log: MetricsLog, validate: Validate, interruption: Interruption) -> None:
        """Train and measure to the end of the budget."""
        saved = logged = self.share
        while self.share < 1.0:
            before = self.clock()
            loss = self._step()
            self.progress.cpu_seconds += self.clock() - before
            if self.share >= logged + 1.0 / _LOGS or self.share == 1.0:
                log.write("train", self.progress.step, {"loss": loss, **self._clock()})
                logged = self.share
            if self.share >= (self.progress.validated + 1) / self.plan.validations:
                self._validate(log, validate)
            if self.share >= saved + 1.0 / _SAVES or self.share == 1.0 or interruption.requested:
                self._save(log)
                saved = self.share
            if interruption.requested and self.share < 1.0:
                raise Interrupted(f"{self.method.name} was interrupted")
        self.module.eval()

    def _clock(self) -> dict[str, float]:
        return {"cpu_seconds": self.progress.cpu_seconds}

    def _step(self) -> float:
        """One update; returns the mean loss."""
        plan, step = self.plan, self.progress.step
        section = plan.optimizer
        factor = flat_by_share(
            step, self.share, warm_up=section.warm_up, cool_down=section.cool_down
        )
        for optimizer, rates in zip(self.optimizers, self.rates, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = factor * rate
        self.module.train()
        x_0 = self.data.batch(step, plan.batch_size, "train").trimmed()
        generator = noise(plan.seed, "comparison training", step)
        loss = self.method.loss(x_0, generator=generator).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.module.parameters(), section.clip or math.inf)
        value = float(loss.detach())
        if math.isfinite(value) and math.isfinite(float(norm)):
            for optimizer in self.optimizers:
                optimizer.step()
        else:
            self.progress.bad_steps += 1
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        if self.progress.bad_steps > _BAD_STEPS:
            raise NonFiniteError(
                f"{self.method.name}: the loss or its gradient is not a finite number in step "
                f"{step} of seed {plan.seed}, for the {self.progress.bad_steps}th time"
            )
        self.progress.step += 1
        return value

    def _validate(self, log: MetricsLog, validate: Validate) -> None:
        self.module.eval()
        # One step may pass several of the times at which to measure.
        self.progress.validated = int(self.share * self.plan.validations)
        log.write("validation", self.progress.step, {**validate(self.method), **self._clock()})

    def _save(self, log: MetricsLog) -> None:
        log.flush()
        Checkpoint(
            gather_weights(self.module, ""),
            gather_optimizers(self.module, self.optimizers),
            asdict(self.progress),
        ).write(self.folder / CHECKPOINT)


def noise(seed: int, purpose: str, number: int) -> torch.Generator:
    """The generator for one of many pieces of work."""
    return torch.Generator().manual_seed(int(seeds_for(seed, purpose, number, 1)))
