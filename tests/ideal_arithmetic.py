"""What arithmetic sequences cost with the best denoiser there is, in place and not.

python tests/ideal_arithmetic.py    prints bounds and error rates of small tasks, by rate and T
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ideal_denoiser import Data, IdealDenoiser
from indel.data import ArithmeticData
from indel.likelihood import chain_bound
from indel.process import Schedule
from indel.randomness import RowSeeds
from indel.sampling import generate

ROWS = 8  # at a time: each is compared with every sequence of the data


def law(data: ArithmeticData) -> Data:
    """All sequences of steps ±1 and their probabilities."""
    if data.max_step != 1:
        raise ValueError(f"only steps of one are listed here, got max_step = {data.max_step}")
    lengths = range(data.min_length, data.max_length + 1)
    found = {}
    for length in lengths:
        starts = range(data.lowest, data.highest - length + 2)
        for start in starts:
            up = tuple(range(start, start + length))
            for sequence in (up, up[::-1]):
                found[sequence] = 0.5 / len(starts) / len(lengths)
    return found


@dataclass(frozen=True)
class IdealResult:
    """Of each sequence its bound, of each sample its error rate."""

    nats: Tensor
    errors: Tensor


def measure(data: ArithmeticData, *, rate: float, num_steps: int, count: int) -> IdealResult:
    """The bound on validation data and the error rate of samples, with Bayes' rule as network."""
    schedule = Schedule.paper(data.vocabulary.size, num_steps, rate)
    denoiser = IdealDenoiser(schedule, law(data), max_length=4 * data.max_length).eval()
    nats, errors = [], []
    with torch.no_grad():
        for start in range(0, count, ROWS):
            noise = RowSeeds(torch.arange(start, start + ROWS))
            x_0 = data.examples(start, ROWS, "valid").trimmed()
            nats.append(chain_bound(denoiser, x_0, generator=noise, max_length=None).nats)
            errors.append(data.error_rates(generate(denoiser, ROWS, generator=noise).x))
    return IdealResult(torch.cat(nats).double(), torch.cat(errors).double())


def mean_and_error(values: Tensor) -> tuple[float, float]:
    return float(values.mean()), float(values.std() / len(values) ** 0.5)


def main() -> None:
    tasks: list[tuple[dict[str, Any], int]] = [
        ({"numbers": 64, "min_length": 10, "max_length": 12}, 3),
        ({"numbers": 32, "min_length": 6, "max_length": 10}, 3),
        ({"numbers": 32, "min_length": 6, "max_length": 10}, 4),
        ({"numbers": 32, "min_length": 6, "max_length": 10}, 10),
    ]
    print("numbers  lengths   T  rate     bound (nats)  over in place   error rate (%)")
    for options, num_steps in tasks:
        data = ArithmeticData(max_step=1, **options)
        in_place = None
        for rate in (0.0, 0.6):
            result = measure(data, rate=rate, num_steps=num_steps, count=64)
            in_place = in_place or result
            bound, error = mean_and_error(result.nats)
            # The same sequences: a difference of pairs is known better than the bounds are.
            more, more_error = mean_and_error(result.nats - in_place.nats)
            wrong, wrong_error = mean_and_error(100 * result.errors)
            print(
                f"{data.vocabulary.size:7}  {data.min_length:2}–{data.max_length:2}  {num_steps:6}"
                f"  {rate:4}  {bound:7.2f} ± {error:.2f}  {more:+6.2f} ± {more_error:.2f}"
                f"  {wrong:7.1f} ± {wrong_error:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
