"""Diffusion in place, with insertion and deletion, with masks: our denoiser with any schedule."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from indel import checks
from indel.batch import Batch
from indel.bound.likelihood import chain_bound
from indel.bound.objective import Objective
from indel.comparison.interface import Drawn, LikelihoodKind
from indel.comparison.schedules import forward_process
from indel.data import BatchStream
from indel.model import Denoiser, DenoiserConfig, DenoiserOutput
from indel.model.backbones import BackboneConfig
from indel.sampling.generation import SamplingOptions, denoise_from, generate
from indel.sampling.particles import sample_held
from indel.sampling.patterns import Gap, Pattern
from indel.sampling.truncation import Sharpening
from indel.training.counting import fit_counts
from indel.training.lengths import fit_lengths
from indel.vocabularies import IntegerVocabulary

CONTEXTS = 12_000
"""The most contexts of counts, as in the presets."""
PARTICLES = 8
"""Drawn side by side for each sequence that is filled in."""
EXPECTED_ERRORS = 0.1
"""Repair starts at the time at which q has changed about this share of the tokens."""
_BOLDER = SamplingOptions(tokens=Sharpening(0.5), deletions=Sharpening(0.5))


class MaskedDenoiser(Denoiser):
    """A denoiser that knows that no token of x_0 is MASK, the last of its regular tokens."""

    def forward(
        self,
        x_t: Batch,
        t: Int[Tensor, " batch"] | int,
        frozen: Bool[Tensor, "batch length"] | None = None,
        *,
        open_slots: Bool[Tensor, "batch slots"] | None = None,
        start: bool = False,
    ) -> DenoiserOutput:
        """As `Denoiser.forward`, with p̃(x̃_0 = MASK) = 0."""
        output = super().forward(x_t, t, frozen, open_slots=open_slots, start=start)
        values = torch.arange(output.logits_token.shape[-1], device=output.logits_token.device)
        is_mask = values == self.vocabulary.size - 1
        return output._replace(logits_token=output.logits_token.masked_fill(is_mask, -torch.inf))


class Diffusion(nn.Module):
    """A denoiser as a `Method`: its bound is both what is trained and what is reported."""

    likelihood_kind: LikelihoodKind = "bound"

    def __init__(self, name: str, denoiser: Denoiser) -> None:
        super().__init__()
        self.name = name
        self.denoiser = denoiser
        schedule = denoiser.schedule
        before_last = [schedule.step(t) for t in range(1, schedule.num_steps)]
        self.changes_length = any(step.insert or step.delete for step in before_last)
        """Whether anything but the last step inserts or deletes."""

    def prepare(self, data: BatchStream, *, seed: int) -> None:
        """Fit p_θ(|x_T|), which for an in-place process is the law of the data's lengths.

        Counts are taken of the data too, where the network starts from them.
        """
        fit_counts(self.denoiser, data)
        fit_lengths(self.denoiser, data, seed=seed)

    def loss(self, x_0: Batch, *, generator: torch.Generator) -> Float[Tensor, " batch"]:
        """The bound of each sequence, at one random t."""
        denoiser = self.denoiser
        weights = denoiser.edit_weights(denoiser.schedule.tables(x_0.device).jump)
        objective = Objective(denoiser.schedule, weights=weights)
        return objective(denoiser, denoiser.length, x_0, generator=generator).total

    @torch.no_grad()
    def negative_log_likelihood(
        self, x_0: Batch, *, generator: torch.Generator
    ) -> Float[Tensor, " batch"]:
        """One sample of the bound, from a chain with every t."""
        return chain_bound(self.denoiser, x_0, generator=generator).nats

    def generate(self, count: int, *, generator: torch.Generator) -> Drawn:
        """Sample x_T … x_0."""
        samples = generate(self.denoiser, count, generator=generator)
        return Drawn(samples.x.to_lists(), samples.network_calls)

    def infill(
        self,
        left: list[list[int]],
        right: list[list[int]],
        lengths: list[int] | None,
        *,
        generator: torch.Generator,
    ) -> Drawn | None:
        """Sample with frozen tokens, by particles; in place, only where the length is given."""
        if lengths is None and not self.changes_length:
            return None
        gaps = [Gap()] * len(left) if lengths is None else [Gap(n, n) for n in lengths]
        found, calls = [], 0
        for before, gap, after in zip(left, gaps, right, strict=True):
            pattern = Pattern.of([before, gap, after])
            drawn = sample_held(self.denoiser, pattern, 1, generator=generator, particles=PARTICLES)
            found += drawn.x.to_lists()
            calls = drawn.network_calls
        return Drawn(found, calls)

    def repair(self, noisy: Batch, *, generator: torch.Generator) -> Drawn | None:
        """Take the corrupted sequence for x_t and draw x_0 at temperature 0.5.

        Masked diffusion in place takes every token that it sees for a true one: it cannot.
        """
        if isinstance(self.denoiser, MaskedDenoiser) and not self.changes_length:
            return None
        changed = [1.0 - level.unchanged for level in self.denoiser.schedule.describe()[:-1]]
        t = 1 + min(range(len(changed)), key=lambda i: abs(changed[i] - EXPECTED_ERRORS))
        samples = denoise_from(self.denoiser, noisy, t, generator=generator, options=_BOLDER)
        return Drawn(samples.x.to_lists(), samples.network_calls)


def build(
    vocabulary_size: int, backbone: BackboneConfig, max_length: int, options: dict[str, Any]
) -> Diffusion:
    """The method of a forward process.

    Options: `process` (see `schedules.FORWARD`), `num_steps` (T), `rate` for the processes that
    have one, which then ends their name, and whether the network starts from `counts`. x_t has room
    for twice the longest x_0.
    """
    values = checks.fields(
        "the options of a diffusion",
        options,
        ["process", "num_steps"],
        defaults={"rate": 0.0, "counts": False},
    )
    name = f"{values['process']}-{values['rate']:g}" if values["rate"] else values["process"]
    forward = forward_process(
        values["process"], vocabulary_size, num_steps=values["num_steps"], rate=values["rate"]
    )
    config = DenoiserConfig(
        backbone,
        IntegerVocabulary(forward.schedule.vocab_size),
        forward.schedule,
        max_length=2 * max_length,
        max_deletions=max_length,
        limit_length=False,
        contexts=CONTEXTS if values["counts"] else 0,
    )
    kind = Denoiser if forward.mask is None else MaskedDenoiser
    return Diffusion(f"{name}-counts" if values["counts"] else name, kind(config))
