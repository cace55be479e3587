"""Without insertions and deletions the model is D3PM / multinomial diffusion, term by term."""

import itertools

import numpy as np
import pytest
import torch

from indel import Batch
from indel.bound.noised import Noised
from indel.bound.objective import length_term, step_terms
from indel.model.denoiser import DenoiserOutput
from indel.model.length import LengthTable
from indel.model.reverse import EditWeights
from indel.process import (
    AbsorbingTransition,
    GaussianTransition,
    MatrixTransition,
    Schedule,
    Transition,
    UniformTransition,
)

SIZE, STEPS = 3, 4


def cyclic(size: int, keep: float) -> Transition:
    """Not symmetric, and with zeros."""
    eye = torch.eye(size, dtype=torch.float64)
    return MatrixTransition(keep * eye + (1 - keep) * eye.roll(1, dims=1))


KINDS = {
    "uniform": UniformTransition,
    "absorbing": lambda size, keep: AbsorbingTransition(size, keep, 2),
    "gaussian": lambda size, keep: GaussianTransition(size, 1.5 - keep),
    "cyclic": lambda size, keep: cyclic(size, max(keep, 0.1)),
}
SCHEDULES = {
    kind: Schedule.paper(SIZE, STEPS, 0.0, transition=family) for kind, family in KINDS.items()
}
X_0 = [(0, 2, 1, 1, 0), (2,), (), (1, 1, 2)]


# --- D3PM, in a few lines -----------------------------------------------------------------------


def matrices(schedule: Schedule) -> list[np.ndarray]:
    """A_1 … A_{T−1}; the step T makes one absorbing DEL of everything, as a fourth state would."""
    each = [schedule.step(t).transition.matrix().numpy() for t in range(1, STEPS)]
    return [*each, np.ones((SIZE, 1))]


def d3pm_term(
    matrices: list[np.ndarray], logits: np.ndarray, x: int, z: int, t: int
) -> tuple[float, float]:
    """KL(q(y|z,x) ‖ p_θ(y|z)), p_θ(y|z) ∝ Σ_x̃ p̃(x̃) q(y|x̃) q(z|y), and the shift of one token."""
    before = np.linalg.multi_dot([np.eye(SIZE), *matrices[: t - 1], np.eye(SIZE)])
    last = matrices[t - 1][:, z if t < STEPS else 0]
    guess = np.exp(logits - logits.max())
    model = (guess / guess.sum() @ before) * last
    model /= model.sum()
    truth = before[x] * last
    prob_z = truth.sum()
    truth /= prob_z
    seen = truth > 0
    divergence = np.sum(truth[seen] * np.log(truth[seen] / model[seen]))
    shift = np.log(prob_z) - np.sum(truth[seen] * np.log(before[x, seen]))
    return float(divergence), float(shift)


def example(kind: str, t: int, seed: int = 0) -> tuple[Noised, DenoiserOutput]:
    schedule = SCHEDULES[kind]
    generator = torch.Generator().manual_seed(seed)
    x_0 = Batch.from_lists(X_0)
    noised = Noised.draw(schedule, x_0, torch.full((len(X_0),), t), generator=generator)
    width = noised.x_t.width
    logits = torch.randn(len(X_0), width, SIZE + 1, generator=generator, dtype=torch.float64)
    deletions = torch.randn(len(X_0), width + 1, 4, generator=generator, dtype=torch.float64)
    return noised, DenoiserOutput(logits * 2, deletions * 5)


@pytest.mark.parametrize("choice", [EditWeights.normalized, EditWeights.joint])
@pytest.mark.parametrize("t", range(1, STEPS + 1))
@pytest.mark.parametrize("kind", KINDS)
def test_each_term_is_that_of_d3pm(kind: str, t: int, choice) -> None:
    schedule = SCHEDULES[kind]
    noised, output = example(kind, t)
    assert noised.x_t.lengths.tolist() == noised.x_0.lengths.tolist()
    weights = choice(schedule.tables(torch.device("cpu")).jump)
    for known in (noised, noised.with_edits(None)):
        terms = step_terms(schedule, output, known, weights)
        for row, (source, target) in enumerate(zip(X_0, noised.x_t.to_lists(), strict=True)):
            parts = [
                d3pm_term(matrices(schedule), logits[:SIZE], x, z, t)
                for x, z, logits in zip(
                    source, target, output.logits_token[row].numpy()[: len(source)], strict=True
                )
            ]
            divergence, shift = np.sum(parts, axis=0) if parts else (0.0, 0.0)
            assert terms.total[row].item() == pytest.approx(divergence + shift, abs=1e-9)
        assert terms.deletions.abs().max() == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_shift_sums_away(kind: str) -> None:
    """Σ_t E[log q(x_t|x_0) − log q(x_{t−1}|x_0)] = log q(x_T|x_0) = 0: both bounds are one number.

    Summed over every value of one token, as the tokens are independent given the logits.
    """
    schedule, table = SCHEDULES[kind], LengthTable(4)
    steps = matrices(schedule)
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(STEPS, SIZE + 2, SIZE + 1))  # of t and of the token seen
    for x in range(SIZE):
        ours = kl = 0.0
        for t in range(1, STEPS + 1):
            law = np.linalg.multi_dot([np.eye(SIZE)[x], *steps[:t], np.eye(1 if t == STEPS else 3)])
            values = [schedule.del_] if t == STEPS else np.flatnonzero(law).tolist()
            rows = len(values)
            x_0, x_t = Batch.from_lists([[x]] * rows), Batch.from_lists([[z] for z in values])
            output = DenoiserOutput(
                torch.from_numpy(logits[t - 1, values][:, None]),
                torch.zeros(rows, 2, 3, dtype=torch.float64),
            )
            times = torch.full((rows,), t)
            terms = step_terms(schedule, output, Noised.of(schedule, x_0, x_t, None, times))
            prob = law[[0]] if t == STEPS else law[values]
            ours += float(prob @ terms.total.numpy())
            for z, weight in zip(values, prob, strict=True):
                kl += weight * d3pm_term(steps, logits[t - 1, z, :SIZE], x, z, t)[0]
        assert ours == pytest.approx(kl, abs=1e-9)
    lengths = torch.tensor([0, 1, 4])
    expected = -table.log_prob(lengths)
    torch.testing.assert_close(length_term(schedule, table, lengths), expected)


@pytest.mark.parametrize("t", range(1, STEPS + 1))
@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_is_not_asked_for(kind: str, t: int) -> None:
    """The logits of insertions and deletions change nothing and get no gradient."""
    schedule = SCHEDULES[kind]
    noised, output = example(kind, t)
    other = DenoiserOutput(
        output.logits_token.index_fill(2, torch.tensor([SIZE]), 50.0).requires_grad_(),
        (output.logits_deletions.flip(2) * 3).requires_grad_(),
    )
    terms = step_terms(schedule, output, noised)
    changed = step_terms(schedule, other, noised)
    for part, again in zip(terms, changed, strict=True):
        torch.testing.assert_close(again, part)
    token, deletions = torch.autograd.grad(changed.total.sum(), other)
    assert not token[..., SIZE].any()
    assert not deletions.any()
    assert bool(token[..., :SIZE].isfinite().all())


@pytest.mark.parametrize("kind", KINDS)
def test_a_perfect_network_makes_the_bound_tight(kind: str) -> None:
    """When p̃ is certain of x_0 the terms sum to 0: p_θ(x_0 | length) = 1, not a nat is missing."""
    schedule = SCHEDULES[kind]
    steps = matrices(schedule)
    for x in range(SIZE):
        total = 0.0
        for t, z in itertools.product(range(1, STEPS + 1), range(SIZE)):
            law = np.linalg.multi_dot([np.eye(SIZE)[x], *steps[: min(t, STEPS - 1)], np.eye(SIZE)])
            # At T there is DEL alone, whatever was there before.
            seen, prob = (schedule.del_, 1.0 / SIZE) if t == STEPS else (z, law[z])
            if prob == 0.0:
                continue
            logits = torch.full((1, 1, SIZE + 1), -60.0, dtype=torch.float64)
            logits[..., x] = 0.0
            output = DenoiserOutput(logits, torch.zeros(1, 2, 1, dtype=torch.float64))
            x_0, x_t = Batch.from_lists([[x]]), Batch.from_lists([[seen]])
            noised = Noised.of(schedule, x_0, x_t, None, torch.tensor([t]))
            total += prob * step_terms(schedule, output, noised).total.item()
        assert total == pytest.approx(0.0, abs=1e-9)
