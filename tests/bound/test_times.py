"""Times are drawn by their law, spread over the batch, and weighted so that sums stay unbiased."""

import math

import pytest
import torch
from scipy import stats

from indel.bound.times import TermSizes, TimeDistribution
from indel.randomness import RowSeeds

UNEVEN = torch.tensor([0.05, 0.35, 0.4, 0.2], dtype=torch.float64)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batches(law: TimeDistribution, rows: int, draws: int) -> torch.Tensor:
    """Times of many batches, (draws, rows)."""
    source = generator(rows)
    return torch.stack([law.draw(rows, generator=source)[0] for _ in range(draws)])


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("prob", [torch.ones(4).double(), UNEVEN], ids=["uniform", "uneven"])
def test_each_row_alone_has_the_law(prob: torch.Tensor, rows: int) -> None:
    """Exactly P(t), whatever the stratification: the places of a row are drawn alike."""
    law = TimeDistribution(prob)
    times = batches(law, rows, 2000)
    for row in range(rows):
        seen = torch.bincount(times[:, row], minlength=5)[1:]
        expected = law.prob * 2000
        # One in a thousand for all rows together.
        assert stats.chisquare(seen.numpy(), expected.numpy()).pvalue > 0.001 / rows, row


def test_the_same_test_sees_another_law() -> None:
    times = batches(TimeDistribution(UNEVEN), 3, 2000)
    seen = torch.bincount(times[:, 0], minlength=5)[1:].numpy()
    wrong = (UNEVEN + torch.tensor([0.03, -0.03, 0.0, 0.0])) * 2000
    assert stats.chisquare(seen, wrong.numpy()).pvalue < 0.001


def test_every_batch_is_spread_evenly() -> None:
    """Times below any one of n strata are ⌊n P⌋ or one more."""
    law = TimeDistribution(UNEVEN)
    for rows in (1, 2, 5, 8, 20):
        times = batches(law, rows, 50)
        for t in range(1, 5):
            below = (times <= t).sum(dim=1)
            expected = rows * float(law.prob[:t].sum())
            assert bool((below >= math.floor(expected - 1e-9)).all())
            assert bool((below <= math.ceil(expected + 1e-9)).all())
    uniform = batches(TimeDistribution.uniform(4), 8, 20)
    assert bool((uniform.sort(dim=1).values == torch.tensor([1, 1, 2, 2, 3, 3, 4, 4])).all())


def test_rows_do_not_take_turns() -> None:
    """Which row gets which stratum is random: early rows are not always early in time."""
    times = batches(TimeDistribution.uniform(4), 4, 2000)
    assert (times[:, 0] == 1).sum() == pytest.approx(500, abs=100)
    together = torch.bincount((times[:, 0] - 1) * 4 + times[:, 1] - 1, minlength=16)
    # Two rows of one batch never share a stratum, and all other pairs are alike.
    expected = torch.full((4, 4), 2000 / 12, dtype=torch.float64).fill_diagonal_(0.0).flatten()
    assert together[expected == 0].tolist() == [0] * 4
    assert stats.chisquare(together[expected > 0], expected[expected > 0]).pvalue > 0.001


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_weights_make_the_mean_over_strata_the_sum_over_times(rows: int) -> None:
    """Σ_strata E[f(t)/P(t)]/n = Σ_t f(t), each stratum integrated exactly over its noise."""
    law = TimeDistribution(UNEVEN)
    terms = torch.tensor([3.0, -1.0, 0.25, 7.0], dtype=torch.float64)
    edges = torch.cat([torch.zeros(1).double(), law.prob.cumsum(dim=0)]).tolist()
    total = 0.0
    for part in range(rows):
        start, end = part / rows, (part + 1) / rows
        for t in range(4):
            overlap = max(0.0, min(end, edges[t + 1]) - max(start, edges[t]))
            total += overlap * float(terms[t] / law.prob[t])
    assert total == pytest.approx(float(terms.sum()), abs=1e-12)
    # The draws take the value of each stratum at their noise, and say 1/P(t).
    seeds = RowSeeds(torch.arange(rows) + 11)
    noise = RowSeeds(torch.arange(rows) + 11).uniform(2)
    place = (noise[:, 1].argsort().argsort() + noise[:, 0]) / rows
    times, weight = law.draw(rows, generator=seeds)
    expected = torch.bucketize(place, torch.tensor(edges[1:-1]).double(), right=True) + 1
    assert times.tolist() == expected.tolist()
    torch.testing.assert_close(weight, 1.0 / UNEVEN[times - 1])


def test_the_weighted_mean_is_unbiased() -> None:
    law = TimeDistribution(UNEVEN)
    terms = torch.tensor([3.0, -1.0, 0.25, 7.0], dtype=torch.float64)
    source = generator(5)
    means = []
    for _ in range(1500):
        t, weight = law.draw(5, generator=source)
        means.append(float((weight * terms[t - 1]).mean()))
    estimate = torch.tensor(means)
    error = float(estimate.std() / len(means) ** 0.5)
    assert float(estimate.mean()) == pytest.approx(float(terms.sum()), abs=4 * error)


def test_draws_repeat_with_their_seed() -> None:
    law = TimeDistribution(UNEVEN)
    first, again, other = (law.draw(50, generator=generator(seed))[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_no_rows() -> None:
    t, weight = TimeDistribution.uniform(3).draw(0, generator=generator())
    assert t.shape == weight.shape == (0,)
    assert t.dtype == torch.int64


def test_a_law_is_normalised_and_must_reach_every_time() -> None:
    torch.testing.assert_close(TimeDistribution(UNEVEN * 8).prob, UNEVEN)
    for wrong in ([0.5, 0.0, 0.5], [1.0, -1.0], [1.0, math.nan], [1.0, math.inf], []):
        with pytest.raises(ValueError, match="positive"):
            TimeDistribution(torch.tensor(wrong, dtype=torch.float64))


# --- by the size of the terms -------------------------------------------------------------------


def test_sizes_are_uniform_before_anything_was_seen() -> None:
    torch.testing.assert_close(TermSizes(5).law().prob, torch.full((5,), 0.2).double())


def test_sizes_are_running_means_of_squares() -> None:
    sizes = TermSizes(3, memory=0.9, floor=0.2)
    sizes.update(torch.tensor([1, 3, 1]), torch.tensor([2.0, -3.0, 4.0]))
    first, third = 0.9 + 0.1 * (4 + 16) / 2, 0.9 + 0.1 * 9
    sizes.update(torch.tensor([3]), torch.tensor([5.0]))
    third = 0.9 * third + 0.1 * 25
    root = [first**0.5, 1.0, third**0.5]
    expected = [0.8 * each / sum(root) + 0.2 / 3 for each in root]
    assert sizes.law().prob.tolist() == pytest.approx(expected, abs=1e-12)


def test_sizes_find_the_law_of_least_variance_and_forget_no_time() -> None:
    sizes = TermSizes(4, memory=0.5, floor=0.1)
    terms = torch.tensor([1.0, 0.0, -3.0, 6.0])
    for _ in range(80):
        sizes.update(torch.arange(1, 5), terms)
    expected = [0.9 * abs(term) / 10 + 0.1 / 4 for term in terms.tolist()]
    assert sizes.law().prob.tolist() == pytest.approx(expected, abs=1e-6)


def test_sizes_keep_no_graph() -> None:
    sizes = TermSizes(2)
    sizes.update(torch.tensor([1, 2]), torch.ones(2, requires_grad=True) * 3)
    assert not sizes.square.requires_grad


def test_low_noise_counts_each_term_by_how_often_it_is_drawn() -> None:
    """E[weight · f(t)] = T · Σ P(t) f(t), P(t) ∝ T + 1 − t: a weighted sum, not the bound."""
    law = TimeDistribution.low_noise(4)
    terms = torch.tensor([3.0, -1.0, 0.25, 7.0], dtype=torch.float64)
    times = batches(law, 10, 2000)
    _, weight = law.draw(10, generator=RowSeeds(torch.arange(10)))
    assert weight.tolist() == [4.0] * 10
    # Ten strata of ten tenths: every batch holds t = 1…4 exactly 4, 3, 2 and 1 times.
    assert all(torch.bincount(row).tolist() == [0, 4, 3, 2, 1] for row in times)
    mean = (4.0 * terms[times - 1]).mean()
    assert float(mean) == pytest.approx(4 * (0.4 * 3 - 0.3 + 0.2 * 0.25 + 0.1 * 7), abs=1e-9)
