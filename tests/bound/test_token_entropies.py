"""The fast token loss equals the dense one, value and gradient."""

import pytest
import torch

from indel import Batch
from indel.bound.noised import Noised
from indel.bound.objective import _dense_terms, step_terms
from indel.model.denoiser import DenoiserOutput
from indel.model.reverse import EditWeights
from indel.process import (
    AbsorbingTransition,
    GaussianTransition,
    Schedule,
    UniformTransition,
)

SIZE, STEPS = 5, 6
SCHEDULES = {
    "uniform": Schedule.paper(SIZE, STEPS, 0.6),
    "in place": Schedule.paper(SIZE, STEPS, 0.0),
    "absorbing": Schedule.paper(
        SIZE, STEPS, 0.5, transition=lambda size, keep: AbsorbingTransition(size, keep, 2)
    ),
    "absorbing in place": Schedule.paper(
        SIZE, STEPS, 0.0, transition=lambda size, keep: AbsorbingTransition(size, keep, 2)
    ),
    "given inserts": Schedule.paper(
        SIZE, STEPS, 0.7, inserted=torch.tensor([0.4, 0.3, 0.2, 0.1, 0.0]), delete_inserted=0.0
    ),
    "one token": Schedule.paper(1, STEPS, 0.6, transition=UniformTransition),
}
DENSE = Schedule.paper(
    SIZE, STEPS, 0.6, transition=lambda size, keep: GaussianTransition(size, 1.0)
)


def example(schedule: Schedule, t: int, seed: int = 0) -> tuple[Noised, list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    rows = [[i % schedule.vocab_size for i in range(n)] for n in (0, 1, 3, 7, 7, 5)]
    x_0 = Batch.from_lists(rows)
    times = torch.full((len(x_0),), t)
    noised = Noised.draw(schedule, x_0, times, generator=generator)
    seen = noised.seen
    logits = [
        torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in (
            (*seen.tokens.shape, schedule.vocab_size + 1),
            (len(seen), seen.width + 1, 9),
        )
    ]
    return noised, logits


@pytest.mark.parametrize("choice", [EditWeights.normalized, EditWeights.joint])
@pytest.mark.parametrize("t", range(1, STEPS + 1))
@pytest.mark.parametrize("name", SCHEDULES)
def test_fast_terms_equal_dense_terms(name: str, t: int, choice) -> None:
    schedule = SCHEDULES[name]
    noised, logits = example(schedule, t)
    weights = choice(schedule.tables(torch.device("cpu")).jump)
    output = DenoiserOutput(*logits)
    fast = step_terms(schedule, output, noised, weights)
    dense = _dense_terms(schedule, output, noised, weights)
    for part, expected in zip(fast, dense, strict=True):
        torch.testing.assert_close(part, expected, atol=1e-9, rtol=1e-9)
    grads = torch.autograd.grad(fast.total.sum(), logits)
    expected_grads = torch.autograd.grad(dense.total.sum(), logits)
    for grad, expected in zip(grads, expected_grads, strict=True):
        torch.testing.assert_close(grad, expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 200.0])
@pytest.mark.parametrize("t", range(1, STEPS + 1))
@pytest.mark.parametrize("name", [*SCHEDULES, "dense"])
def test_gradients_are_finite_in_single_precision(name: str, t: int, scale: float) -> None:
    schedule = SCHEDULES.get(name, DENSE)
    noised, logits = example(schedule, t)
    single = [(each.detach().float() * scale).requires_grad_() for each in logits]
    terms = step_terms(schedule, DenoiserOutput(*single), noised)
    assert terms.total.isfinite().all()
    for grad in torch.autograd.grad(terms.total.sum(), single):
        assert grad.isfinite().all()
