"""The lattice in C finds what the one in log space finds, for numbers of any size.

`test_against_oracle` compares whichever of them runs with enumeration.
"""

import math

import pytest
import torch

from indel import Batch
from indel.native import SWITCH
from indel.process import (
    AbsorbingTransition,
    MatrixTransition,
    Schedule,
    Step,
    UniformTransition,
    corrupt,
    log_prob,
)
from indel.process.lattice import Lattice
from indel.process.native_lattice import NativeLattice

LETTERS = torch.tensor([[0.8, 0.2, 0.0], [0.0, 0.5, 0.5], [0.1, 0.2, 0.7]], dtype=torch.float64)
SCHEDULES = {
    "uniform": Schedule.paper(28, 32, 0.6),
    "in place": Schedule.paper(28, 32, 0.0),
    "absorbing": Schedule.paper(
        5, 16, 0.5, transition=lambda size, keep: AbsorbingTransition(size, keep, 2)
    ),
    "dense": Schedule([Step(0.1, 0.2, MatrixTransition(LETTERS))] * 3),
    "one token": Schedule.paper(1, 6, 0.6),
}
ROWS = 27
"""More than one block, and not a whole number of them."""


def ragged(longest: int, size: int, generator: torch.Generator) -> Batch:
    lengths = torch.randint(longest + 1, (ROWS,), generator=generator)
    return Batch(torch.randint(size, (ROWS, longest), generator=generator), lengths)


def both(
    schedule: Schedule, x_0: Batch, x_t: Batch, t: torch.Tensor
) -> tuple[NativeLattice, Lattice]:
    native = NativeLattice.of(schedule, x_0, x_t, t)
    if native is None:
        pytest.skip("there is no C compiler here")
    return native, Lattice.of(schedule, x_0, x_t, t)


@pytest.fixture(params=SCHEDULES)
def schedule(request: pytest.FixtureRequest) -> Schedule:
    return SCHEDULES[request.param]


@pytest.mark.parametrize("related", [True, False])
def test_all_lengths_and_times(schedule: Schedule, related: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x_0 = ragged(60, schedule.vocab_size, generator)
    t = torch.randint(schedule.num_steps + 1, (ROWS,), generator=generator)
    x_t = ragged(50, schedule.vocab_size, generator)
    if related:
        x_t = corrupt(schedule, x_0, t, generator=generator).x_t
    native, reference = both(schedule, x_0, x_t, t)
    expected = reference.log_prob()
    assert bool((expected > -torch.inf).all()) or not related
    torch.testing.assert_close(native.log_prob(), expected, rtol=1e-12, atol=1e-12)
    cells, others = native.cells(), reference.cells()
    for found, other in zip(cells, others, strict=True):
        # What lies outside of both sequences is nobody's business.
        inside = torch.ones(other.shape, dtype=torch.bool)
        if other.ndim == 3:
            inside &= (torch.arange(other.shape[1]) <= x_0.lengths[:, None])[:, :, None]
            inside &= (torch.arange(other.shape[2]) <= x_t.lengths[:, None])[:, None, :]
        torch.testing.assert_close(found[inside], other[inside], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("only_largest", [True, False])
def test_the_same_draws_give_the_same_edits(schedule: Schedule, only_largest: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    x_0 = ragged(40, schedule.vocab_size, generator)
    t = torch.randint(schedule.num_steps + 1, (ROWS,), generator=generator)
    x_t = corrupt(schedule, x_0, t, generator=generator).x_t
    native, reference = both(schedule, x_0, x_t, t)
    draws = torch.rand(ROWS, 2 * (x_0.width + x_t.width), generator=generator, dtype=torch.float64)
    if only_largest:
        draws.fill_(1.0 - 1e-6)
    found = native.walk(draws, only_largest=only_largest)
    expected = reference.walk(draws, only_largest=only_largest)
    assert torch.equal(found.source, expected.source)
    assert bool((found.source >= 0).any())
    torch.testing.assert_close(found.log_total, expected.log_total, rtol=1e-12, atol=1e-12)


def test_no_number_is_too_small() -> None:
    """Inserts and deletions of 1e−60 each: sixty of them are far below the smallest float64."""
    step = Step(1e-60, 1e-60, UniformTransition(3, 0.9))
    schedule = Schedule([step, step, step])
    x_0 = Batch.from_lists([[0] * 60, [0, 1, 2], [], [1] * 8])
    x_t = Batch.from_lists([[], [0, 1, 2], [1] * 60, [0] * 8])
    native, reference = both(schedule, x_0, x_t, torch.full((4,), 3))
    actual = native.log_prob()
    torch.testing.assert_close(actual, reference.log_prob(), rtol=1e-12, atol=0)
    # To delete all of 60 tokens: β̄^60 (1 − Σᾱ), and 1 − Σᾱ is 1 here.
    delete = float(schedule.tables(x_0.device).jump.delete[3])
    assert actual[0].item() == pytest.approx(60 * math.log(delete), rel=1e-12)
    assert actual[0].item() < -8000


def test_impossible_pairs_have_probability_zero() -> None:
    schedule = Schedule.paper(3, 4, 0.0)
    x_0, x_t = Batch.from_lists([[0, 1], [0]]), Batch.from_lists([[0], [0]])
    native, _ = both(schedule, x_0, x_t, torch.tensor([2, 2]))
    assert native.log_prob().isinf().tolist() == [True, False]
    native.walk(torch.full((2, 6), 0.5, dtype=torch.float64))  # ends all the same


def test_a_pair_does_not_depend_on_its_neighbors(schedule: Schedule) -> None:
    generator = torch.Generator().manual_seed(2)
    x_0, x_t = (ragged(20, schedule.vocab_size, generator) for _ in range(2))
    t = torch.randint(schedule.num_steps + 1, (ROWS,), generator=generator)
    native, _ = both(schedule, x_0, x_t, t)
    some = torch.tensor([11, 3])
    alone, _ = both(schedule, x_0.rows(some), x_t.rows(some), t[some])
    assert torch.equal(alone.log_prob(), native.log_prob()[some])


def test_torch_does_it_where_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, x = SCHEDULES["uniform"], Batch.from_lists([[0, 1, 2]])
    compiled = log_prob(schedule, x, x, 5)
    monkeypatch.setenv(SWITCH, "0")
    assert NativeLattice.of(schedule, x, x, torch.tensor([5])) is None
    torch.testing.assert_close(log_prob(schedule, x, x, 5), compiled, rtol=1e-13, atol=0)
