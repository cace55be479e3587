"""Gaps of different sequences filled side by side, each row with frozen tokens of its own.

`sampling.particles` fills the gaps of one pattern, with particles and lengths that were asked for.
Here each gap is a row (`process.gaps`), and a step back is p_θ(gap of x_{t−1} | x_t, frozen).
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from indel.batch import Batch
from indel.model.edit_weights import EditWeights
from indel.model.gap_network import GapNetwork, MarkedDenoise
from indel.model.reverse import ReverseStep
from indel.process import Schedule
from indel.process.gaps import Gaps
from indel.randomness import Randomness, split


@torch.inference_mode()
def fill_gaps(
    denoise: MarkedDenoise,
    schedule: Schedule,
    weights: EditWeights,
    gaps: Gaps,
    counts: Int[Tensor, " gaps"],
    *,
    generator: Randomness,
) -> Batch:
    """The contents of the gaps, from so many DELs of x_T in each.

    With `RowSeeds`, one for each sequence, what is drawn for one does not depend on the others.
    There is no limit on the length.

    >>> from indel import CharacterVocabulary, Denoiser
    >>> acgt, schedule = CharacterVocabulary("ACGT"), Schedule.paper(4, 10, 0.0)
    >>> denoiser = Denoiser.from_preset("tiny", acgt, schedule, frozen="spans").eval()
    >>> weights = denoiser.edit_weights(schedule.tables(denoiser.device).jump)
    >>> x = Batch.from_lists([acgt.encode("GATTACA"), acgt.encode("CAT")])
    >>> frozen = torch.tensor([[True] * 3 + [False] * 2 + [True] * 2, [True] * 2 + [False] * 5])
    >>> gaps, contents = Gaps.split(x, frozen)
    >>> noise = torch.Generator().manual_seed(0)
    >>> found = fill_gaps(denoiser, schedule, weights, gaps, contents.lengths, generator=noise)
    >>> found.lengths.tolist()
    [2, 1]
    """
    network, noise = GapNetwork(denoise, gaps), gaps.noise(generator)
    width = int(counts.max()) if len(counts) else 0
    # In x_T there is nothing but DELs.
    contents = Batch(torch.full((len(counts), width), schedule.del_, device=counts.device), counts)
    for t in range(schedule.num_steps, 0, -1):
        seen = contents.without(schedule.ins)
        times = torch.full_like(seen.lengths, t)
        step = ReverseStep.of(schedule, network(seen, times), seen, times, weights=weights)
        contents = step.sample(generator=split(noise))
    with torch.inference_mode(False):
        return Batch(contents.tokens.clone(), contents.lengths.clone())
