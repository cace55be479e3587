"""The table p_θ(|x_T|) is fitted, not trained: the best one is known before the first step."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from indel.batch import Batch
from indel.data import BatchStream
from indel.model import Denoiser
from indel.process import Schedule, corrupt_chain
from indel.process.length_distribution import length_distribution
from indel.randomness import RowSeeds, seeds_for

# The table then costs about max_length / (2 · 4096) nats more than the best one: 0.02.
EXAMPLES = 4096
_AT_ONCE = 512


def fit_lengths(denoiser: Denoiser, data: BatchStream, *, seed: int) -> None:
    """Set p_θ(|x_T|) to how often each length comes out for training data, and freeze it.

    Where the denoiser has no limit the law of |x_T| given |x_0| is exact; with one it is that of
    sampled chains which keep it. Each number of steps has a table of its own.

    Paper: App. C.1 ("which we fit to the distribution of observed lengths")
    """
    x_0 = data.examples(0, EXAMPLES, "train")
    if denoiser.prior is not None:
        denoiser.prior.fit_lengths(x_0.lengths.to(denoiser.device))
    for num_steps in denoiser.step_choices:
        _fit(denoiser.with_steps(num_steps), x_0, seed)


def _fit(denoiser: Denoiser, x_0: Batch, seed: int) -> None:
    if denoiser.length_limit is None:
        law = length_distribution(denoiser.schedule, x_0.lengths, denoiser.schedule.num_steps)
        counts = law.sum(dim=0)
    else:
        counts = _restricted_counts(denoiser.schedule, x_0, denoiser.length_limit, seed)
    denoiser.length.fit(counts.to(denoiser.device))
    denoiser.length.requires_grad_(False)


def _restricted_counts(
    schedule: Schedule, x_0: Batch, max_length: int, seed: int
) -> Float[Tensor, " lengths"]:
    counts = torch.zeros(max_length + 1, dtype=torch.float64)
    for start in range(0, len(x_0), _AT_ONCE):
        rows = torch.arange(start, min(start + _AT_ONCE, len(x_0)))
        noise = RowSeeds(seeds_for(seed, "length table", start, len(rows)))
        chain = corrupt_chain(schedule, x_0.rows(rows), generator=noise, max_length=max_length)
        counts += torch.bincount(chain[-1].lengths, minlength=max_length + 1)
    return counts
