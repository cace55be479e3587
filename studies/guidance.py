"""How much more samples follow a label with guidance: two toy languages and one tiny model.

Words of x have up to 3 letters, each an a with probability 0.7; words of y have up to 6, each a b
with probability 0.7. A tiny model is trained on pairs of label and word, a fifth of the labels
dropped. Printed are, for each label and guidance, the share of letters that the label likes and the
mean length of 400 words. It takes half a minute.

    python studies/guidance.py
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import torch

import indel
from indel import CharacterVocabulary, Denoiser, Schedule

LETTERS = CharacterVocabulary("abxy\t")
LIKED, LONGEST = {"x": "a", "y": "b"}, {"x": 3, "y": 6}
STRENGTHS = (0.0, 1.0, 2.0, 3.0)


def pairs(count: int) -> list[str]:
    """Labels and words."""
    chance, found = random.Random(0), []
    for _ in range(count):
        label = chance.choice("xy")
        length = chance.randint(1, LONGEST[label])
        other = "b" if LIKED[label] == "a" else "a"
        word = "".join(LIKED[label] if chance.random() < 0.7 else other for _ in range(length))
        found.append(f"{label}\t{word}")
    return found


def trained(folder: Path) -> Denoiser:
    """A model that has learned to follow labels, and to do without."""
    denoiser = Denoiser.from_preset(
        "tiny",
        LETTERS,
        Schedule.paper(LETTERS.size, 4, 0.6),
        max_length=24,
        frozen="source",
        drops_source=True,
        generator=torch.Generator().manual_seed(0),
    )
    settings = {
        "training.frozen": "source",
        "training.frozen_share": 0.9,
        "training.drop_source": 0.2,
        "training.tensorboard": False,
        "validation.every": 250,
        "validation.examples": 8,
        "validation.samples": 0,
    }
    indel.train(denoiser, pairs(2000), folder, steps=250, batch_size=64, settings=settings)
    return denoiser.eval()


def written(model: Denoiser, label: str, guidance: float, n: int = 400) -> tuple[float, float]:
    """The share of letters that the label likes, and the mean length."""
    gaps = indel.infill(model, f"{label}\t{{}}", n, guidance=guidance, batch_size=n).gaps
    letters = "".join(gap for (gap,) in gaps)
    return letters.count(LIKED[label]) / max(len(letters), 1), len(letters) / n


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        model = trained(Path(folder) / "run")
    print("| guidance | a in words of x | length | b in words of y | length |")
    print("|---|---|---|---|---|")
    for guidance in STRENGTHS:
        (a, short), (b, long) = (written(model, label, guidance) for label in "xy")
        print(f"| {guidance:g} | {a:.3f} | {short:.2f} | {b:.3f} | {long:.2f} |")


if __name__ == "__main__":
    main()
