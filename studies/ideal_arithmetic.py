"""What arithmetic sequences cost with the best denoiser there is, in place and not.

python studies/ideal_arithmetic.py    prints bounds and error rates of small tasks, by rate and T
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ideal_denoiser import Data, IdealDenoiser
from indel.bound.likelihood import chain_bound
from indel.data import ArithmeticData
from indel.model import Denoiser
from indel.process import Schedule
from indel.randomness import RowSeeds
from indel.sampling.generation import generate

ROWS = 8  # at a time: each is compared with every sequence of the data


def by_length(data: ArithmeticData) -> dict[int, tuple[Tensor, Tensor]]:
    """All sequences of each length, and their probabilities: step, direction, length, start."""
    parts: dict[int, list[tuple[Tensor, Tensor]]] = {}
    span = data.highest - data.lowest
    for step in range(1, data.max_step + 1):
        longest = min(data.max_length, 1 + (span - 1) // step)
        for length in range(data.min_length, longest + 1):
            places = step * torch.arange(length)
            up = torch.arange(data.lowest, data.highest - int(places[-1]) + 1)[:, None] + places
            share = 1 / (2 * data.max_step * (longest - data.min_length + 1) * len(up))
            prob = torch.full((2 * len(up),), share, dtype=torch.float64)
            parts.setdefault(length, []).append((torch.cat([up, up.flip(1)]), prob))
    return {
        length: (torch.cat([rows for rows, _ in part]), torch.cat([prob for _, prob in part]))
        for length, part in parts.items()
    }


def law(data: ArithmeticData) -> Data:
    """All sequences and their probabilities."""
    return {
        tuple(row): each
        for rows, prob in by_length(data).values()
        for row, each in zip(rows.tolist(), prob.tolist(), strict=True)
    }


@dataclass(frozen=True)
class Measured:
    """Of each sequence its bound and the terms of it, of each sample its error rate."""

    nats: Tensor
    by_time: Tensor
    errors: Tensor


def measured(denoiser: Denoiser, data: ArithmeticData, *, count: int, at_once: int) -> Measured:
    """The bound on validation data and the error rate of samples."""
    nats, by_time, errors = [], [], []
    with torch.no_grad():
        for start in range(0, count, at_once):
            noise = RowSeeds(torch.arange(start, start + at_once))
            x_0 = data.examples(start, at_once, "valid").trimmed()
            bounds = chain_bound(denoiser, x_0, generator=noise, max_length=None)
            nats.append(bounds.nats)
            by_time.append(bounds.by_time)
            errors.append(data.error_rates(generate(denoiser, at_once, generator=noise).x))
    return Measured(*(torch.cat(each).double() for each in (nats, by_time, errors)))


def measure(data: ArithmeticData, *, rate: float, num_steps: int, count: int) -> Measured:
    """The same with Bayes' rule as network."""
    schedule = Schedule.paper(data.vocabulary.size, num_steps, rate)
    denoiser = IdealDenoiser(schedule, law(data), max_length=4 * data.max_length).eval()
    return measured(denoiser, data, count=count, at_once=ROWS)


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
