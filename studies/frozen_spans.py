"""What training with frozen spans is worth, on arithmetic sequences, where errors can be counted.

Two models of the same size, process and number of steps (T = 10, numbers below 16, steps of ±1):
one trained as ever, one with `training.frozen = "spans"` in half of the examples. Both fill gaps of
2 to 4 numbers, cut out of sequences of the test part, from one particle: told the length, and
not. Printed are the bounds, the share of gaps that have the right length, of wrong numbers, and of
sequences without any, with the standard error of the latter.

    python studies/frozen_spans.py --steps 800 --gaps 100 --folder runs/frozen-spans
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import indel
from indel.batch import Batch
from indel.data import ArithmeticData
from indel.training import load_config, train


def trained(kind: str, steps: int, folder: Path) -> indel.Denoiser:
    """A model trained with this frozen; a run that was stopped is finished."""
    path = folder / kind
    overrides = {
        "training.frozen": kind,
        "training.steps": steps,
        "training.tensorboard": False,
        "validation.every": steps,
    }
    config = load_config("arithmetic", "tiny", overrides=overrides)
    train(config, path, resume=path.is_dir())
    return indel.load(path)


def filled(
    model: indel.Denoiser, row: list[int], number: int, told: bool
) -> tuple[list[int], bool]:
    """The sequence with a gap cut out of it and filled again, and whether its length is right."""
    chance = random.Random(number)
    length = chance.randint(2, 4)
    start = chance.randint(1, len(row) - length - 1)
    gap = indel.Gap(length, length) if told else indel.Gap()
    pattern = indel.Pattern.of([row[:start], gap, row[start + length :]])
    found = indel.infill(model, pattern, seed=number).x.to_lists()[0]
    return found, len(found) == len(row)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--gaps", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=Path("runs/frozen-spans"))
    arguments = parser.parse_args()
    data = ArithmeticData(seed=0, numbers=16, max_step=1, min_length=6, max_length=10)
    rows = data.examples(0, arguments.gaps, "test").to_lists()
    for kind in ("nothing", "spans"):
        model = trained(kind, arguments.steps, arguments.folder)
        whole = indel.evaluate(model, data, split="test", examples=512, progress=False)
        print(f"frozen = {kind}: bound {whole.nats_per_sequence} nats per sequence")
        if kind != "nothing":
            given = indel.evaluate(
                model, data, split="test", examples=512, frozen="spans", progress=False
            )
            print(f"  given the frozen spans: {given.nats_per_sequence} nats per sequence")
        for told in (True, False):
            found, right = zip(
                *(filled(model, row, n, told) for n, row in enumerate(rows)), strict=True
            )
            x = Batch.from_lists(found)
            valid = data.is_valid(x).double()
            spread = float(valid.std()) / len(valid) ** 0.5
            print(
                f"  {'told the length' if told else 'any length':16} length "
                f"{sum(right) / len(rows):.3f}  errors {float(data.error_rates(x).mean()):.3f}  "
                f"valid {float(valid.mean()):.3f} ± {spread:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
