"""The fast in-place ideal is the general one, where both can be had."""

from __future__ import annotations

import pytest
import torch

from ideal_arithmetic import law, mean_and_error, measured
from ideal_denoiser import IdealDenoiser
from ideal_in_place import IdealInPlace
from indel import RowSeeds
from indel.data import ArithmeticData
from indel.process import corrupt

SMALL = ArithmeticData(numbers=20, max_step=2, min_length=4, max_length=6)


@pytest.mark.parametrize("t", [1, 3, 4])
def test_it_is_bayes_rule(t: int) -> None:
    fast = IdealInPlace(SMALL, 4)
    slow = IdealDenoiser(fast.schedule, law(SMALL), max_length=6)
    noise = RowSeeds(torch.arange(6))
    x_t = corrupt(fast.schedule, SMALL.examples(0, 6).trimmed(), t, generator=noise).x_t
    ours, theirs = fast(x_t, t), slow(x_t, t)
    mask = x_t.mask
    torch.testing.assert_close(
        ours.logits_token.exp()[mask], theirs.logits_token.exp()[mask], atol=1e-9, rtol=0
    )
    torch.testing.assert_close(
        ours.logits_deletions.exp()[..., 0],
        theirs.logits_deletions.exp()[..., 0].where(
            torch.arange(x_t.width + 1) <= x_t.lengths[:, None], torch.tensor(1.0).double()
        ),
        atol=1e-9,
        rtol=0,
    )


def test_the_probabilities_are_those_of_the_data() -> None:
    sequences = law(SMALL)
    assert sum(sequences.values()) == pytest.approx(1.0)
    drawn = SMALL.examples(0, 40_000).to_lists()
    first = tuple(drawn[0])
    share = sum(tuple(row) == first for row in drawn) / len(drawn)
    assert share == pytest.approx(sequences[first], rel=0.2)
    assert {tuple(row) for row in drawn} == set(sequences)


@pytest.mark.slow
def test_the_papers_in_place_bound_is_the_ideal_one() -> None:
    """39.95 ± 0.06 in its Table 1: its network had nothing left to learn."""
    data = ArithmeticData()
    found = measured(IdealInPlace(data, 10).eval(), data, count=256, at_once=256)
    bound, error = mean_and_error(found.nats)
    assert abs(bound - 39.95) < 3 * error
    assert float(found.errors.mean()) < 0.05
