"""The sum over alignments in linear numbers equals that in log space, or says it may not."""

import math

import pytest
import torch

from indel import Batch
from indel.process import AbsorbingTransition, Schedule, Step, UniformTransition, corrupt, log_prob
from indel.process.alignments import Lattice
from indel.process.scaled_lattice import Moves, scaled_total

SCHEDULES = {
    "uniform": Schedule.paper(28, 32, 0.6),
    "in place": Schedule.paper(28, 32, 0.0),
    "absorbing": Schedule.paper(
        5, 16, 0.5, transition=lambda size, keep: AbsorbingTransition(size, keep, 2)
    ),
    "one token": Schedule.paper(1, 6, 0.6),
}


def in_log_space(schedule: Schedule, x_0: Batch, x_t: Batch, t: torch.Tensor) -> torch.Tensor:
    lattice = Lattice.of(schedule, x_0, x_t, t)
    return lattice.total(lattice.forward()[1])


def ragged(rows: int, longest: int, size: int, generator: torch.Generator) -> Batch:
    lengths = torch.randint(longest + 1, (rows,), generator=generator)
    return Batch(torch.randint(size, (rows, longest), generator=generator), lengths)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("related", [True, False])
def test_all_lengths_and_times(name: str, related: bool) -> None:
    schedule, generator = SCHEDULES[name], torch.Generator().manual_seed(0)
    x_0 = ragged(24, 60, schedule.vocab_size, generator)
    t = torch.randint(schedule.num_steps + 1, (24,), generator=generator)
    x_t = ragged(24, 50, schedule.vocab_size, generator)
    if related:
        x_t = corrupt(schedule, x_0, t, generator=generator).x_t
    expected = in_log_space(schedule, x_0, x_t, t)
    assert bool((expected > -torch.inf).all()) or not related
    torch.testing.assert_close(log_prob(schedule, x_0, x_t, t), expected, rtol=1e-12, atol=1e-12)
    moves = Moves.of(schedule.tables(x_0.device).jump, x_0.tokens, x_t.tokens, t)
    assert moves is not None
    # Rarely is log space needed, or this would be no test of the linear numbers.
    assert int(scaled_total(moves, x_0.lengths, x_t.lengths).reliable.sum()) >= 20


def test_what_would_underflow_is_summed_in_log_space() -> None:
    """Inserts and deletions of 1e−60 each: sixty of them are far below the smallest float64."""
    step = Step(1e-60, 1e-60, UniformTransition(3, 0.9))
    schedule = Schedule([step, step, step])
    x_0 = Batch.from_lists([[0] * 60, [0, 1, 2], [], [1] * 8])
    x_t = Batch.from_lists([[], [0, 1, 2], [1] * 60, [0] * 8])
    t = torch.full((4,), 3)
    moves = Moves.of(schedule.tables(x_0.device).jump, x_0.tokens, x_t.tokens, t)
    assert moves is not None
    assert not bool(scaled_total(moves, x_0.lengths, x_t.lengths).reliable.any())
    actual = log_prob(schedule, x_0, x_t, t)
    torch.testing.assert_close(actual, in_log_space(schedule, x_0, x_t, t), rtol=1e-12, atol=0)
    # To delete all of 60 tokens: β̄^60 (1 − Σᾱ), and 1 − Σᾱ is 1 here.
    delete = float(schedule.tables(x_0.device).jump.delete[3])
    assert actual[0].item() == pytest.approx(60 * math.log(delete), rel=1e-12)
    assert actual[0].item() < -8000
