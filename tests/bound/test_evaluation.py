"""The bound over a data set: any batches, units, standard errors, bad input."""

import itertools
import math
from collections.abc import Callable
from functools import partial

import pytest
import torch

from indel import Batch, RowSeeds
from indel.bound.estimates import BoundEstimate, BoundParts, Moments, SequenceBounds
from indel.bound.likelihood import (
    accumulate,
    chain_bound,
    closed_form_bound,
    evaluate,
)
from indel.bound.objective import Objective
from indel.process import Schedule, Step, UniformTransition
from support.chain_cases import PAPER, SCHEDULE, make, mean_and_error, repeated, seeds

DATA = [[0, 1, 2], [], [2], [1, 1, 1, 1, 0], [0, 2, 1], [2, 2], [1, 0, 2, 0]]


def in_batches(size: int) -> list[Batch]:
    return [Batch.from_lists(DATA[at : at + size]) for at in range(0, len(DATA), size)]


SETTINGS = [
    {"max_length": 7},
    {"max_length": 7, "num_times": 2},
    {"max_length": 7, "num_chains": 2},
    {"max_length": None},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_sequence_has_its_bound_in_any_batch(settings: dict[str, int | None]) -> None:
    denoiser = make(PAPER, seed=1, max_length=7)
    whole = evaluate(denoiser, in_batches(len(DATA)), seed=5, **settings)
    cut = evaluate(denoiser, in_batches(3), seed=5, **settings)
    torch.testing.assert_close(cut.nats, whole.nats, rtol=1e-5, atol=1e-5)
    assert cut.lengths.tolist() == [len(row) for row in DATA]
    for one, other in (
        (cut.nats_per_sequence, whole.nats_per_sequence),
        (cut.bits_per_token, whole.bits_per_token),
        *zip(cut.by_time, whole.by_time, strict=True),
        *zip(cut.by_part.values(), whole.by_part.values(), strict=True),
    ):
        assert one == pytest.approx(other, rel=1e-5, abs=1e-5, nan_ok=True)
    # Alone, with the number it has in the data.
    alone = evaluate(denoiser, [Batch.from_lists([DATA[4]])], seed=5, first_row=4, **settings)
    torch.testing.assert_close(alone.nats, whole.nats[4:5], rtol=1e-5, atol=1e-5)
    another = evaluate(denoiser, in_batches(4), seed=6, **settings)
    assert not torch.allclose(another.nats, whole.nats, rtol=1e-3)


@pytest.mark.parametrize("num_times", [None, 3])
def test_the_closed_form_has_its_value_in_any_batch(num_times: int | None) -> None:
    denoiser = make(PAPER, seed=1, max_length=7)

    def bound(x_0: Batch, generator: RowSeeds) -> SequenceBounds:
        return closed_form_bound(denoiser, x_0, generator=generator, num_times=num_times)

    whole, cut = (accumulate(bound, in_batches(size), seed=5) for size in (len(DATA), 2))
    torch.testing.assert_close(cut.nats, whole.nats, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("settings", SETTINGS)
def test_breakdown_sums_to_the_total(settings: dict[str, int | None]) -> None:
    result = evaluate(make(PAPER, max_length=7), in_batches(4), seed=0, **settings)
    parts = {name: estimate.mean for name, estimate in result.by_part.items()}
    assert list(parts) == list(BoundParts._fields)
    assert sum(parts.values()) == pytest.approx(result.nats_per_sequence.mean, rel=1e-10)
    if "num_times" not in settings:
        by_time = sum(estimate.mean for estimate in result.by_time)
        total = by_time + parts["length"] + parts["importance"]
        assert total == pytest.approx(result.nats_per_sequence.mean, rel=1e-10)
    assert parts["forward"] < 0 < parts["tokens"]
    assert (parts["importance"] < 0) == ("num_chains" in settings)
    assert (parts["limit"] > 0) == (settings["max_length"] is not None)


def test_units() -> None:
    result = evaluate(make(PAPER, max_length=7), in_batches(4), seed=0, max_length=7)
    nats, lengths = result.nats, result.lengths.double()
    assert result.nats.dtype == torch.float64
    mean, error = mean_and_error(nats)
    assert result.nats_per_sequence == pytest.approx((mean, error))
    assert result.bits_per_sequence == pytest.approx((mean / math.log(2), error / math.log(2)))
    per_token = float(nats.sum() / lengths.sum() / math.log(2))
    # Another estimate of the error of a ratio: leave out one sequence at a time.
    left_out = torch.stack(
        [(nats.sum() - n) / (lengths.sum() - m) for n, m in zip(nats, lengths, strict=True)]
    )
    jackknife = float(
        (left_out - left_out.mean()).square().sum().mul(1 - 1 / len(DATA)).sqrt()
    ) / math.log(2)
    assert result.bits_per_token.mean == pytest.approx(per_token)
    assert result.bits_per_token.standard_error == pytest.approx(jackknife, rel=0.3)
    assert f"{mean:.4g} ± " in str(result)


def test_bits_per_token_of_sequences_of_one_length() -> None:
    batches = [Batch.from_lists([[0, 1, 2, 0]] * 6)]
    result = evaluate(make(PAPER, max_length=7), batches, seed=0, max_length=7)
    assert result.bits_per_token == pytest.approx(result.bits_per_sequence.scaled(0.25))


def test_moments_merge_like_one_batch() -> None:
    generator = torch.Generator().manual_seed(0)
    # A large mean: sums of squares would lose all digits of the variance.
    values = 1e8 + torch.randn(100, 3, generator=generator, dtype=torch.float64)
    valid = torch.rand(100, 3, generator=generator) < torch.tensor([1.0, 0.5, 0.02])
    merged = Moments.of(values[:0], valid[:0])
    for start, end in itertools.pairwise([0, 1, 7, 50, 51, 100]):
        merged = merged.merge(Moments.of(values[start:end], valid[start:end]))
    for column in range(3):
        seen = values[valid[:, column], column]
        assert int(merged.count[column]) == len(seen)
        expected = mean_and_error(seen)
        assert merged.estimates()[column] == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="3 and of 2"):
        merged.merge(Moments.of(values[:, :2], valid[:, :2]))


def test_an_impossible_sequence_costs_infinitely_much() -> None:
    # A network that knows of no deletions cannot explain the DELs of x_1.
    denoiser = make(SCHEDULE, max_deletions=0)
    batches = [repeated((), 3), repeated((0, 1), 100), repeated((), 2)]
    result = evaluate(denoiser, batches, seed=0, max_length=3)
    assert result.nats_per_sequence.mean == math.inf
    assert math.isnan(result.nats_per_sequence.standard_error)
    assert result.by_part["deletions"].mean == math.inf
    assert math.isfinite(result.by_part["tokens"].mean)
    assert not bool(result.nats.isnan().any())
    # One chain that can be is enough.
    several = evaluate(denoiser, batches, seed=0, max_length=3, num_chains=3)
    assert several.nats.isinf().sum() < result.nats.isinf().sum()


def test_rate_zero_and_one_token() -> None:
    in_place = Schedule.paper(1, 3, 0.0)
    result = evaluate(make(in_place), [Batch.from_lists([[0, 0], []])], seed=0, max_length=2)
    # Nothing is unknown but the length.
    table = -make(in_place).length.log_prob(torch.tensor([2, 0])).double()
    torch.testing.assert_close(result.nats, table, rtol=1e-6, atol=1e-6)


def test_evaluation_leaves_no_trace() -> None:
    denoiser = make(PAPER, max_length=7).train()
    denoiser.backbone.eval()
    before = torch.random.get_rng_state()
    result = evaluate(denoiser, in_batches(4), seed=0, max_length=None)
    assert torch.equal(before, torch.random.get_rng_state())
    assert denoiser.training
    assert not denoiser.backbone.training
    assert not result.nats.is_inference()
    # Tables that were made meanwhile still serve for training.
    objective = Objective(PAPER)
    generator = torch.Generator().manual_seed(0)
    objective(
        denoiser, denoiser.length, in_batches(4)[0], generator=generator
    ).total.sum().backward()
    assert denoiser.embedding.weight.grad is not None


def test_evaluation_is_in_evaluation_mode() -> None:
    denoiser = make(PAPER, max_length=7).train()
    modes: list[bool] = []
    denoiser.backbone.register_forward_hook(lambda module, *_: modes.append(module.training))
    evaluate(denoiser, in_batches(4), seed=0, max_length=7)
    assert modes
    assert not any(modes)


def test_bounds_have_gradients_and_take_any_generator() -> None:
    denoiser = make(PAPER, max_length=7)
    generator = torch.Generator().manual_seed(0)
    chain_bound(denoiser, in_batches(4)[0], generator=generator, max_length=7).nats.sum().backward()
    gradients = [parameter.grad for parameter in denoiser.parameters()]
    assert all(gradient is None or bool(gradient.isfinite().all()) for gradient in gradients)
    assert denoiser.length.logits.grad is not None


def test_progress_is_shown_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    denoiser = make(PAPER, max_length=7)
    evaluate(denoiser, in_batches(4), seed=0, max_length=7)
    evaluate(denoiser, in_batches(4), seed=0, max_length=7, progress=False)
    assert capsys.readouterr() == ("", "")
    evaluate(denoiser, iter(in_batches(4)), seed=0, max_length=7, progress=True)
    shown = capsys.readouterr()
    assert "nats" in shown.err
    assert shown.out == ""


def test_bad_input() -> None:
    denoiser = make(PAPER, max_length=7)
    x_0, generator = Batch.from_lists([[0], [0, 1, 2]]), seeds(0, 2)
    with pytest.raises(ValueError, match="longer than max_length = 2, got 3 tokens in row 1"):
        chain_bound(denoiser, x_0, generator=generator, max_length=2)
    with pytest.raises(ValueError, match="at least one sequence"):
        evaluate(denoiser, [], seed=0, max_length=7)
    with pytest.raises(ValueError, match="at least one sequence"):
        evaluate(denoiser, [Batch.from_lists([])], seed=0, max_length=7)
    for bad in (0, 6):
        with pytest.raises(ValueError, match=f"num_times must lie in 1…5, got {bad}"):
            closed_form_bound(denoiser, x_0, generator=generator, num_times=bad)
    with pytest.raises(ValueError, match="num_chains must be at least 1, got 0"):
        evaluate(denoiser, [x_0], seed=0, max_length=7, num_chains=0)
    with pytest.raises(ValueError, match="num_times must be None with num_chains = 2, got 3"):
        evaluate(denoiser, [x_0], seed=0, max_length=7, num_chains=2, num_times=3)
    with pytest.raises(ValueError, match="INS and DEL cannot be in the data"):
        evaluate(denoiser, [Batch.from_lists([[4]])], seed=0, max_length=7)


@pytest.mark.parametrize("bound", [partial(chain_bound, max_length=9), closed_form_bound])
def test_last_step_must_delete_everything(bound: Callable[..., SequenceBounds]) -> None:
    endless = Schedule([Step(0.2, 0.2, UniformTransition(3, 0.5))] * 2)
    with pytest.raises(ValueError, match="last step must delete everything"):
        bound(make(endless), Batch.from_lists([[0]]), generator=seeds(0, 1))


def test_empty_batches_among_others_do_no_harm() -> None:
    denoiser = make(PAPER, max_length=7)
    nothing = Batch.from_lists([])
    first, *rest = in_batches(4)
    with_gaps = evaluate(denoiser, [nothing, first, nothing, *rest], seed=0, max_length=7)
    plain = evaluate(denoiser, in_batches(4), seed=0, max_length=7)
    assert torch.equal(with_gaps.nats, plain.nats)
    assert isinstance(with_gaps, BoundEstimate)
    assert with_gaps.nats_per_sequence == plain.nats_per_sequence
