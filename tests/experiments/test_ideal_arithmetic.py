"""Why the tiny task is what it is: what a perfect denoiser makes of it."""

from __future__ import annotations

import pytest

from ideal_arithmetic import law, mean_and_error, measure
from indel.data import ArithmeticData

SMALL = ArithmeticData(numbers=32, max_step=1, min_length=6, max_length=10)


def test_all_sequences_are_listed() -> None:
    sequences = law(SMALL)
    assert sum(sequences.values()) == pytest.approx(1.0)
    drawn = {tuple(row) for row in SMALL.examples(0, 4000).to_lists()}
    assert drawn <= set(sequences)
    assert len(drawn) == len(sequences)


@pytest.mark.slow
@pytest.mark.parametrize(("num_steps", "sign"), [(3, -1.0), (10, 1.0)])
def test_insertion_and_deletion_pay_with_three_steps_and_not_with_ten(
    num_steps: int, sign: float
) -> None:
    in_place, other = (
        measure(SMALL, rate=rate, num_steps=num_steps, count=64).nats for rate in (0.0, 0.6)
    )
    difference, error = mean_and_error(other - in_place)
    assert sign * difference > 2 * error
