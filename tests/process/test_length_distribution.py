"""The law of |x_t| given |x_0|, by formula, by enumeration and by simulation."""

import itertools

import numpy as np
import pytest
import torch
from scipy import stats

import oracles
from indel import Batch
from indel.process import Schedule, corrupt, corrupt_chain
from indel.process.counts import sum_distribution
from indel.process.length_distribution import length_distribution
from oracles import OracleStep
from support.cases import library_step

STEPS = (
    OracleStep(0.3, 0.3, 0.4, ((0.9, 0.1), (0.1, 0.9)), (0.9, 0.1)),
    OracleStep(0.2, 0.2, 0.5, ((0.95, 0.05), (0.1, 0.9)), (0.8, 0.2)),
    OracleStep(0.0, 1.0, 1.0, ((1.0, 0.0), (0.0, 1.0)), (0.5, 0.5)),
)
SCHEDULE = Schedule(map(library_step, STEPS))


@pytest.mark.parametrize("t", [0, 1, 2, 3])
def test_it_is_the_sum_over_all_sequences_of_a_length(t: int) -> None:
    law = length_distribution(SCHEDULE, torch.tensor([0, 1, 3]), t)
    # At T all tokens are DEL, so longer sequences are few enough to sum over.
    longest, tokens = (7, (3,)) if t == 3 else (4, range(4))
    for row, count in enumerate([0, 1, 3]):
        for length in range(min(longest + 1, law.shape[1])):
            expected = sum(
                oracles.jump_prob(STEPS[:t], (1, 0, 1)[:count], x_t)
                for x_t in itertools.product(tokens, repeat=length)
            )
            assert law[row, length].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("t", [0, 1, 3, 5, 6])
@pytest.mark.parametrize("rate", [0.0, 0.6, 1.0])
def test_what_is_cut_off_is_nothing(rate: float, t: int) -> None:
    """The rows sum to 1, for long sequences too, and in any company."""
    schedule = Schedule.paper(5, 6, rate)
    lengths = torch.tensor([0, 3, 400, 3])
    law = length_distribution(schedule, lengths, t)
    torch.testing.assert_close(law.sum(dim=1), torch.ones(4).double(), rtol=0, atol=1e-10)
    assert torch.equal(law[1], law[3])
    alone = length_distribution(schedule, torch.tensor([3]), t)
    torch.testing.assert_close(law[1, : alone.shape[1]], alone[0], rtol=0, atol=1e-14)
    assert float(law[1, alone.shape[1] :].sum()) < 1e-12
    if rate == 0.0 or t == 0:
        assert law.argmax(dim=1).tolist() == lengths.tolist()
        torch.testing.assert_close(law.max(dim=1).values, torch.ones(4).double())


def test_no_sequences() -> None:
    assert length_distribution(SCHEDULE, torch.zeros(0, dtype=torch.int64), 2).shape[0] == 0


@pytest.mark.parametrize("t", [2, 4, 6])
def test_it_is_how_long_corrupted_sequences_are(t: int) -> None:
    schedule, draws = Schedule.paper(3, 6, 0.7), 30_000
    x_0 = Batch.from_lists([[0, 1, 2, 1, 1]] * draws)
    generator = torch.Generator().manual_seed(t)
    law = length_distribution(schedule, torch.tensor([5]), t)[0]
    jumps = corrupt(schedule, x_0, t, generator=generator).x_t.lengths
    chains = corrupt_chain(schedule, x_0, generator=generator)[t].lengths
    for lengths in (jumps, chains):
        assert p_value(lengths, law) > 0.001


def test_the_same_test_sees_a_law_that_is_off() -> None:
    schedule, draws = Schedule.paper(3, 6, 0.7), 30_000
    x_0 = Batch.from_lists([[0, 1, 2, 1, 1]] * draws)
    generator = torch.Generator().manual_seed(4)
    lengths = corrupt(schedule, x_0, 4, generator=generator).x_t.lengths
    other = length_distribution(Schedule.paper(3, 6, 0.73), torch.tensor([5]), 4)[0]
    assert p_value(lengths, other) < 0.001


def p_value(lengths: torch.Tensor, law: torch.Tensor) -> float:
    """χ² of the lengths seen, those expected fewer than forty times being one cell."""
    expected = law * len(lengths)
    seen = torch.bincount(lengths, minlength=len(law))[: len(law)]
    large = expected >= 40
    pooled_seen = torch.cat([seen[large], (len(lengths) - seen[large].sum())[None]])
    pooled = torch.cat([expected[large], (len(lengths) - expected[large].sum())[None]])
    return float(stats.chisquare(pooled_seen.numpy(), pooled.numpy()).pvalue)


def test_the_law_of_a_sum_is_the_convolution_and_keeps_small_probabilities() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = torch.rand(2, 3, 9, generator=generator, dtype=torch.float64)
    first[:, 0] = 1e-30
    found = sum_distribution(first, second)
    for row in range(3):
        expected = np.convolve(first[row].numpy(), second[row].numpy())[:9]
        np.testing.assert_allclose(found[row].numpy(), expected, rtol=1e-14)
