"""The deletions part of the loss against sums written out in log space and float64."""

import pytest
import torch

from indel import Batch
from indel.bound.noised import Noised
from indel.bound.objective import Objective, StepTerms, _dense_terms, step_terms
from indel.model.denoiser import DenoiserOutput
from indel.model.length import LengthTable
from indel.process import GaussianTransition, Schedule, posteriors, probabilities
from indel.process.counts import observed_limit, slot_laws

SCHEDULE = Schedule.paper(5, 8, 0.7)
DENSE = Schedule.paper(5, 8, 0.7, transition=lambda size, keep: GaussianTransition(size, 1.0))


def example(t: int, scale: float, dtype: torch.dtype) -> tuple[Noised, list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(t)
    x_0 = Batch(torch.randint(5, (6, 12), generator=generator), torch.tensor([12, 7, 0, 1, 12, 9]))
    times = torch.full((6,), t)
    noised = Noised.draw(SCHEDULE, x_0, times, generator=generator)
    seen = noised.seen
    token = torch.randn(*seen.tokens.shape, 6, generator=generator)
    deletions = scale * torch.randn(6, seen.width + 1, 13, generator=generator)
    logits = [each.to(dtype).requires_grad_() for each in (token, deletions)]
    return noised, logits


def deletions_and_gradient(terms: StepTerms, logits: list[torch.Tensor]):
    return terms.deletions, torch.autograd.grad(terms.deletions.sum(), logits[1])[0]


@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
@pytest.mark.parametrize("t", [1, 2, 5, 8])
def test_single_precision_loses_nothing(t: int, scale: float) -> None:
    """At scale 300 the sums underflow in float32, so that log space takes over."""
    noised, logits = example(t, scale, torch.float32)
    actual = deletions_and_gradient(step_terms(SCHEDULE, DenoiserOutput(*logits), noised), logits)
    exact = [each.detach().double().requires_grad_() for each in logits]
    dense = _dense_terms(SCHEDULE, DenoiserOutput(*exact), noised, None)
    for ours, expected in zip(actual, deletions_and_gradient(dense, exact), strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours.double(), expected, rtol=2e-5, atol=2e-5)


def test_columns_end_where_probability_does() -> None:
    jump = SCHEDULE.tables(torch.device("cpu")).jump
    t, deleted = torch.tensor([3, 8]), torch.tensor([[0, 1], [0, 2]])
    laws = slot_laws(jump, t, deleted, torch.tensor([[0.0, 0.5], [1.0, 0.0]]), 12, torch.float64)
    torch.testing.assert_close(
        laws.slots.sum(dim=-1), torch.ones(2, 2).double(), rtol=0, atol=1e-14
    )
    assert laws.slots.shape[-1] < observed_limit(jump, t, 12)
    assert laws.plain.shape == (2, 13, laws.slots.shape[-1])


@pytest.mark.parametrize("schedule", [SCHEDULE, DENSE], ids=["mixture", "dense"])
def test_edits_just_drawn_are_not_checked_again(
    schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []
    real = probabilities.log_prob_edits
    monkeypatch.setattr(
        posteriors, "log_prob_edits", lambda *given: checked.append(1) or real(*given)
    )

    def denoise(seen: Batch, t: torch.Tensor) -> DenoiserOutput:
        return DenoiserOutput(
            torch.zeros(*seen.tokens.shape, 6), torch.zeros(len(seen), seen.width + 1, 13)
        )

    generator, x_0 = torch.Generator().manual_seed(0), Batch.from_lists([[0, 1, 2], [3]])
    Objective(schedule)(denoise, LengthTable(20), x_0, generator=generator)
    assert not checked
    noised = Noised.draw(schedule, x_0, torch.tensor([5, 2]), generator=generator)
    step_terms(schedule, denoise(noised.seen, noised.t), noised)
    assert checked
