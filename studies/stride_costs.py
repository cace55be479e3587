"""What strides cost: how far samples of an ideal denoiser are from the data.

python studies/stride_costs.py    prints the table of `indel.sampling.strides`
"""

from __future__ import annotations

from collections import Counter

import torch

from ideal_denoiser import Data, IdealDenoiser
from indel.process import Schedule
from indel.sampling.generation import SamplingOptions, generate
from indel.sampling.strides import evenly_spaced

ONE_A_LENGTH: Data = {
    (0, 0, 1, 1): 0.3,
    (1, 0, 1): 0.25,
    (0, 1, 0, 1, 1): 0.2,
    (1, 1): 0.15,
    (): 0.1,
}
CORRELATED: Data = {
    (0, 0, 0, 0): 0.2,
    (1, 1, 1, 1): 0.2,
    (0, 1, 0, 1): 0.15,
    (1, 0, 1, 0): 0.15,
    (0, 0, 1): 0.15,
    (1,): 0.15,
}


def stride_cost(data: Data, *, rate: float, num_steps: int, calls: int, rows: int) -> float:
    """½ Σ_x |share of x among the samples − probability of x|."""
    denoiser = IdealDenoiser(Schedule.paper(2, num_steps, rate), data, max_length=24)
    options = SamplingOptions(times=evenly_spaced(num_steps, calls), approximate_strides=True)
    noise = torch.Generator().manual_seed(1)
    samples = generate(denoiser, rows, generator=noise, options=options)
    counts = Counter(map(tuple, samples.x.to_lists()))
    return 0.5 * sum(
        abs(counts[tokens] / rows - data.get(tokens, 0.0)) for tokens in {*counts, *data}
    )


def main() -> None:
    calls = (12, 6, 4, 3)
    print(f"{'data':<14}{'rate':>6}", *(f"{number:>3} calls" for number in calls))
    for name, data in (("one a length", ONE_A_LENGTH), ("correlated", CORRELATED)):
        for rate in (0.0, 0.4, 0.8):
            costs = [
                stride_cost(data, rate=rate, num_steps=12, calls=number, rows=20_000)
                for number in calls
            ]
            print(f"{name:<14}{rate:>6}", *(f"{cost:>9.3f}" for cost in costs), flush=True)


if __name__ == "__main__":
    main()
