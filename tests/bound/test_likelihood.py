"""Bounds against enumerated chains, against each other, and over a data set in any batches."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import pytest
import torch

import oracles
from indel import Batch
from indel.bound.estimates import SequenceBounds
from indel.bound.likelihood import (
    chain_bound,
    closed_form_bound,
    importance_weighted_bound,
)
from indel.model import Denoiser
from indel.model.reverse import EditWeights, ReverseStep
from indel.process import Schedule
from oracles import OracleStep
from support.cases import library_step
from support.chain_cases import (
    DEL,
    INS,
    PAPER,
    ROWS,
    SCHEDULE,
    STEPS,
    Tokens,
    make,
    mean_and_error,
    repeated,
    seeds,
    sequences,
    tiny,
)

# ---------------------------------------------------------------- every chain


@dataclass(frozen=True)
class EveryChain:
    """All chains x_0 … x_T of sequences up to a limit; tables are [x_{t−1}, x_t]."""

    prob_forward: list[np.ndarray]
    """q′, normalised over the sequences within the limit: no formula for P(|x_t| ≤ max)."""
    logp_reverse: list[np.ndarray]
    logp_last: np.ndarray
    """log p_θ(|x_T|), −inf for what is not DEL alone."""
    start: int
    prob_jump: list[np.ndarray]
    """q(x_t | x_0) for t = 0 … T, which knows no limit."""

    @classmethod
    def of(
        cls, denoiser: Denoiser, x_0: Tokens, limit: int, steps: Sequence[OracleStep] = STEPS
    ) -> "EveryChain":
        every = sequences(limit)
        forward = [
            np.array(
                [[oracles.step_prob(step, before, after) for after in every] for before in every]
            )
            for step in steps
        ]
        prob_forward = [table / table.sum(axis=1, keepdims=True) for table in forward]
        last = [len(x) if set(x) <= {DEL} else None for x in every]
        known = denoiser.length.log_prob(torch.arange(limit + 1)).tolist()
        return cls(
            prob_forward,
            [reverse_table(denoiser, t, every) for t in range(1, len(steps) + 1)],
            np.array([-np.inf if length is None else known[length] for length in last]),
            every.index(x_0),
            [
                np.array([oracles.jump_prob(steps[:t], x_0, x_t) for x_t in every])
                for t in range(len(steps) + 1)
            ],
        )

    def expected_bound(self) -> float:
        """E_q′[log q′(x_{1:T} | x_0) / p_θ(x_{0:T})], from the marginals of q′."""
        law = np.zeros(len(self.logp_last))
        law[self.start] = 1.0
        total = 0.0
        for forward, reverse in zip(self.prob_forward, self.logp_reverse, strict=True):
            pairs = law[:, None] * forward
            happens = pairs > 0
            total += (pairs[happens] * (np.log(forward[happens]) - reverse[happens])).sum()
            law = pairs.sum(axis=0)
        return total - (law[law > 0] * self.logp_last[law > 0]).sum()

    def expected_terms(self) -> list[float]:
        """E_q′ log q′(x_t|x_{t−1}) q(x_{t−1}|x_0) / (q(x_t|x_0) p_θ(x_{t−1}|x_t)) for each t."""
        law, terms = self.prob_jump[0], []
        for t, (forward, reverse) in enumerate(
            zip(self.prob_forward, self.logp_reverse, strict=True), start=1
        ):
            pairs = law[:, None] * forward
            rows, columns = pairs.nonzero()
            ratio = forward[rows, columns] * self.prob_jump[t - 1][rows]
            logp = np.log(ratio / self.prob_jump[t][columns]) - reverse[rows, columns]
            terms.append(float((pairs[rows, columns] * logp).sum()))
            law = pairs.sum(axis=0)
        return terms

    def divergences(self) -> list[float]:
        """Σ q(x_t|x_0) KL(q(x_{t−1}|x_t,x_0) ‖ p_θ(x_{t−1}|x_t)), by Bayes, and that of x_T."""
        found, law = [], np.eye(len(self.logp_last))[self.start]
        for forward, reverse in zip(self.prob_forward, self.logp_reverse, strict=True):
            pairs = law[:, None] * forward
            law = pairs.sum(axis=0)
            total = 0.0
            for x_t in law.nonzero()[0]:
                posterior = pairs[:, x_t] / law[x_t]
                able = posterior > 0
                ratio = np.log(posterior[able]) - reverse[able, x_t]
                divergence = float((posterior[able] * ratio).sum())
                assert divergence > -1e-6
                total += law[x_t] * divergence
            found.append(total)
        able = law > 0
        last = float((law[able] * (np.log(law[able]) - self.logp_last[able])).sum())
        return [*found, last]

    def negative_log_prob(self) -> float:
        """−log Σ p_θ(x_{0:T}) over the chains within the limit; p_θ itself knows no limit."""
        prob = np.exp(self.logp_last)
        for reverse in reversed(self.logp_reverse):
            prob = np.exp(reverse) @ prob
        return -float(np.log(prob[self.start]))


def reverse_table(denoiser: Denoiser, t: int, every: list[Tokens]) -> np.ndarray:
    """log p_θ(x_{t−1} | x_t); −inf for an x_t that q cannot produce: only DELs are left at T."""
    table = np.full((len(every), len(every)), -np.inf)
    possible = [
        n for n, x in enumerate(every) if t < denoiser.schedule.num_steps or set(x) <= {DEL}
    ]
    x_prev = Batch.from_lists([before for before in every for _ in possible])
    x_t = Batch.from_lists([every[n] for _ in every for n in possible])
    seen, times = x_t.without(INS), torch.full((len(x_t),), t)
    with torch.no_grad():
        logp = ReverseStep.of(denoiser.schedule, denoiser(seen, times), seen, times).log_prob(
            x_prev
        )
    table[:, possible] = logp.reshape(len(every), len(possible)).numpy()
    return table


@cache
def every_chain(x_0: Tokens, limit: int) -> EveryChain:
    return EveryChain.of(tiny(), x_0, limit)


@cache
def sampled(x_0: Tokens, limit: int, num_times: int | None = None) -> SequenceBounds:
    with torch.no_grad():
        return chain_bound(
            tiny(), repeated(x_0), generator=seeds(1), max_length=limit, num_times=num_times
        )


CASES = [((), 2), ((1,), 2), ((0, 1), 2), ((0, 1), 3)]


@pytest.mark.parametrize(("x_0", "limit"), CASES)
def test_sampled_chains_have_the_enumerated_mean(x_0: Tokens, limit: int) -> None:
    mean, error = mean_and_error(sampled(x_0, limit).nats)
    assert abs(mean - every_chain(x_0, limit).expected_bound()) < 4 * error
    assert error < 0.1


@pytest.mark.parametrize(("x_0", "limit"), CASES)
def test_terms_of_each_step_have_the_enumerated_means(x_0: Tokens, limit: int) -> None:
    bounds, exact = sampled(x_0, limit), every_chain(x_0, limit)
    for t, term in enumerate(exact.expected_terms()):
        mean, error = mean_and_error(bounds.by_time[:, t])
        assert abs(mean - term) < 4 * error + 1e-6, t + 1
    total = bounds.by_time.sum(dim=1) + bounds.parts.length
    torch.testing.assert_close(total, bounds.nats, rtol=1e-9, atol=1e-9)


# Sequences that never grow: all of them can be listed, and no limit is needed.
SHRINKING = tuple(replace(step, insert=0.0) for step in STEPS)


@pytest.mark.parametrize("x_0", [(), (1,), (0, 1), (0, 1, 1)])
def test_steps_without_a_limit_are_divergences(x_0: Tokens) -> None:
    denoiser = make(Schedule(library_step(step) for step in SHRINKING))
    exact = EveryChain.of(denoiser, x_0, len(x_0), SHRINKING)
    divergences = exact.divergences()
    assert min(divergences) > -1e-6
    assert sum(divergences) == pytest.approx(exact.expected_bound(), abs=1e-5)
    with torch.no_grad():
        bounds = chain_bound(denoiser, repeated(x_0), generator=seeds(5), max_length=None)
    sampled_terms = torch.cat([bounds.by_time, bounds.parts.length[:, None]], dim=1)
    for t, divergence in enumerate(divergences):
        mean, error = mean_and_error(sampled_terms[:, t])
        assert abs(mean - divergence) < 4 * error + 1e-5, t + 1


@pytest.mark.parametrize(("x_0", "limit"), CASES)
def test_chain_weights_are_unbiased_for_the_probability(x_0: Tokens, limit: int) -> None:
    # E_q′[p_θ(x_{0:T}) / q′(x_{1:T}|x_0)] is the probability of x_0 by chains within the limit.
    exact = math.exp(-every_chain(x_0, limit).negative_log_prob())
    mean, error = mean_and_error((-sampled(x_0, limit).nats).exp())
    assert abs(mean - exact) < 4 * error
    assert error < 0.1 * exact


@pytest.mark.parametrize("x_0", [(), (1,), (0, 1)])
def test_bound_is_a_bound(x_0: Tokens) -> None:
    chains, more_chains = every_chain(x_0, 2), every_chain(x_0, 3)
    # p_θ is not restricted: more chains add to the probability that the bound is about.
    assert chains.expected_bound() > chains.negative_log_prob()
    assert chains.negative_log_prob() > more_chains.negative_log_prob()
    assert more_chains.expected_bound() > more_chains.negative_log_prob()
    mean, error = mean_and_error(sampled(x_0, 2).nats)
    assert mean - 4 * error > more_chains.negative_log_prob()


@pytest.mark.parametrize(("x_0", "limit"), [((0, 1), 2), ((0, 1), 3)])
def test_the_limit_must_be_paid_for(x_0: Tokens, limit: int) -> None:
    bounds = sampled(x_0, limit)
    assert bool((bounds.parts.limit > 0).all())
    mean, error = mean_and_error(bounds.nats - bounds.parts.limit)
    assert mean + 4 * error < every_chain(x_0, limit).expected_bound()
    exact = every_chain(x_0, limit)
    if limit == 2:  # So tight that what looks like a bound is none.
        assert mean + 4 * error < exact.negative_log_prob()


@pytest.mark.parametrize("num_times", [1, 2, 3])
def test_random_times_leave_the_mean_alone(num_times: int) -> None:
    bounds = sampled((0, 1), 3, num_times)
    mean, error = mean_and_error(bounds.nats)
    assert abs(mean - every_chain((0, 1), 3).expected_bound()) < 4 * error
    assert int(bounds.evaluated.sum(dim=1).max()) <= num_times
    # Each t is expected equally often, though 3 does not divide 4.
    if num_times == 1:
        share = bounds.evaluated.double().mean(dim=0)
        assert (share - 0.25).abs().max() < 4 * (0.25 * 0.75 / ROWS) ** 0.5


def test_random_times_are_one_from_each_part() -> None:
    # With two times of four, one is 1 or 2 and the other 3 or 4.
    evaluated = sampled((0, 1), 3, 2).evaluated
    assert bool((evaluated[:, :2].sum(dim=1) == 1).all())
    assert bool((evaluated[:, 2:].sum(dim=1) == 1).all())


def test_random_times_weigh_the_terms_that_they_evaluate() -> None:
    bounds = sampled((0, 1), 3, 2)
    total = 2 * bounds.by_time.sum(dim=1) + bounds.parts.length
    torch.testing.assert_close(bounds.nats, total, rtol=1e-9, atol=1e-9)
    # It is 2.03 times as much; terms with log q(x_t|x_0) − log q(x_{t−1}|x_0) scatter more.
    assert bounds.nats.std() < 2.2 * sampled((0, 1), 3).nats.std()


# ---------------------------------------------------------------- importance weights


FEW_ROWS = 600


@cache
def with_chains(num_chains: int) -> SequenceBounds:
    x_0, generator = repeated((0, 1), FEW_ROWS), seeds(1, FEW_ROWS)
    with torch.no_grad():
        return importance_weighted_bound(
            tiny(), x_0, generator=generator, max_length=2, num_chains=num_chains
        )


def test_importance_weights_tighten_the_bound() -> None:
    exact = every_chain((0, 1), 2)
    chains = [1, 3, 9]
    estimates = {k: mean_and_error(with_chains(k).nats) for k in chains}
    for few, many in itertools.pairwise(chains):
        (loose, loose_error), (tight, tight_error) = estimates[few], estimates[many]
        assert tight + 4 * math.hypot(loose_error, tight_error) < loose
    for mean, error in estimates.values():
        assert exact.negative_log_prob() - 4 * error < mean < exact.expected_bound() + 4 * error


def test_one_chain_is_the_chain_bound() -> None:
    one, chain = with_chains(1), sampled((0, 1), 2)
    torch.testing.assert_close(one.nats, chain.nats[:FEW_ROWS], rtol=1e-6, atol=1e-6)
    assert float(one.parts.importance.abs().max()) < 1e-12


def test_importance_weights_are_averaged() -> None:
    x_0, generator = repeated((0, 1), FEW_ROWS), seeds(1, FEW_ROWS)
    with torch.no_grad():
        each = [chain_bound(tiny(), x_0, generator=generator, max_length=2).nats for _ in range(3)]
    assert not torch.equal(each[0], each[1])
    direct = -torch.stack(each).neg().exp().mean(dim=0).log()
    torch.testing.assert_close(with_chains(3).nats, direct, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("schedule", "x_0"), [(SCHEDULE, (0, 1)), (PAPER, (2, 0, 1)), (PAPER, ())])
@pytest.mark.parametrize("marginalize", [False, True])
def test_closed_form_and_chains_agree(schedule: Schedule, x_0: Tokens, marginalize: bool) -> None:
    denoiser = make(schedule, seed=3)
    rows = 1500
    with torch.no_grad():
        chains = chain_bound(
            denoiser, repeated(x_0, rows), generator=seeds(2, rows), max_length=None
        )
        closed = closed_form_bound(
            denoiser, repeated(x_0, rows), generator=seeds(3, rows), marginalize=marginalize
        )
    assert bool((chains.parts.limit == 0).all())
    pairs = {"total": (chains.nats, closed.nats)} | {
        name: (getattr(chains.parts, name), getattr(closed.parts, name))
        for name in ("tokens", "deletions", "forward", "length")
    }
    for name, (by_chains, by_formula) in pairs.items():
        (first, error), (second, other_error) = map(mean_and_error, (by_chains, by_formula))
        # The law of |x_T| is exact, but the table is float32.
        assert abs(first - second) < 4 * math.hypot(error, other_error) + 1e-5, name


def test_a_generous_limit_is_no_limit() -> None:
    x_0 = repeated((0, 1), 50)
    with torch.no_grad():
        free = chain_bound(tiny(), x_0, generator=seeds(1, 50), max_length=None)
        loose = chain_bound(tiny(), x_0, generator=seeds(1, 50), max_length=60)
    torch.testing.assert_close(free.nats, loose.nats, rtol=1e-9, atol=1e-9)


def test_other_edit_weights_are_another_model() -> None:
    joint = EditWeights.joint(SCHEDULE.tables(torch.device("cpu")).jump)
    x_0 = repeated((0, 1), 20)
    bounds: list[Callable[..., SequenceBounds]] = [
        partial(chain_bound, max_length=3),
        closed_form_bound,
        partial(importance_weighted_bound, max_length=3, num_chains=2),
    ]
    for bound in bounds:
        with torch.no_grad():
            usual = bound(tiny(), x_0, generator=seeds(1, 20))
            other = bound(tiny(), x_0, generator=seeds(1, 20), weights=joint)
        assert not torch.allclose(usual.parts.tokens, other.parts.tokens)
        torch.testing.assert_close(usual.parts.forward, other.parts.forward)


def test_standard_errors_cover_the_mean_as_often_as_they_should() -> None:
    # 200 small data sets with two random t a sequence: |error| < 2 s.e. in about 95 %.
    bounds = sampled((0, 1), 3, 2)
    exact = every_chain((0, 1), 3).expected_bound()
    sets = bounds.nats.reshape(200, 20)
    distances = (sets.mean(dim=1) - exact) / (sets.std(dim=1) / 20**0.5)
    assert 0.89 < float((distances.abs() < 2).double().mean()) < 0.99
