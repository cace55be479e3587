"""The training loop, on Hugging Face Accelerate."""

from __future__ import annotations

import logging
import math
import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from accelerate.utils import DistributedType
from jaxtyping import Float
from rich.console import Console
from torch import Tensor

from indel.bound.times import TermSizes, TimeDistribution
from indel.data import BatchStream, LengthSorted
from indel.model import Denoiser
from indel.training import checkpoints
from indel.training.agreement import check_agreement
from indel.training.averages import WeightAverage
from indel.training.batches import BatchPlan, Times
from indel.training.checkpoints import Snapshot
from indel.training.compilation import keep_compiled_code
from indel.training.config import TrainingConfig
from indel.training.config_files import JSON_NAME, write_config_files
from indel.training.counting import fit_counts
from indel.training.errors import NonFiniteError, TrainingError
from indel.training.interruption import Interruption
from indel.training.learning_rates import flat_steps, rate_factor
from indel.training.lengths import fit_lengths
from indel.training.locking import locked
from indel.training.losses import PARTS, BatchLoss, DenoiserWork
from indel.training.metrics import MetricsLog
from indel.training.optimizers import make_optimizers
from indel.training.reporting import ProgressReport
from indel.training.resuming import FINGERPRINT, check_resumable, checkpoint_to_resume
from indel.training.starting import take_weights
from indel.training.states import (
    gather_optimizers,
    gather_weights,
    scatter_optimizers,
    scatter_weights,
)
from indel.training.validation import Validator

_log = logging.getLogger(__name__)
_PREFIX = "denoiser."


@dataclass(frozen=True)
class TrainingResult:
    """What a run has come to."""

    folder: Path
    step: int
    """Steps done in all, also before it was resumed."""
    interrupted: bool
    """Whether a signal ended it before its last step."""
    checkpoint: Path | None
    """The newest one."""
    best: Path | None
    """The one with the lowest bound in validation."""
    validation: dict[str, Any]
    """The last metrics, empty if there were none."""
    bad_steps: int
    seconds: float

    @cached_property
    def model(self) -> Denoiser:
        """The best model in validation (the newest one if none was measured), from its checkpoint.

        With averaged weights if there are any, on the CPU and in evaluation mode.
        """
        found = self.best or self.checkpoint
        if found is None:
            raise TrainingError(f"the run in {self.folder} has no checkpoint yet")
        return Denoiser.from_pretrained(found / checkpoints.MODEL)


@dataclass
class _Progress:
    """What a run knows besides weights: all of it is in its checkpoints."""

    step: int = 0
    bad_steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of counting and of training steps, of this process."""
    best_step: int | None = None
    best_bound: float | None = None
    average_updates: int = 0


def train(
    config: TrainingConfig,
    folder: str | Path,
    *,
    resume: bool = False,
    console: Console | None = None,
) -> TrainingResult:
    """Train the denoiser of a config on its data; see `train_denoiser`."""
    data = config.open_data()
    denoiser = config.denoiser(data)
    if config.model is not None and config.model.start is not None:
        take_weights(denoiser, config.model.start)
    return train_denoiser(denoiser, data, config, folder, resume=resume, console=console)


def train_denoiser(
    denoiser: Denoiser,
    data: BatchStream,
    config: TrainingConfig,
    folder: str | Path,
    *,
    resume: bool = False,
    console: Console | None = None,
) -> TrainingResult:
    """Train any denoiser on any data, or go on where the newest checkpoint in the folder ends.

    Of the config the sections optimizer, training and validation are used; the others describe
    what is given here.

    Under `accelerate launch` this is done by several processes, which share each batch. Step n is
    a pure function of the config, n and the state before it: a run that was stopped or killed and
    resumed ends, on CPUs, with the same bits as one that was not.

    Paper: App. C.2 and C.3
    """
    accelerator = Accelerator()
    # A launcher's setting would scale the loss a second time: see training.accumulate.
    accelerator.gradient_accumulation_steps = 1
    folder = Path(folder)
    main = accelerator.is_main_process
    with locked(folder) if main else nullcontext():
        if main and resume:
            checkpoints.set_aside_damaged(folder)
        accelerator.wait_for_everyone()
        found = checkpoint_to_resume(folder, config) if resume else checkpoints.latest(folder)
        if not resume and (found or (folder / JSON_NAME).exists()):
            raise TrainingError(f"{folder} holds a run already: resume it or choose another folder")
        if resume and found is None:
            _log.warning("there is no whole checkpoint in %s to resume: starting anew", folder)
        cpu = time.process_time()
        if found is None:
            fit_counts(denoiser, data)
        counting = time.process_time() - cpu
        run = _Run(denoiser, data, config, folder, accelerator)
        run.progress.cpu_seconds = counting
        if found is not None:
            run.restore(checkpoints.read_checkpoint(found))
            if main and found != checkpoints.latest(folder):
                for path in checkpoints.set_aside(folder, after=checkpoints.step_of(found)):
                    _log.warning("the run resumes before %s, which stays under this name", path)
            accelerator.wait_for_everyone()
        return run.go(console or Console(stderr=True))


class _Run:
    """One training run of one process."""

    def __init__(
        self,
        denoiser: Denoiser,
        data: BatchStream,
        config: TrainingConfig,
        folder: Path,
        accelerator: Accelerator,
    ) -> None:
        self.config, self.folder, self.accelerator = config, folder, accelerator
        self.denoiser = denoiser
        self.fingerprint = data.fingerprint()
        section = config.training
        check_agreement(section, denoiser)
        self.validator = Validator(config, data, accelerator)
        self.plan = BatchPlan(
            LengthSorted(data, batch_size=section.batch_size) if section.sort_by_length else data,
            section.batch_size,
            section.accumulate,
            section.seed,
            accelerator.process_index,
            accelerator.num_processes,
        )
        fit_lengths(denoiser, data, seed=section.seed)
        if section.compile:
            keep_compiled_code()
            self.denoiser.backbone.compile(dynamic=True)
        if config.optimizer.name == "muon" and _is_sharded(accelerator):
            raise TrainingError(
                "Muon needs whole matrices, which shards are not: set optimizer.name = 'adamw'"
            )
        full = torch.float32 if section.precision == "float32" else None
        optimizers = make_optimizers(self.denoiser, config.optimizer, muon_dtype=full)
        self.base_rates = [[group["lr"] for group in o.param_groups] for o in optimizers]
        self.model, *self.optimizers = accelerator.prepare(DenoiserWork(self.denoiser), *optimizers)
        decay = config.optimizer.average_decay
        self.average = WeightAverage(self.model, decay) if decay else None
        self.loss = BatchLoss(section, accelerator.device)
        self.last_flat_step = (
            flat_steps(section.steps, config.optimizer.cool_down)
            if config.optimizer.schedule == "flat"
            else None
        )
        """From here the run can be extended, so this checkpoint is made and kept."""
        self.sizes = TermSizes(self.denoiser.schedule.num_steps)
        self.progress = _Progress()
        self.metrics: dict[str, Any] = {}

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to where a checkpoint was made."""
        check_resumable(snapshot, self.config, self.denoiser.config, self.fingerprint, self.folder)
        if self.average is not None:
            assert snapshot.averages is not None
            scatter_weights(self.model, snapshot.averages, _PREFIX)
            self.average.restart()
        scatter_weights(self.model, snapshot.weights, _PREFIX)
        scatter_optimizers(self.model, self._bare_optimizers(), snapshot.optimizer)
        state = {k: v for k, v in snapshot.state.items() if k != FINGERPRINT}
        self.sizes.square = torch.tensor(state.pop("term_sizes"), dtype=torch.float64)
        self.progress = _Progress(step=snapshot.step, **state)
        if self.average is not None:
            self.average.updates = self.progress.average_updates

    def go(self, console: Console) -> TrainingResult:
        """Train to the last step or to a signal."""
        main, section = self.accelerator.is_main_process, self.config.training
        start, checkpoint = self.progress.step, checkpoints.latest(self.folder)
        log = self._open_folder() if main else None
        report = ProgressReport(console, start=start, total=section.steps, shown=main)
        began = time.monotonic() - self.progress.seconds
        interrupted = False
        self.model.train()
        try:
            with report, Interruption() as interruption:
                for number in range(start, section.steps):
                    cpu = time.process_time()
                    values = self._step(number)
                    self.progress.cpu_seconds += time.process_time() - cpu
                    done = self.progress.step = number + 1
                    self.progress.seconds = time.monotonic() - began
                    last = done == section.steps
                    report.step(done, values)
                    if log and (done % section.log_every == 0 or last or not _finite(values)):
                        log.write("train", done, {**values, **self._clocks()})
                    self._stop_if_too_bad(number)
                    improved = False
                    if done % self.config.validation.every == 0 or last:
                        improved = self._validate(done, log, report)
                    interrupted = self._any(interruption.requested) and not last
                    due = done % section.save_every == 0 or done == self.last_flat_step
                    if due or last or improved or interrupted:
                        checkpoint = self._save(log) or checkpoint
                    if interrupted:
                        break
        finally:
            if log:
                log.close()
        return TrainingResult(
            folder=self.folder,
            step=self.progress.step,
            interrupted=interrupted,
            checkpoint=checkpoint,
            best=checkpoints.best(self.folder),
            validation=self.metrics,
            bad_steps=self.progress.bad_steps,
            seconds=self.progress.seconds,
        )

    def _open_folder(self) -> MetricsLog:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_config_files(self.config, self.folder)
        except OSError as error:
            reason = error.strerror or error
            raise TrainingError(f"cannot write to the folder {self.folder}: {reason}") from error
        section = self.config.training
        return MetricsLog(
            self.folder, after_step=self.progress.step, tensorboard=section.tensorboard
        )

    def _clocks(self) -> dict[str, float]:
        return {"seconds": self.progress.seconds, "cpu_seconds": self.progress.cpu_seconds}

    def _step(self, number: int) -> dict[str, float]:
        """One step: all micro-batches, then an update, unless something is no number."""
        factor = rate_factor(self.config.optimizer, number, steps=self.config.training.steps)
        for optimizer, rates in zip(self.optimizers, self.base_rates, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = factor * rate
        # Only dropout reads torch's own generator: seeded for each step, it needs no saving.
        torch.manual_seed(self.plan.step_seed(number))
        # Several numbers of steps take turns.
        num_steps = self.denoiser.step_choices[number % len(self.denoiser.step_choices)]
        times = self.plan.times(number, self._time_distribution(num_steps))
        rows = self._forward_and_backward(number, times, num_steps)
        clip = self.config.optimizer.clip or math.inf
        norm = self.accelerator.clip_grad_norm_(self.model.parameters(), clip)
        means = rows.double().mean(dim=0).tolist()
        values = dict(zip(PARTS, means, strict=True))
        values |= {"gradient": float(norm), "rate_factor": factor}
        # A loss scaler (float16) finds its scale by gradients that overflow, and leaves them out.
        if _finite(values) or (self.accelerator.scaler and math.isfinite(values["loss"])):
            for optimizer in self.optimizers:
                optimizer.step()
            if self.average is not None:
                self.average.update()
            if num_steps == self.denoiser.schedule.num_steps:
                self.sizes.update(times.t, (rows[:, 0] - rows[:, -1]) / times.weight)
        else:
            self.progress.bad_steps += 1
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        return values

    def _forward_and_backward(
        self, number: int, times: Times, num_steps: int
    ) -> Float[Tensor, "batch parts"]:
        """Leave the gradient of the mean loss of the whole batch; returns the parts of each row."""
        pieces = self.plan.micro_batches(number, times, device=self.accelerator.device)
        parts = []
        for piece in pieces:
            last = piece is pieces[-1]
            with nullcontext() if last else self.accelerator.no_sync(self.model):
                each = self.model(partial(self.loss, piece=piece, num_steps=num_steps))
                # Gradients are averaged over the processes, which have equally many rows.
                self.accelerator.backward(each[:, 0].sum() / self.plan.rows)
            parts.append(each.detach())
        gathered: Tensor = self.accelerator.gather(torch.cat(parts))
        return gathered.cpu()

    def _time_distribution(self, num_steps: int) -> TimeDistribution:
        match self.config.training.times:
            case "uniform":
                return TimeDistribution.uniform(num_steps)
            case "low-noise":
                return TimeDistribution.low_noise(num_steps)
            case "term-size":
                return self.sizes.law()

    def _stop_if_too_bad(self, number: int) -> None:
        allowed, section = self.config.training.bad_steps, self.config.training
        if self.progress.bad_steps > allowed:
            raise NonFiniteError(
                f"the loss or its gradient is not a finite number in batch {number} of seed "
                f"{section.seed}, the bad step number {self.progress.bad_steps} "
                f"(training.bad_steps = {allowed}); lower the learning rate, or resume from the "
                "last checkpoint with more bad_steps"
            )

    def _validate(self, done: int, log: MetricsLog | None, report: ProgressReport) -> bool:
        """Measure the average, or the weights where there is none; whether it is the best yet."""
        with self.average.in_place() if self.average else nullcontext():
            self.metrics = self.validator(self.model)
        if log:
            log.write("validation", done, {**self.metrics, **self._clocks()})
        report.validation(done, self.metrics)
        bound, best = self.metrics["bound"], self.progress.best_bound
        if not math.isfinite(bound) or (best is not None and bound >= best):
            return False
        self.progress.best_step, self.progress.best_bound = done, bound
        return True

    def _save(self, log: MetricsLog | None) -> Path | None:
        """Write a checkpoint; every process takes part in gathering it, the first one writes."""
        bare = self._bare_optimizers()
        if not all(optimizer.state for optimizer in bare):
            return None  # no step has been taken yet
        weights = gather_weights(self.model, _PREFIX)
        averages = None
        if self.average is not None:
            self.progress.average_updates = self.average.updates
            with self.average.in_place():
                averages = gather_weights(self.model, _PREFIX)
        optimizer = gather_optimizers(self.model, bare)
        path = None
        if log:
            log.flush()
            state = {**vars(self.progress), "term_sizes": self.sizes.square.tolist()}
            state[FINGERPRINT] = self.fingerprint
            step = state.pop("step")
            snapshot = Snapshot(
                step,
                weights,
                averages,
                optimizer,
                state,
                self.config.to_dict(),
                self.denoiser.config,
            )
            path = checkpoints.write_checkpoint(self.folder, snapshot)
            spared = {self.progress.best_step or 0, self.last_flat_step or 0}
            checkpoints.tidy(self.folder, keep=self.config.training.keep, spared=spared)
        self.accelerator.wait_for_everyone()
        return path

    def _any(self, flag: bool) -> bool:
        """Whether it is so in any process: all must leave the loop at the same step."""
        if self.accelerator.num_processes == 1:
            return flag
        mine = torch.tensor([float(flag)], device=self.accelerator.device)
        return bool(self.accelerator.reduce(mine, "sum") > 0)

    def _bare_optimizers(self) -> list[torch.optim.Optimizer]:
        return [o.optimizer if isinstance(o, AcceleratedOptimizer) else o for o in self.optimizers]


def _is_sharded(accelerator: Accelerator) -> bool:
    return accelerator.distributed_type in (DistributedType.FSDP, DistributedType.DEEPSPEED)


def _finite(values: dict[str, float]) -> bool:
    return all(map(math.isfinite, values.values()))
