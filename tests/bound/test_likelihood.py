"""Bounds against enumerated chains, against each other, and over a data set in any batches."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch

import oracles
from indel import Batch, RowSeeds
from indel.bound.estimates import BoundEstimate, BoundParts, Moments, SequenceBounds
from indel.bound.likelihood import (
    accumulate,
    chain_bound,
    closed_form_bound,
    evaluate,
    importance_weighted_bound,
)
from indel.bound.objective import Objective
from indel.model import Denoiser
from indel.model.reverse import EditWeights, ReverseStep
from indel.process import Schedule, Step, UniformTransition
from oracles import OracleStep
from support.cases import library_step
from support.denoisers import tiny_denoiser

Tokens = tuple[int, ...]

STEPS = (
    OracleStep(0.25, 0.2, 0.3, ((0.9, 0.1), (0.2, 0.8)), (0.7, 0.3)),
    OracleStep(0.3, 0.3, 0.3, ((0.8, 0.2), (0.1, 0.9)), (0.4, 0.6)),
    OracleStep(0.2, 0.4, 0.1, ((0.6, 0.4), (0.4, 0.6)), (0.5, 0.5)),
    OracleStep(0.0, 1.0, 1.0, ((1.0, 0.0), (0.0, 1.0)), (0.5, 0.5)),
)
SCHEDULE = Schedule(library_step(step) for step in STEPS)
INS, DEL = SCHEDULE.ins, SCHEDULE.del_
ROWS = 4000


@cache
def tiny() -> Denoiser:
    return make(SCHEDULE)


def make(schedule: Schedule, **settings: Any) -> Denoiser:
    return tiny_denoiser(schedule, **{"width": 16, "max_deletions": None, **settings})


def sequences(longest: int) -> list[Tokens]:
    return [
        tokens
        for length in range(longest + 1)
        for tokens in itertools.product(range(4), repeat=length)
    ]


def repeated(tokens: Tokens, rows: int = ROWS) -> Batch:
    return Batch.from_lists([tokens] * rows)


def seeds(seed: int, rows: int = ROWS) -> RowSeeds:
    return RowSeeds(torch.arange(rows) + 1_000_000 * seed)


def mean_and_error(values: torch.Tensor) -> tuple[float, float]:
    return float(values.mean()), float(values.std() / len(values) ** 0.5)


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


# ---------------------------------------------------------------- no limit


PAPER = Schedule.paper(3, 5, 0.6)


@pytest.mark.parametrize(("schedule", "x_0"), [(SCHEDULE, (0, 1)), (PAPER, (2, 0, 1)), (PAPER, ())])
@pytest.mark.parametrize("marginalise", [False, True])
def test_closed_form_and_chains_agree(schedule: Schedule, x_0: Tokens, marginalise: bool) -> None:
    denoiser = make(schedule, seed=3)
    rows = 1500
    with torch.no_grad():
        chains = chain_bound(
            denoiser, repeated(x_0, rows), generator=seeds(2, rows), max_length=None
        )
        closed = closed_form_bound(
            denoiser, repeated(x_0, rows), generator=seeds(3, rows), marginalise=marginalise
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


# ---------------------------------------------------------------- a data set


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


def test_standard_errors_cover_the_mean_as_often_as_they_should() -> None:
    # 200 small data sets with two random t a sequence: |error| < 2 s.e. in about 95 %.
    bounds = sampled((0, 1), 3, 2)
    exact = every_chain((0, 1), 3).expected_bound()
    sets = bounds.nats.reshape(200, 20)
    distances = (sets.mean(dim=1) - exact) / (sets.std(dim=1) / 20**0.5)
    assert 0.89 < float((distances.abs() < 2).double().mean()) < 0.99


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


# ---------------------------------------------------------------- bad input


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
