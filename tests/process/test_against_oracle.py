"""Every probability of the forward process, pointwise against exact enumeration."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

import oracles
from indel import Batch
from indel.process import (
    Edits,
    edit_marginals,
    log_prob,
    log_prob_edits,
    log_prob_step,
    log_prob_within,
    posterior,
)
from oracles import OracleStep
from support.cases import Case, cases

TOLERANCE = {"atol": 1e-9, "rtol": 0}
UNIFORM = OracleStep(0.3, 0.2, 0.2, ((0.8, 0.2), (0.2, 0.8)), (0.5, 0.5))
LAST = OracleStep(0.0, 1.0, 1.0, ((1.0, 0.0), (0.0, 1.0)), (0.5, 0.5))
EDGES = [
    Case((UNIFORM,), (), ()),
    Case((UNIFORM, UNIFORM), (0, 1), ()),
    Case((UNIFORM, UNIFORM), (), (2, 2)),
    Case((UNIFORM, LAST), (0, 1), (3, 3, 3)),
    Case((UNIFORM, UNIFORM, LAST), (1,), (3,)),
]


def with_edges(test):
    for case in EDGES:
        test = example(case)(test)
    return test


@settings(deadline=None, max_examples=100)
@with_edges
@given(cases())
def test_jump_parameters(case: Case) -> None:
    for t in range(case.t + 1):
        insert, delete, replace = oracles.jump_parameters(case.steps[:t], case.steps[0].vocab_size)
        jump = case.schedule.jump(t)
        np.testing.assert_allclose(jump.insert, insert, **TOLERANCE)
        np.testing.assert_allclose(jump.delete, delete, **TOLERANCE)
        np.testing.assert_allclose(jump.replace, replace, **TOLERANCE)
        assert jump.stop == pytest.approx(1 - insert.sum(), abs=1e-9)


@settings(deadline=None, max_examples=200)
@with_edges
@given(cases())
def test_log_prob(case: Case) -> None:
    expected = oracles.jump_prob(case.steps, case.x_0, case.x_t)
    actual = log_prob(case.schedule, *case.batches(), case.t).exp().item()
    assert actual == pytest.approx(expected, abs=1e-9, rel=1e-9)


@settings(deadline=None, max_examples=200)
@given(cases(max_steps=1), st.data())
def test_log_prob_step(case: Case, data: st.DataObject) -> None:
    size = case.steps[0].vocab_size
    x_prev = tuple(data.draw(st.lists(st.integers(0, size + 1), max_size=4)))
    expected = oracles.step_prob(case.steps[0], x_prev, case.x_t)
    actual = log_prob_step(
        case.schedule, Batch.from_lists([x_prev]), Batch.from_lists([case.x_t]), 1
    )
    assert actual.exp().item() == pytest.approx(expected, abs=1e-9, rel=1e-9)


@settings(deadline=None, max_examples=100)
@with_edges
@given(cases())
def test_log_prob_edits(case: Case) -> None:
    expected = oracles.edit_probs(case.steps, case.x_0, case.x_t)
    x_0, x_t = case.batches()
    for source in increasing_sources(len(case.x_0), len(case.x_t)):
        edits = Edits.from_source(x_0, x_t, torch.tensor([source], dtype=torch.int64))
        actual = log_prob_edits(case.schedule, x_0, x_t, edits, case.t).exp().item()
        assert actual == pytest.approx(expected.get(source, 0.0), abs=1e-9, rel=1e-9)


@settings(deadline=None, max_examples=100)
@with_edges
@given(cases())
def test_posterior_given_edits(case: Case) -> None:
    possible = oracles.edit_probs(case.steps, case.x_0, case.x_t)
    assume(possible)
    x_0, x_t = case.batches()
    for source in possible:
        edits = Edits.from_source(x_0, x_t, torch.tensor([source], dtype=torch.int64))
        actual = posterior(case.schedule, x_0, x_t, edits, case.t, max_deletions=9)
        expected = oracles.posterior_given_edits(case.steps, case.x_0, case.x_t, source)
        assert_posterior(actual, expected, case)


@settings(deadline=None, max_examples=100)
@with_edges
@given(cases())
def test_posterior_with_edits_marginalised(case: Case) -> None:
    assume(oracles.jump_prob(case.steps, case.x_0, case.x_t) > 1e-12)
    actual = posterior(case.schedule, *case.batches(), None, case.t, max_deletions=9)
    expected = oracles.posterior_marginal(case.steps, case.x_0, case.x_t)
    assert_posterior(actual, expected, case)


@settings(deadline=None, max_examples=100)
@with_edges
@given(cases())
def test_edit_marginals(case: Case) -> None:
    weights = oracles.edit_probs(case.steps, case.x_0, case.x_t)
    total = sum(weights.values())
    assume(total > 1e-12)
    x_0, x_t = case.batches()
    marginals = edit_marginals(case.schedule, x_0, x_t, case.t)
    joint = np.zeros((len(case.x_t), len(case.x_0), len(case.x_0)))
    inserted = np.zeros(len(case.x_t))
    at_end = np.zeros(len(case.x_0) + 1)
    for source, weight in weights.items():
        edits = Edits.from_source(x_0, x_t, torch.tensor([source], dtype=torch.int64))
        deletions = edits.deletions[0].tolist()
        at_end[deletions[-1]] += weight / total
        for position, origin in enumerate(source):
            if origin < 0:
                inserted[position] += weight / total
            else:
                joint[position, origin, deletions[position]] += weight / total
    np.testing.assert_allclose(marginals.prob_inserted[0], inserted, **TOLERANCE)
    np.testing.assert_allclose(marginals.prob_source[0], joint.sum(axis=2), **TOLERANCE)
    np.testing.assert_allclose(marginals.prob_deletions_end[0], at_end, **TOLERANCE)
    if case.x_0:
        np.testing.assert_allclose(marginals.joint()[0], joint, **TOLERANCE)


@settings(deadline=None, max_examples=15)
@given(cases(max_steps=3))
def test_total_mass_up_to_a_length_is_the_analytic_tail(case: Case) -> None:
    """Σ_{|x_t| ≤ n} q(x_t|x_0) is the law of the length: binomial survivors, geometric inserts."""
    size, longest = case.steps[0].vocab_size, 4
    every = [
        tokens
        for length in range(longest + 1)
        for tokens in itertools.product(range(size + 2), repeat=length)
    ]
    x_0 = Batch.from_lists([case.x_0] * len(every))
    total = log_prob(case.schedule, x_0, Batch.from_lists(every), case.t).exp().sum().item()
    insert, delete, _ = oracles.jump_parameters(case.steps, size)
    stop, count = 1 - insert.sum(), len(case.x_0)
    expected = sum(
        stats.binom.pmf(emitted, count, 1 - delete[0])
        * stats.nbinom.cdf(longest - emitted, emitted + 1, stop)
        for emitted in range(min(count, longest) + 1)
    )
    assert total == pytest.approx(expected, abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(cases(max_steps=1), st.integers(0, 12))
def test_chance_to_keep_a_length_limit(case: Case, max_length: int) -> None:
    step = case.steps[0]
    actual = log_prob_within(case.schedule, Batch.from_lists([case.x_t]), 1, max_length).item()
    remaining = sum(token != step.vocab_size + 1 for token in case.x_t)
    expected = sum(
        math.comb(remaining + inserts, inserts)
        * step.insert**inserts
        * (1 - step.insert) ** (remaining + 1)
        for inserts in range(max_length - remaining + 1)
    )
    assert math.exp(actual) == pytest.approx(expected, abs=1e-12, rel=1e-9)
    assert actual <= 0


def test_default_cut_of_the_deletions_loses_nothing() -> None:
    case = Case((UNIFORM,) * 4, (0, 1, 0), (1,))
    result = posterior(case.schedule, *case.batches(), None, case.t)
    assert result.prob_deletions.sum(dim=-1).tolist()[0] == pytest.approx([1, 1], abs=1e-11)


def test_rows_of_a_batch_do_not_mix() -> None:
    """Sequences of different lengths and times together give what each gives alone."""
    steps = (UNIFORM,) * 3
    pairs = [((0, 1), (1, 2, 0), 1), ((), (2,), 2), ((1, 1, 0), (), 3), ((0,), (3, 0, 2, 1), 3)]
    x_0 = Batch.from_lists([pair[0] for pair in pairs])
    x_t = Batch.from_lists([pair[1] for pair in pairs])
    t = torch.tensor([pair[2] for pair in pairs])
    schedule = Case(steps, (), ()).schedule
    possible = log_prob(schedule, x_0, x_t, t) > -torch.inf
    assert possible.tolist() == [True, True, True, True]
    together = posterior(schedule, x_0, x_t, None, t, max_deletions=5)
    for number, (first, last, time) in enumerate(pairs):
        alone_0, alone_t = Batch.from_lists([first]), Batch.from_lists([last])
        alone = posterior(schedule, alone_0, alone_t, None, time, max_deletions=5)
        length = len(last)
        torch.testing.assert_close(together.prob_previous[number, :length], alone.prob_previous[0])
        torch.testing.assert_close(
            together.prob_deletions[number, : length + 1], alone.prob_deletions[0]
        )
        assert not together.prob_previous[number, length:].any()
        assert not together.prob_deletions[number, length + 1 :].any()


def increasing_sources(x_0: int, x_t: int) -> list[tuple[int, ...]]:
    """Every way to give the tokens of x_t sources, in order."""
    return [
        source
        for source in itertools.product(range(-1, x_0), repeat=x_t)
        if all(a < b for a, b in itertools.pairwise([s for s in source if s >= 0]))
    ]


def assert_posterior(actual, expected, case: Case) -> None:
    kept = [token != case.steps[0].vocab_size for token in case.x_t]
    np.testing.assert_allclose(
        actual.prob_previous[0][kept].numpy().reshape(expected.prob_previous.shape),
        expected.prob_previous,
        **TOLERANCE,
    )
    np.testing.assert_allclose(
        actual.prob_deletions[0][[*kept, True]], expected.prob_deletions, **TOLERANCE
    )
    assert actual.expected_log_step.item() == pytest.approx(expected.expected_log_step, abs=1e-9)
