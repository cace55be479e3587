"""Random denoisers, the smallest of them small enough to enumerate what they say."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from indel import Batch, CharacterVocabulary, IntegerVocabulary, Vocabulary
from indel.model import Denoiser, DenoiserConfig, DenoiserOutput, TransformerConfig
from indel.model.reverse import ReverseStep
from indel.process import Schedule

Tokens = tuple[int, ...]


def tiny_denoiser(
    schedule: Schedule,
    vocabulary: Vocabulary | None = None,
    *,
    seed: int = 0,
    max_length: int = 6,
    max_deletions: int | None = 2,
    width: int = 8,
    num_layers: int = 1,
    **settings: Any,
) -> Denoiser:
    """Random weights and a random table of lengths, in evaluation mode; numbers unless told."""
    generator = torch.Generator().manual_seed(seed)
    vocabulary = vocabulary or IntegerVocabulary(schedule.vocab_size)
    backbone = TransformerConfig(
        width=width, num_layers=num_layers, num_heads=2, head_width=width // 2, feedforward_width=16
    )
    config = DenoiserConfig(backbone, vocabulary, schedule, max_length, max_deletions, **settings)
    denoiser = Denoiser(config, generator=generator)
    with torch.no_grad():
        # From the start the table is uniform, which would hide a shifted index.
        denoiser.length.logits.normal_(generator=generator)
    return denoiser.eval()


def letter_denoiser(steps: int = 32, *, rate: float = 0.6, seed: int = 0) -> Denoiser:
    """Reads and writes text; what it writes is noise."""
    letters = CharacterVocabulary.text8()
    schedule = Schedule.paper(letters.size, steps, rate)
    return tiny_denoiser(schedule, letters, seed=seed, max_length=127, max_deletions=None, width=16)


def sequences(tokens: Sequence[int], longest: int) -> list[Tokens]:
    """Every sequence of these tokens up to a length."""
    lengths = range(longest + 1)
    return [row for n in lengths for row in itertools.product(tokens, repeat=n)]


@torch.no_grad()
def reverse_matrix(denoiser: Denoiser, t: int, x_t: list[Tokens], x_prev: list[Tokens]) -> Tensor:
    """p_θ(x_{t−1} | x_t) for all pairs, in float64."""
    seen = Batch.from_lists(x_t).without(denoiser.schedule.ins)
    times = torch.full((len(x_t),), t)
    # The network is asked once for each x_t, and its answer repeated for each x_{t−1}.
    pairs = torch.arange(len(x_t)).repeat_interleave(len(x_prev))
    output = DenoiserOutput(*(logits[pairs] for logits in denoiser(seen, times)))
    step = ReverseStep.of(denoiser.schedule, output, seen.rows(pairs), times[pairs])
    earlier = Batch.from_lists(x_prev).rows(torch.arange(len(x_prev)).repeat(len(x_t)))
    return step.log_prob(earlier).double().exp().reshape(len(x_t), len(x_prev))
