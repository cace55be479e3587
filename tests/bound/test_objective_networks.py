"""The loss through a network: gradients, precision, padding."""

import math

import pytest
import torch
from torch import Tensor

from indel import Batch
from indel.bound.noised import Noised
from indel.bound.objective import Objective, length_term, step_terms
from indel.model import Denoiser
from indel.model.denoiser import DenoiserOutput
from indel.model.reverse import ReverseStep
from indel.process import (
    AbsorbingTransition,
    GaussianTransition,
    Schedule,
)
from indel.randomness import RowSeeds
from support.denoisers import tiny_denoiser
from support.loss_cases import CPU, WEIGHTS, Network, times_of

THREE = {
    "uniform": Schedule.paper(3, 4, 0.7),
    "rate one": Schedule.paper(3, 4, 1.0),
    "in place": Schedule.paper(3, 4, 0.0),
    "absorbing": Schedule.paper(
        3, 4, 0.6, transition=lambda size, keep: AbsorbingTransition(size, keep, 2)
    ),
    "dense": Schedule.paper(
        3, 4, 0.6, transition=lambda size, keep: GaussianTransition(size, 1.0, band=1)
    ),
}
ROWS = [[0, 1, 2, 0, 1, 1], [], [2], [], [1, 0]]


def denoiser_of(schedule: Schedule) -> Denoiser:
    return tiny_denoiser(schedule, max_length=12, max_deletions=None, num_layers=2)


@pytest.mark.parametrize("rows", [ROWS, [[], []]], ids=["some empty", "all empty"])
@pytest.mark.parametrize("choice", WEIGHTS)
@pytest.mark.parametrize("name", THREE)
def test_gradients_are_finite_at_every_time(name: str, choice: str, rows: list) -> None:
    schedule = THREE[name]
    denoiser = denoiser_of(schedule)
    x_0 = Batch.from_lists(rows)
    weights = WEIGHTS[choice](schedule.tables(CPU).jump)
    for t in range(1, schedule.num_steps + 1):
        noised = Noised.draw(
            schedule, x_0, times_of(len(rows), t), generator=torch.Generator().manual_seed(t)
        )
        for known in (noised, noised.with_edits(None)):
            denoiser.zero_grad()
            terms = step_terms(schedule, denoiser(noised.seen, noised.t), known, weights)
            at_end = length_term(schedule, denoiser.length, x_0.lengths)
            loss = terms.total + at_end
            assert loss.dtype == torch.float32
            assert bool(loss.isfinite().all())
            loss.sum().backward()
            for parameter, value in denoiser.named_parameters():
                if value.grad is not None:
                    assert bool(value.grad.isfinite().all()), (t, parameter)
            assert bool((denoiser.length.logits.grad != 0).any())
            if noised.seen.width:
                moved = denoiser.embedding.weight.grad.abs().sum()
                assert float(moved) > 0 or (name in ("in place", "rate one"))


def test_there_is_zero_probability_inside() -> None:
    """What the gradients above pass by: at t = 1 and where masks are certain."""
    schedule = THREE["absorbing"]
    seen = Batch.from_lists([[0, 2, 1]])
    for t in (1, 2):
        output = Network(schedule)(seen, times_of(1, t))
        reverse = ReverseStep.of(schedule, output, seen, times_of(1, t))
        assert bool((reverse.logp_previous == -math.inf).any())
    assert bool((reverse.logp_previous[0, 0] == -math.inf).any())


@pytest.mark.parametrize("marginalize", [False, True])
@pytest.mark.parametrize("name", THREE)
def test_batches_of_nothing(name: str, marginalize: bool) -> None:
    schedule = THREE[name]
    denoiser = denoiser_of(schedule)
    objective = Objective(schedule, marginalize=marginalize)
    for rows in ([], [[]], [[], [], [], [], [], [], [], []]):
        batch = Batch.from_lists(rows)
        generator = torch.Generator().manual_seed(0)
        loss = objective(denoiser, denoiser.length, batch, generator=generator)
        assert loss.total.shape == (len(rows),)
        assert bool(loss.total.isfinite().all())
        loss.total.sum().backward()
    for value in denoiser.parameters():
        assert value.grad is None or bool(value.grad.isfinite().all())


@pytest.mark.parametrize("name", ["uniform", "dense"])
def test_half_precision_ends_at_the_logits(name: str) -> None:
    """Under autocast a network gives bfloat16; the loss of the same numbers is not coarser."""
    schedule = THREE[name]
    x_0 = Batch.from_lists([[0, 1, 2, 0, 1, 1] * 4] * 8)
    for t in range(1, schedule.num_steps + 1):
        noised = Noised.draw(
            schedule, x_0, times_of(len(x_0), t), generator=torch.Generator().manual_seed(t)
        )
        logits = Network(schedule, most=24)(noised.seen, noised.t)
        half = DenoiserOutput(*(each.bfloat16() for each in logits))
        exact = DenoiserOutput(*(each.double() for each in half))
        for known in (noised, noised.with_edits(None)):
            ours, expected = (step_terms(schedule, output, known) for output in (half, exact))
            assert ours.total.dtype == torch.float32
            torch.testing.assert_close(ours.total.double(), expected.total, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("padding", [0, 5, 70])
def test_a_sequence_gets_the_same_noise_and_logits_in_any_company(padding: int) -> None:
    """One seed per row: alone, among 64, and however wide the padding."""
    schedule = THREE["uniform"]
    denoiser = denoiser_of(schedule)
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(0, 9, (64,), generator=generator).tolist()
    rows = [torch.randint(0, 3, (n,), generator=generator).tolist() for n in lengths]
    seeds = torch.randint(2**40, (64,), generator=generator)
    times = torch.randint(1, 5, (64,), generator=generator)

    def run(x_0: Batch, seeds: Tensor, times: Tensor) -> tuple[Noised, DenoiserOutput, Tensor]:
        noised = Noised.draw(schedule, x_0, times, generator=RowSeeds(seeds), max_length=11)
        with torch.no_grad():
            terms = step_terms(schedule, denoiser(noised.seen, times), noised)
            output = denoiser(noised.seen.widened(x_0.width), times)
        return noised, output, terms.total

    noised, output, total = run(Batch.from_lists(rows).widened(padding), seeds, times)
    assert len(set(noised.x_t.lengths.tolist())) > 5
    for row in range(64):
        one = slice(row, row + 1)
        alone, own_output, own_total = run(Batch.from_lists(rows[one]), seeds[one], times[one])
        assert alone.x_t.to_lists() == [noised.x_t.to_lists()[row]]
        length, kept = int(noised.x_t.lengths[row]), int(noised.seen.lengths[row])
        own_source = alone.edits.source[0, :length].tolist()
        assert own_source == noised.edits.source[row, :length].tolist()
        for ours, theirs, end in zip(own_output, output, (kept, kept + 1), strict=True):
            torch.testing.assert_close(ours[0, :end], theirs[row, :end], rtol=0, atol=1e-5)
        torch.testing.assert_close(own_total[0], total[row], rtol=1e-5, atol=1e-4)
