"""What is measured during training: the bound, and samples, on the same data and noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn

from indel.batch import Batch
from indel.bound.conditional import evaluate_conditional
from indel.bound.estimates import BoundEstimate
from indel.bound.likelihood import evaluate
from indel.data import ArithmeticData, BatchStream
from indel.model import Denoiser
from indel.randomness import RowSeeds, seeds_for
from indel.sampling.generation import generate
from indel.training.config import TrainingConfig


@dataclass(frozen=True)
class Validator:
    """Evaluates a model; each process takes its part of the sequences."""

    config: TrainingConfig
    data: BatchStream
    accelerator: Accelerator

    def __post_init__(self) -> None:
        section, processes = self.config.validation, self.accelerator.num_processes
        for name in ("examples", "samples"):
            if getattr(section, name) % processes:
                raise ValueError(
                    f"validation.{name} must be a multiple of the {processes} processes, "
                    f"got {getattr(section, name)}"
                )

    def __call__(self, model: nn.Module) -> dict[str, Any]:
        """The bound with its standard error, and the error rate or texts of samples."""
        device = self.accelerator.device.type
        model.eval()
        # In full precision: a bound in sixteen bits would be known to half a percent.
        with torch.autocast(device, enabled=False):
            metrics = self._bound(model)
            if self.config.validation.samples:
                metrics |= self._samples(model)
        model.train()
        return metrics

    def _bound(self, model: nn.Module) -> dict[str, Any]:
        section, seed = self.config.validation, self.config.training.seed
        first, count = self._part(section.examples)
        starts = range(first, first + count, section.batch_size)
        batches = [
            self.data.examples(at, min(section.batch_size, first + count - at), "valid").trimmed()
            for at in starts
        ]

        def work(denoiser: Denoiser) -> tuple[torch.Tensor, torch.Tensor]:
            freezing = self.config.training.freezing(denoiser.vocabulary)
            measure: Callable[..., BoundEstimate] = evaluate
            if freezing is not None:
                # As in training: of some sequences nothing is frozen.
                measure = partial(evaluate_conditional, freezing=freezing)
            estimate = measure(
                denoiser,
                batches,
                seed=seed,
                num_times=section.num_times and min(section.num_times, denoiser.schedule.num_steps),
                first_row=first,
                progress=False,
            )
            return estimate.nats, estimate.lengths

        nats, lengths = model(work)
        device = self.accelerator.device
        # Not all devices have float64.
        nats = self.accelerator.gather(nats.float().to(device)).double()
        lengths = self.accelerator.gather(lengths.to(device))
        bits = nats.sum() / lengths.sum() / torch.log(torch.tensor(2.0))
        return {
            "bound": float(nats.mean()),
            "standard_error": float(nats.std() / len(nats) ** 0.5),
            "bits_per_token": float(bits),
        }

    def _samples(self, model: nn.Module) -> dict[str, Any]:
        first, count = self._part(self.config.validation.samples)
        device, seed = self.accelerator.device, self.config.training.seed
        noise = RowSeeds(seeds_for(seed, "validation samples", first, count).to(device))

        def work(denoiser: Denoiser) -> Batch:
            return generate(denoiser, count, generator=noise).x

        samples: Batch = model(work)
        width = torch.tensor([samples.width], device=device)
        widest = int(self.accelerator.gather(width).max())
        samples = Batch(
            self.accelerator.gather(samples.widened(widest).tokens),
            self.accelerator.gather(samples.lengths),
        ).to("cpu")
        metrics: dict[str, Any] = {"sample_length": float(samples.lengths.double().mean())}
        if isinstance(self.data, ArithmeticData):
            metrics["error_rate"] = self.data.error_rate(samples)
            metrics["valid_rate"] = float(self.data.is_valid(samples).double().mean())
        metrics["texts"] = [self.data.vocabulary.text(row) for row in samples.to_lists()[:4]]
        return metrics

    def _part(self, count: int) -> tuple[int, int]:
        """The first of this process's sequences, and how many it has."""
        each = count // self.accelerator.num_processes
        return self.accelerator.process_index * each, each
