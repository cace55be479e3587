"""Draws and where their letters come from."""

import pytest
import torch

from indel import CharacterVocabulary
from indel.batch import Batch
from indel.model import Denoiser
from indel.process import Schedule
from indel.randomness import RowSeeds
from indel.sampling.generation import denoise_from
from indel.text_repair.draws import draw_origins
from indel.text_repair.paper_way import padded, paper_draws, paper_trajectories
from support.denoisers import letter_denoiser, tiny_denoiser

LETTERS = CharacterVocabulary("abc ")


@pytest.fixture(scope="module")
def denoiser() -> Denoiser:
    """Untrained, so that it changes everything."""
    return tiny_denoiser(Schedule.paper(4, 6, 0.6), LETTERS, seed=1, max_length=40)


def test_origins_are_the_identities_of_the_trajectory(denoiser: Denoiser) -> None:
    """Followed step by step for the whole batch, and row by row by `Trajectory`: the same."""
    texts = ["abc cab", "", "a", "ba ba ba ba"] * 5
    x_t = Batch.from_lists([LETTERS.encode(text) for text in texts])
    seeds = torch.arange(len(texts))
    drawn = draw_origins(denoiser, x_t, 4, generator=RowSeeds(seeds))
    samples = denoise_from(denoiser, x_t, 4, generator=RowSeeds(seeds), keep_trajectories=True)
    assert drawn.x_0.equals(samples.x)
    assert samples.trajectories is not None
    lost = 0
    for row, trajectory in enumerate(samples.trajectories):
        # At the start token i has the identity i; larger numbers came later.
        first = len(trajectory.states[0])
        expected = [name if name < first else -1 for name in trajectory.identities[-1]]
        assert drawn.origins[row, : len(expected)].tolist() == expected
        lost += sum(name == -1 for name in expected)
    assert lost


def test_padding_of_the_paper() -> None:
    text = padded("thisn sentsnetne wasstype vssry babdly")
    assert len(text) == 119
    assert text.startswith(
        "thisn sentsnetne wasstype vssry babdly lorem ipsum dolor sit amet lorem"
    )
    assert padded("a" * 119) == "a" * 119
    with pytest.raises(ValueError, match="at most 119 letters at a time, got 120"):
        padded("a" * 120)


def test_placeholder_is_trimmed_by_identity() -> None:
    """Whatever the letters have become: the end is where the first placeholder token stands."""
    denoiser = letter_denoiser(seed=2)
    vocabulary = denoiser.vocabulary
    sentence = "badly typd"
    draws = paper_draws(denoiser, sentence, strength=6, draws=3, seed=5)
    again = paper_trajectories(denoiser, sentence, strength=6, draws=3, seed=5)
    for text, trajectory in zip(draws, again, strict=True):
        whole = str(vocabulary.decode(trajectory.states[-1]))
        names = trajectory.identities[-1]
        assert whole.startswith(text)
        # Nothing of the placeholder is left, and what follows is of the placeholder.
        assert all(not 10 <= name < 119 for name in names[: len(text)])
        assert 10 <= names[len(text)] < 119
    assert len(set(draws)) > 1
    assert draws != paper_draws(denoiser, sentence, strength=6, draws=3, seed=6)
