"""Repair as the paper shows it: a padded sentence is taken as x_10 and x_0 is drawn."""

from __future__ import annotations

from itertools import cycle, islice

from indel.batch import Batch
from indel.model import Denoiser
from indel.randomness import RowSeeds, seeds_for
from indel.sampling.generation import denoise_from
from indel.sampling.trajectories import Trajectory

PLACEHOLDER = " lorem ipsum dolor sit amet"
LENGTH = 119
"""Of the padded sentence: about that of the training examples."""


def padded(sentence: str, length: int = LENGTH) -> str:
    """The sentence, then placeholder text up to a length.

    Paper: App. C.3

    >>> padded("helo", 20)
    'helo lorem ipsum dol'
    """
    if len(sentence) > length:
        raise ValueError(
            f"the paper's way takes at most {length} letters at a time, got {len(sentence)}"
        )
    return sentence + "".join(islice(cycle(PLACEHOLDER), length - len(sentence)))


def paper_trajectories(
    denoiser: Denoiser, sentence: str, *, strength: int = 10, draws: int = 5, seed: int = 0
) -> tuple[Trajectory, ...]:
    """Draws of x_{t−1}, …, x_0 for the padded sentence as x_t; strength is t.

    Paper: Sec. 5 and App. C.3
    """
    tokens = denoiser.vocabulary.encode(padded(sentence))
    device = denoiser.length.logits.device
    samples = denoise_from(
        denoiser,
        Batch.from_lists([tokens] * draws, device=device),
        strength,
        generator=RowSeeds(seeds_for(seed, "repair, the paper's way", 0, draws).to(device)),
        keep_trajectories=True,
    )
    assert samples.trajectories is not None
    return samples.trajectories


def paper_draws(
    denoiser: Denoiser, sentence: str, *, strength: int = 10, draws: int = 5, seed: int = 0
) -> list[str]:
    """What single draws make of a sentence, without the placeholder; nothing else is edited.

    Paper: Fig. 4
    """
    trajectories = paper_trajectories(denoiser, sentence, strength=strength, draws=draws, seed=seed)
    return [_trimmed(denoiser, trajectory, len(sentence)) for trajectory in trajectories]


def _trimmed(denoiser: Denoiser, trajectory: Trajectory, length: int) -> str:
    """x_0 up to the first token that was part of the placeholder in x_t, whatever it is now."""
    return str(denoiser.vocabulary.decode(trajectory.states[-1][: trajectory.end_of(length)]))
