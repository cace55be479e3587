"""The loss of a micro-batch, done inside of one call of the model that Accelerate prepared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from indel.batch import Batch
from indel.bound.conditional import conditional_loss
from indel.bound.objective import Objective
from indel.model import Denoiser, DenoiserOutput
from indel.model.gap_network import MarkedDenoise
from indel.processor import has_bfloat16
from indel.randomness import split
from indel.training.batches import MicroBatch
from indel.training.config import TrainingSection

PARTS = ("loss", "tokens", "deletions", "forward", "length")
"""The loss of a sequence, and what it is the sum of."""


class DenoiserWork(nn.Module):
    """A denoiser that lends itself to a piece of work.

    Accelerate's wrappers (several processes, shards, mixed precision) see one call, whatever is
    done in it: the whole loss, an evaluation, or a hundred calls of the network to sample.
    """

    def __init__(self, denoiser: Denoiser) -> None:
        super().__init__()
        self.denoiser = denoiser

    def forward(self, work: Callable[[Denoiser], Any]) -> Any:
        return work(self.denoiser)


@dataclass(frozen=True)
class BatchLoss:
    """The bound of each row at its time t, with the noise of that row.

    Paper: Eq. (2)
    """

    section: TrainingSection
    device: torch.device

    def __call__(
        self, denoiser: Denoiser, *, piece: MicroBatch, num_steps: int
    ) -> Float[Tensor, "rows parts"]:
        """The `PARTS` of each row; each term L_{t−1} counts with the weight of its t."""
        denoiser = denoiser.with_steps(num_steps)
        objective = Objective(
            denoiser.schedule,
            max_length=denoiser.length_limit,
            edit_samples=self.section.edit_samples,
            marginalize=self.section.marginalize,
            weights=denoiser.edit_weights(denoiser.schedule.tables(piece.x_0.device).jump),
        )
        network = self._in_chosen_precision(denoiser)
        freezing = self.section.freezing(denoiser.vocabulary)
        with torch.autocast(self.device.type, enabled=False):
            if freezing is None:
                loss = objective(
                    network,
                    denoiser.length,
                    piece.x_0,
                    generator=piece.noise,
                    t=piece.t,
                    weight=piece.weight,
                )
            else:
                loss = conditional_loss(
                    objective,
                    network,
                    denoiser.length,
                    freezing(piece.x_0, generator=split(piece.noise)),
                    generator=piece.noise,
                    t=piece.t,
                    weight=piece.weight,
                )
        weighted = [loss.weight.to(term.dtype) * term for term in loss.terms]
        return torch.stack([loss.total, *weighted, loss.length], dim=1).float()

    def _in_chosen_precision(self, denoiser: Denoiser) -> MarkedDenoise:
        """The network alone may run in sixteen bits; the loss never does."""
        kind = self.device.type
        # What Accelerate was told, by its launcher or its own configuration.
        enabled, dtype = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
        match self.section.precision:
            case "float32":
                enabled = False
            case "bfloat16":
                enabled, dtype = True, torch.bfloat16
            case "auto" if not enabled:
                enabled, dtype = has_bfloat16(self.device), torch.bfloat16

        def network(
            x_t: Batch,
            t: Tensor,
            frozen: Tensor | None = None,
            *,
            open_slots: Tensor | None = None,
            start: bool = False,
        ) -> DenoiserOutput:
            with torch.autocast(kind, dtype=dtype, enabled=enabled):
                return denoiser(x_t, t, frozen, open_slots=open_slots, start=start)

        return network
