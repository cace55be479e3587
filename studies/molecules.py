"""What a model of molecules can do, measured: mending broken strings, and steering by QED.

Test molecules of MOSES's sample get a few random edits (a token inserted, deleted or replaced),
drawn again until RDKit does not read the string any more. Printed is the share that is a molecule
after mending, and the share that is the original one. Then molecules are made up without a reward
and with one, and their QED is shown as two histograms.

    python studies/molecules.py runs/moses --strings 200 --edits 1 --molecules 64 --particles 8
"""

from __future__ import annotations

import argparse
import random

import indel
from indel.data import MosesSample
from indel.molecules import qed, valid
from indel.molecules.chemistry import canonical, molecule, parsed
from indel.molecules.mending import mend

BINS = 10


def broken(tokens: list[int], edits: int, size: int, chance: random.Random) -> list[int]:
    """The tokens after so many random edits."""
    found = list(tokens)
    for _ in range(edits):
        place, kind = chance.randrange(len(found)), chance.choice(["ins", "del", "rep"])
        if kind != "ins" and len(found) > 1:
            del found[place]
        if kind != "del":
            found.insert(place, chance.randrange(size))
    return found


def broken_strings(
    vocabulary: indel.Vocabulary, count: int, edits: int, seed: int = 0
) -> list[tuple[str, str]]:
    """(what RDKit does not read, the molecule that it was)."""
    chance = random.Random(seed)
    pairs = []
    for smiles in MosesSample().texts("test", count):
        text = smiles
        while parsed(text) is not None:
            tokens = broken(vocabulary.encode(smiles), edits, vocabulary.size, chance)
            text = vocabulary.text(tokens)
        pairs.append((text, smiles))
    return pairs


def mending(model: indel.Denoiser, count: int, edits: int, draws: int) -> tuple[float, float]:
    """The share of broken strings that become molecules, and that become the original."""
    pairs = broken_strings(model.vocabulary, count, edits)
    found = [mend(model, text, draws=draws, seed=n).smiles for n, (text, _) in enumerate(pairs)]
    right = [
        smiles is not None and canonical(molecule(smiles)) == canonical(molecule(original))
        for smiles, (_, original) in zip(found, pairs, strict=True)
    ]
    return sum(smiles is not None for smiles in found) / count, sum(right) / count


def histogram(values: list[float]) -> str:
    """A line for each tenth from 0 to 1, and a sign for each value."""
    counts = [0] * BINS
    for value in values:
        counts[min(int(value * BINS), BINS - 1)] += 1
    return "\n".join(f"{n / BINS:.1f} {'#' * count}" for n, count in enumerate(counts))


def main() -> None:
    """Print both."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model")
    options.add_argument("--strings", type=int, default=200)
    options.add_argument("--edits", type=int, default=1)
    options.add_argument("--draws", type=int, default=32)
    options.add_argument("--molecules", type=int, default=64)
    options.add_argument("--particles", type=int, default=8)
    options.add_argument("--strength", type=float, default=10.0)
    given = options.parse_args()
    model = indel.load(given.model)
    if given.strings:
        whole, same = mending(model, given.strings, given.edits, given.draws)
        print(
            f"{given.strings} broken strings, edits {given.edits}: {whole:.3f} become molecules, "
        )
        print(f"{same:.3f} the original ones")
    if given.molecules:
        before = indel.generate(model, given.molecules).texts
        after = indel.steer(
            model, qed, given.molecules, particles=given.particles, strength=given.strength
        ).texts
        for name, texts in (("without a reward", before), ("with QED", after)):
            share = sum(valid(texts)) / len(texts)
            mean = sum(qed(texts)) / len(texts)
            print(f"{name}: valid {share:.3f}, mean QED {mean:.3f} (0 for what is not valid)")
            print(histogram(qed(texts)))


if __name__ == "__main__":
    main()
