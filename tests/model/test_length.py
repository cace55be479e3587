"""The table of lengths is a distribution over all lengths, and samples follow it."""

import math

import pytest
import torch

from indel.model import LengthTable
from indel.randomness import RowSeeds


def uneven(max_length: int = 6, tail: float = 0.4) -> LengthTable:
    table = LengthTable(max_length)
    with torch.no_grad():
        table.logits.normal_(generator=torch.Generator().manual_seed(0))
        table.logit_tail.fill_(tail)
    return table


def prob(table: LengthTable, count: int) -> torch.Tensor:
    return table.log_prob(torch.arange(count)).exp().double().detach()


@pytest.mark.parametrize("max_length", [0, 6])
def test_it_sums_to_one_over_all_lengths(max_length: int) -> None:
    assert float(prob(uneven(max_length), 300).sum()) == pytest.approx(1.0, abs=1e-6)


def test_the_tail_is_geometric_and_holds_the_last_entry() -> None:
    table = uneven()
    probs, ratio = prob(table, 40), torch.sigmoid(torch.tensor(0.4)).item()
    torch.testing.assert_close(
        probs[8:] / probs[7:-1], torch.full((32,), ratio).double(), rtol=1e-5, atol=0
    )
    longer = table.logits.softmax(0)[-1].item()
    assert float(probs[7]) == pytest.approx(longer * (1 - ratio), rel=1e-5)
    torch.testing.assert_close(probs[:7], table.logits.softmax(0)[:7].double().detach())


def test_samples_follow_it() -> None:
    table, count = uneven(), 40_000
    lengths = table.sample(count, generator=torch.Generator().manual_seed(1))
    seen = torch.bincount(lengths, minlength=60)[:60] / count
    expected = prob(table, 60)
    # Five standard errors for each of the sixty.
    assert bool(((seen - expected).abs() <= 5 * (expected / count).sqrt() + 1e-4).all())
    assert int(lengths.max()) > 8


def test_a_row_draws_by_its_own_seed() -> None:
    table = uneven(tail=2.0)
    seeds = torch.arange(64)
    together = table.sample(64, generator=RowSeeds(seeds))
    alone = [int(table.sample(1, generator=RowSeeds(seeds[row : row + 1]))) for row in range(64)]
    assert together.tolist() == alone


def test_fit_without_smoothing_is_the_empirical_law() -> None:
    table = LengthTable(3)
    lengths = torch.tensor([0, 2, 2, 3, 4, 4, 6])
    table.fit(torch.bincount(lengths), smoothing=0.0)
    logp = table.log_prob(torch.arange(4))
    torch.testing.assert_close(logp.exp(), torch.tensor([1, 0, 2, 1]) / 7.0)
    assert logp[1].item() == -math.inf
    # Excesses 0, 0, 2 over 4: the likeliest g is 2 / (2 + 3).
    assert table.log_prob(torch.tensor(5)).exp().item() == pytest.approx(3 / 7 * 0.6 * 0.4)
    assert not bool((table.sample(500, generator=torch.Generator().manual_seed(0)) == 1).any())
    (-table.log_prob(lengths).sum()).backward()
    assert table.logits.grad is not None
    # At the likeliest table the gradient vanishes, also where there is −∞ inside.
    torch.testing.assert_close(table.logits.grad, torch.zeros(5), atol=1e-5, rtol=0)
    torch.testing.assert_close(table.logit_tail.grad, torch.zeros(()), atol=1e-5, rtol=0)


def test_fit_with_smoothing_reaches_every_length() -> None:
    table = LengthTable(3)
    table.fit(torch.tensor([0.0, 2.5]))
    expected = torch.tensor([1.0, 3.5, 1.0, 1.0]) / 7.5
    torch.testing.assert_close(table.log_prob(torch.arange(4)).exp(), expected)
    assert bool(table.log_prob(torch.tensor([50])).isfinite().all())


def test_a_tail_of_one_length_is_finite() -> None:
    table = LengthTable(1)
    table.fit(torch.tensor([1, 1, 2]), smoothing=0.0)
    logp = table.log_prob(torch.tensor([0, 2, 3]))
    assert logp.exp().tolist() == pytest.approx([0.25, 0.5, 0.0])
    logp[:2].sum().backward()
    assert all(bool(parameter.grad.isfinite().all()) for parameter in table.parameters())
    assert set(table.sample(50, generator=torch.Generator().manual_seed(0)).tolist()) == {0, 1, 2}


def test_gradient_descent_learns_it() -> None:
    table = LengthTable(4)
    lengths = torch.tensor([2, 2, 2, 4, 7])
    optimizer = torch.optim.Adam(table.parameters(), lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        (-table.log_prob(lengths).mean()).backward()
        optimizer.step()
    assert table.log_prob(torch.tensor(2)).exp().item() == pytest.approx(0.6, abs=0.02)
    assert torch.sigmoid(table.logit_tail).item() == pytest.approx(2 / 3, abs=0.02)


def test_bad_values_are_named() -> None:
    table = LengthTable(3)
    with pytest.raises(ValueError, match="lengths must be ≥ 0, got -2"):
        table.log_prob(torch.tensor([1, -2]))
    with pytest.raises(ValueError, match="counts must be finite and ≥ 0"):
        table.fit(torch.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match="smoothing must be ≥ 0, got -1"):
        table.fit(torch.tensor([1.0]), smoothing=-1.0)
    with pytest.raises(ValueError, match="counts must not all be 0"):
        table.fit(torch.tensor([0, 0]), smoothing=0.0)
    with pytest.raises(ValueError, match="max_length must be an integer ≥ 0, got -1"):
        LengthTable(-1)


def test_a_length_without_probability_is_never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even by noise of exactly 0, which lies at the end of every such length."""
    table = LengthTable(2)
    table.fit(torch.tensor([0, 0, 5]), smoothing=0.0)

    def zeros(generator: object, rows: int, width: int, *, dtype: torch.dtype) -> torch.Tensor:
        return torch.zeros(rows, width, dtype=dtype)

    monkeypatch.setattr("indel.model.length.uniform", zeros)
    assert table.sample(3, generator=torch.Generator()).tolist() == [2, 2, 2]
