"""Whether a model takes the frozen tokens of a pattern as given, and where its gaps then start."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from indel.batch import Batch
from indel.model.denoiser import Denoiser
from indel.model.gap_network import GapNetwork
from indel.process.freezing import Freezing
from indel.process.gaps import Gaps
from indel.sampling.patterns import Pattern


def takes_as_given(denoiser: Denoiser, pattern: Pattern) -> bool:
    """Whether the model has learned to be told such frozen tokens.

    One that was trained with spans takes any; one that was trained with sources takes a source, up
    to its separator, with one gap behind it. With others each step is conditioned.
    """
    if denoiser.config.frozen == "nothing" or not pattern.tokens:
        return False
    if denoiser.config.frozen == "spans":
        return True
    separator = Freezing.of("source", denoiser.vocabulary).separator
    ends = [place for place, token in enumerate(pattern.tokens) if token == separator]
    only_last = all(gap is None for gap in pattern.gaps[:-1]) and pattern.gaps[-1] is not None
    return only_last and ends == [len(pattern.tokens) - 1]


def counts_take_as_given(denoiser: Denoiser, pattern: Pattern) -> bool:
    """Whether a model that has not learned it has counts that can be told of frozen tokens.

    The posterior of the edits by the counts is then that given that the frozen tokens saw no noise
    (`model.edit_posterior`); so they say what goes between them, which is a look-ahead. What the
    network adds is what it has learned for sequences that are noisy everywhere.
    """
    return denoiser.prior is not None and bool(pattern.tokens)


def start_laws(denoiser: Denoiser, pattern: Pattern, most: int) -> Float[Tensor, "places {most}+1"]:
    """p_θ(n DELs of x_T lie in the gap | frozen), n = 0…most, a row for each place of the pattern.

    Places where no gap is have no DELs.
    """
    is_open = torch.tensor([[gap is not None for gap in pattern.gaps]], device=denoiser.device)
    gaps = Gaps(Batch.from_lists([pattern.tokens], device=denoiser.device), is_open)
    network = GapNetwork(denoiser, gaps)
    logp = network.log_start(denoiser.length, denoiser.schedule.num_steps, most)
    prob = torch.zeros(len(pattern.gaps), most + 1, dtype=logp.dtype, device=logp.device)
    prob[:, 0] = 1.0
    return prob.index_put((gaps.place,), logp.exp())
