"""A tiny model trained with labels follows them the more the more it is guided, in length too."""

from __future__ import annotations

import random

import pytest
import torch

import indel
from indel import CharacterVocabulary, Denoiser, Schedule

LETTERS = CharacterVocabulary("abxy\t")
LIKED, LONGEST = {"x": "a", "y": "b"}, {"x": 3, "y": 6}


def pairs(count: int) -> list[str]:
    """Words of x are short and have more a than b, words of y are long and have more b."""
    chance, found = random.Random(0), []
    for _ in range(count):
        label = chance.choice("xy")
        length = chance.randint(1, LONGEST[label])
        other = "b" if LIKED[label] == "a" else "a"
        word = "".join(LIKED[label] if chance.random() < 0.7 else other for _ in range(length))
        found.append(f"{label}\t{word}")
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Denoiser:
    generator = torch.Generator().manual_seed(0)
    denoiser = Denoiser.from_preset(
        "tiny",
        LETTERS,
        Schedule.paper(LETTERS.size, 6, 0.6),
        max_length=24,
        contexts=40,
        frozen="source",
        drops_source=True,
        generator=generator,
    )
    settings = {
        "training.frozen": "source",
        "training.frozen_share": 0.9,
        "training.drop_source": 0.2,
        "training.tensorboard": False,
        "validation.every": 300,
        "validation.examples": 8,
        "validation.samples": 0,
    }
    folder = tmp_path_factory.mktemp("labels") / "run"
    indel.train(denoiser, pairs(2000), folder, steps=300, settings=settings)
    return denoiser.eval()


def written(model: Denoiser, label: str, guidance: float, n: int = 400) -> tuple[float, float]:
    """The share of letters that the label likes, and the mean length."""
    gaps = indel.infill(model, f"{label}\t{{}}", n, guidance=guidance, batch_size=n).gaps
    letters = "".join(gap for (gap,) in gaps)
    return letters.count(LIKED[label]) / max(len(letters), 1), len(letters) / n


@pytest.mark.slow
def test_samples_follow_the_label_more_with_guidance(model: Denoiser) -> None:
    """0: not at all, 1: as the data does, 3: more. A share is known to within about 0.02."""
    for label in "xy":
        none, own, more = (written(model, label, guidance) for guidance in (0.0, 1.0, 3.0))
        assert own[0] > none[0] + 0.06
        assert more[0] > own[0] + 0.06
    short, long = (written(model, label, 1.0)[1] for label in "xy")
    shorter, longer = (written(model, label, 3.0)[1] for label in "xy")
    assert long > short + 0.8
    # Words of x become shorter, those of y longer: the second head and the start are guided too.
    assert longer - shorter > long - short + 0.4
