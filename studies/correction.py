"""What correction and particles are worth, on arithmetic sequences, where errors can be counted.

A model of the small task (T = 10, numbers below 16, steps of ±1) makes 1,000 sequences up, which
then go a quarter of the steps forward with q and back again, 0 to 8 times. And it fills gaps
of 2 to 4 numbers, cut out of 200 sequences of the data, with 1 to 64 particles; it is told their
length. Printed are the share of wrong numbers and of sequences without any, with the standard error
of the latter.

    indel train arithmetic --scale tiny --steps 3000 --out runs/small
    python studies/correction.py runs/small
"""

from __future__ import annotations

import random
import sys

import torch

import indel
from indel.batch import Batch
from indel.data import ArithmeticData

ROUNDS = (0, 1, 2, 4, 8)
PARTICLES = (1, 4, 16, 64)


def quality(data: ArithmeticData, x: Batch) -> str:
    """The mean error rate, and the share of valid sequences with its standard error."""
    valid = data.is_valid(x).double()
    spread = float(valid.std()) / len(valid) ** 0.5
    return f"{float(data.error_rates(x).mean()):8.3f}{float(valid.mean()):8.3f} ± {spread:.3f}"


def filled(model: indel.Denoiser, row: list[int], number: int, particles: int) -> list[int]:
    """The sequence with a gap cut out of it and filled again, of the length that it had."""
    chance = random.Random(number)
    length = chance.randint(2, 4)
    start = chance.randint(1, len(row) - length - 1)
    parts = [row[:start], indel.Gap(length, length), row[start + length :]]
    samples = indel.infill(model, indel.Pattern.of(parts), seed=number, particles=particles)
    return samples.x.to_lists()[0]


def main(name: str) -> None:
    """Print both tables."""
    model = indel.load(name)
    data = ArithmeticData(seed=0, numbers=16, max_step=1, min_length=6, max_length=10)
    print(f"{'corrections':14}{'errors':>8}{'valid':>8}")
    for rounds in ROUNDS:
        samples = indel.generate(model, 1000, correct=rounds, batch_size=1000)
        print(f"{rounds:<14}{quality(data, samples.x)}", flush=True)
    rows = data.examples(0, 200, "test").to_lists()
    print(f"{'particles':14}{'errors':>8}{'valid':>8}")
    for particles in PARTICLES:
        found = [filled(model, row, n, particles) for n, row in enumerate(rows)]
        print(f"{particles:<14}{quality(data, Batch.from_lists(found))}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("name a model of the small task: python studies/correction.py RUN")
    with torch.inference_mode():
        main(sys.argv[1])
