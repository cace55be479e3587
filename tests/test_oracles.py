"""The oracles against chains listed one by one, and against the golden values."""

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from oracles import (
    OraclePosterior,
    OracleStep,
    Tokens,
    edit_probs,
    enumerate_chains,
    jump_parameters,
    jump_prob,
    posterior_given_edits,
    posterior_marginal,
    push_forward,
    source_of_chain,
    step_prob,
)

GOLDEN = json.loads((Path(__file__).parent / "data" / "golden-forward-process.json").read_text())


def as_step(fields: dict) -> OracleStep:
    rows = tuple(map(tuple, fields["transition"]))
    return OracleStep(**{**fields, "transition": rows, "inserted": tuple(fields["inserted"])})


def random_steps(
    seed: int, vocab_size: int, count: int, insert: float, delete: float, delete_inserted: float
) -> tuple[OracleStep, ...]:
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.ones(vocab_size), (count, vocab_size + 1)).tolist()
    return tuple(
        OracleStep(insert, delete, delete_inserted, tuple(map(tuple, law[:-1])), tuple(law[-1]))
        for law in laws
    )


def all_sequences(size: int, max_length: int) -> list[Tokens]:
    lengths = range(max_length + 1)
    return [x for length in lengths for x in itertools.product(range(size), repeat=length)]


def test_step_prob_by_hand():
    step = OracleStep(0.25, 0.1, 0.3, ((0.6, 0.4), (0.2, 0.8)), (0.5, 0.5))
    # 0 -> 1, DEL is dropped, INS -> DEL, and one INS is new: alpha (1-alpha)^3
    expected = (0.9 * 0.4) * 0.3 * 0.25 * 0.75**3
    assert step_prob(step, (0, 3, 2), (1, 2, 3)) == pytest.approx(expected, rel=1e-15)
    assert step_prob(step, (0, 3, 2), (1,)) == 0
    assert step_prob(step, (3,), ()) == 0.75


def test_no_step_is_the_identity():
    assert jump_prob((), (0, 1), (0, 1)) == 1
    assert jump_prob((), (0, 1), (1, 0)) == 0
    assert edit_probs((), (0, 1), (0, 1)) == {(0, 1): 1.0}
    insert, delete, replacement = jump_parameters((), 2)
    assert not insert.any()
    assert not delete.any()
    assert np.array_equal(replacement, np.eye(2, 4))


def test_one_jump_is_one_step():
    (step,) = random_steps(0, 2, 1, 0.3, 0.4, 0.2)
    for x_prev in [(), (0,), (1, 3, 2), (3, 2, 0)]:
        for x_t in all_sequences(4, 4):
            assert jump_prob((step,), x_prev, x_t) == pytest.approx(step_prob(step, x_prev, x_t))


@pytest.mark.parametrize(
    ("vocab_size", "x_0", "rates"),
    [
        (1, (0, 0), (0.02, 0.05, 0.03)),
        (2, (0, 1), (0.003, 0.02, 0.04)),
        (1, (), (0.05, 0.5, 0.5)),
        (1, (0,), (0.03, 0.5, 0.0)),
        (1, (0,), (0.03, 0.0, 0.5)),
    ],
)
def test_jump_prob_against_sequences_pushed_forward(vocab_size, x_0, rates):
    steps = random_steps(1, vocab_size, 3, *rates)
    law = {x_0: 1.0}
    for step in steps:
        law = push_forward(step, law, 1e-9)
    lost = 1 - sum(law.values())
    assert 0 <= lost < 1e-4
    # Only mass can be missing, and for all sequences together not more than what was cut.
    missing = [jump_prob(steps, x_0, x_t) - prob for x_t, prob in law.items()]
    assert min(missing) > -1e-14
    assert sum(missing) <= lost + 1e-12


def test_jump_prob_composes():
    """q(x_3 | x_0) = sum over x_2 of q(x_2 | x_0) q(x_3 | x_2), x_2 with its INS and DEL."""
    steps = random_steps(2, 1, 3, 0.01, 0.3, 0.1)
    middle = all_sequences(3, 6)
    for x_t in [(), (0,), (0, 1), (2, 0)]:
        total = sum(jump_prob(steps[:2], (0, 0), x) * jump_prob(steps[2:], x, x_t) for x in middle)
        assert total == pytest.approx(jump_prob(steps, (0, 0), x_t), rel=1e-6)


@pytest.mark.parametrize("rates", [(0.05, 0.2, 0.1), (0.05, 1.0, 1.0), (0.0, 0.3, 0.3)])
def test_total_mass_approaches_one(rates):
    steps = random_steps(3, 1, 3, *rates)
    by_length = [
        sum(jump_prob(steps, (0,), x) for x in itertools.product(range(3), repeat=length))
        for length in range(7)
    ]
    assert sum(by_length) <= 1 + 1e-14
    assert 1 - sum(by_length) < 1e-4
    left = 1 - np.cumsum(by_length)
    assert (np.diff(left) <= 1e-15).all()


def test_jump_parameters_generate_the_law_of_longer_sequences():
    """Two tokens to one: x_0[0] or x_0[1] is replaced, or both are deleted after an insert."""
    steps = random_steps(4, 2, 4, 0.4, 0.5, 0.2)
    insert, delete, swap = jump_parameters(steps, 2)
    stop = 1 - insert.sum()
    assert stop == pytest.approx(jump_prob(steps, (), ()), rel=1e-13)
    assert_allclose(delete + swap.sum(axis=1), 1, rtol=1e-13)
    for x, y in itertools.product(range(2), repeat=2):
        for z in range(4):
            one = swap[x, z] * stop * delete[y] + delete[x] * swap[y, z] * stop
            expected = stop * one + insert[z] * stop * delete[x] * delete[y]
            assert jump_prob(steps, (x, y), (z,)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("chain", "source"),
    [
        (((0, 1), (3, 1), (2, 1)), (-1, 1)),  # the INS comes after the DEL has gone
        (((0, 1), (3, 2, 1), (0, 1)), (0, 1)),  # a pair
        (((0, 1), (2, 3, 1), (0, 1)), (-1, 1)),  # an insert before a deletion is none
        (((0,), (0, 2), (3, 3, 2), (1,)), (0,)),  # past a DEL that was inserted
        (((0,), (2, 0), (3, 3, 2), (1,)), (0,)),  # the DEL on the left is the one with a source
        (((), (2,), (3, 2), (1,)), (-1,)),  # what was inserted and deleted offers nothing
        (((0,), (3, 2), (3, 2), (1,)), (0,)),  # the replacement is replaced
        (((0, 1), (3, 3, 2), (0,)), (1,)),  # only the nearest deletion is taken
        (((0,), (3, 2, 2), (0, 1)), (0, -1)),  # only the first insert takes it
        (((0, 0), (0, 3), (3, 2), (1,)), (0,)),  # a later deletion on the left
        (((0,), (3, 2)), (0, -1)),  # pairs are not formed before the DEL is removed
    ],
)
def test_source_of_chain(chain, source):
    assert source_of_chain(chain, 2) == source


# Rare insertions, so that the chains that are cut have less than 1e-10 together.
LISTED = [  # vocabulary size, rates, x_0, x_t, cut, number of steps
    (1, (0.001, 0.3, 0.2), (0, 0), (0,), 1e-14, 4),
    (1, (0.001, 0.4, 0.4), (0, 0), (0, 0), 1e-14, 4),
    (1, (0.01, 0.2, 0.3), (0, 0), (0, 2, 0), 1e-14, 3),
    (2, (0.005, 0.05, 0.02), (0, 1), (1, 0), 1e-13, 3),
    (2, (0.03, 0.2, 0.0), (0, 1, 0), (1, 3), 1e-14, 3),
    (2, (0.3, 0.3, 0.3), (1, 0), (2, 3, 0, 2, 1), 1e-14, 2),
    (1, (0.005, 0.4, 0.4), (0,), (1, 0, 0), 1e-14, 4),
    (2, (0.01, 0.5, 0.0), (), (1, 0), 1e-14, 4),
    (3, (0.2, 0.5, 0.5), (2, 0, 1), (1, 2, 3, 0), 1e-14, 1),
]


@pytest.mark.parametrize(("vocab_size", "rates", "x_0", "x_t", "cut", "count"), LISTED)
def test_edits_and_posteriors_against_listed_chains(vocab_size, rates, x_0, x_t, cut, count):
    steps = random_steps(5, vocab_size, count, *rates)
    listed = enumerate_chains(steps, x_0, x_t, cut)
    assert -1e-14 < listed.lost < 1e-10
    by_source: dict[Tokens, list] = {}
    for chain, prob in listed.chains:
        by_source.setdefault(source_of_chain(chain, vocab_size), []).append((chain, prob))
    total, exact = jump_prob(steps, x_0, x_t), edit_probs(steps, x_0, x_t)
    assert set(by_source) <= set(exact)
    slack = listed.lost + 1e-14
    check_posterior(posterior_marginal(steps, x_0, x_t), total, steps[-1], listed.chains, slack)
    for source, prob in exact.items():
        chains = by_source.get(source, [])
        assert sum(p for _, p in chains) == pytest.approx(prob, rel=0, abs=slack)
        given = posterior_given_edits(steps, x_0, x_t, source)
        check_posterior(given, prob, steps[-1], chains, slack)


def check_posterior(
    posterior: OraclePosterior, prob: float, step: OracleStep, chains: list, slack: float
):
    """Compare joint probabilities, so that the lost mass bounds every difference."""
    assert posterior.prob == pytest.approx(prob, rel=1e-13)
    previous = np.zeros_like(posterior.prob_previous)
    deletions = np.zeros_like(posterior.prob_deletions)
    log_step = 0.0
    for chain, weight in chains:
        values, runs = read_previous(chain[-2], step.vocab_size + 1)
        previous[range(len(values)), values] += weight
        deletions[range(len(runs)), runs] += weight
        log_step += weight * math.log(step_prob(step, chain[-2], chain[-1]))
    assert_allclose(posterior.prob_previous * prob, previous, rtol=0, atol=slack)
    assert_allclose(posterior.prob_deletions * prob, deletions, rtol=0, atol=slack)
    # No log q(x_t | x_{t-1}) here is below -50.
    assert posterior.expected_log_step * prob == pytest.approx(log_step, rel=0, abs=50 * slack)


def read_previous(x: Tokens, dead: int) -> tuple[list[int], list[int]]:
    """The tokens of x_{t-1} that are not DEL; the number of DELs before each and at the end."""
    values, runs = [], [0]
    for token in x:
        if token == dead:
            runs[-1] += 1
        else:
            values.append(token)
            runs.append(0)
    return values, runs


EXTREME = [(0.4, 0.5, 0.5), (0.4, 0.5, 0.0), (0.4, 0.0, 0.5), (0.0, 0.3, 0.3), (0.3, 0.0, 0.0)]


@pytest.mark.parametrize("rates", EXTREME)
@pytest.mark.parametrize("last_deletes_all", [False, True])
def test_sums(rates, last_deletes_all):
    rng = np.random.default_rng(6)
    steps = random_steps(7, 3, 4, *rates)
    if last_deletes_all:
        steps = (*steps[:-1], replace(steps[-1], insert=0.0, delete=1.0, delete_inserted=1.0))
    for _ in range(10):
        x_0 = tuple(rng.integers(0, 3, rng.integers(0, 4)).tolist())
        x_t = tuple(rng.integers(0, 5, rng.integers(0, 5)).tolist())
        x_t = (4,) * len(x_t) if last_deletes_all else x_t
        edits = edit_probs(steps, x_0, x_t)
        total = jump_prob(steps, x_0, x_t)
        assert sum(edits.values()) == pytest.approx(total, rel=1e-12, abs=0)
        if not edits:
            continue
        marginal = posterior_marginal(steps, x_0, x_t, max_deletions=60)
        given = {a: posterior_given_edits(steps, x_0, x_t, a, max_deletions=60) for a in edits}
        for posterior in [marginal, *given.values()]:
            assert_allclose(posterior.prob_previous.sum(axis=1), 1, rtol=1e-12)
            assert_allclose(posterior.prob_deletions.sum(axis=1), 1, rtol=1e-10)
        for name in ("prob_previous", "prob_deletions", "expected_log_step"):
            mixed = sum(getattr(given[a], name) * prob / total for a, prob in edits.items())
            assert_allclose(mixed, getattr(marginal, name), rtol=1e-12, atol=1e-14)


def test_cut_of_deletions_does_not_renormalise():
    steps = random_steps(8, 2, 3, 0.4, 0.5, 0.5)
    short = posterior_marginal(steps, (0, 1), (1,), max_deletions=1).prob_deletions
    full = posterior_marginal(steps, (0, 1), (1,), max_deletions=9).prob_deletions
    assert_allclose(short, full[:, :2], rtol=1e-14)
    assert (short.sum(axis=1) < 0.9999).all()


def test_impossible_conditions_are_errors():
    steps = random_steps(9, 2, 2, 0.2, 0.0, 0.0)
    with pytest.raises(ValueError, match="probability zero"):
        posterior_marginal(steps, (0, 1), ())
    with pytest.raises(ValueError, match="probability zero"):
        posterior_given_edits(steps, (0, 1), (0, 1), (1, 0))
    with pytest.raises(ValueError, match="regular"):
        edit_probs(steps, (2,), (0,))
    with pytest.raises(ValueError, match="one step"):
        posterior_marginal((), (0,), (0,))


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"K={case['vocab_size']}")
def test_golden_jumps(case):
    size = case["vocab_size"]
    steps = [as_step(fields) for fields in case["steps"]]
    for t, golden in enumerate(case["jumps"]):
        insert, delete, swap = jump_parameters(steps[:t], size)
        assert_allclose(insert, golden["insert"], rtol=0, atol=1e-14)
        assert_allclose(delete, golden["delete"], rtol=0, atol=1e-14)
        assert_allclose(swap[:, :size], golden["replace"], rtol=0, atol=1e-14)
        assert_allclose(swap[:, size], 0, rtol=0, atol=1e-14)
        assert_allclose(swap[:, size + 1], golden["replace_by_del"], rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("case", "golden"),
    [(case, golden) for case in GOLDEN for golden in case["alignments"]],
    ids=lambda fields: f"t={fields['t']}" if "t" in fields else f"K={fields['vocab_size']}",
)
def test_golden_alignments(case, golden):
    steps = [as_step(fields) for fields in case["steps"][: golden["t"]]]
    x_0, x_t = golden["x0"], golden["xt"]
    source = tuple(-1 if entry is None else entry for entry in golden["source"])
    prob = jump_prob(steps, x_0, x_t)
    assert math.log(prob) == pytest.approx(golden["log_q_xt_given_x0"], rel=1e-13)
    edits = edit_probs(steps, x_0, x_t)
    assert sum(edits.values()) == pytest.approx(prob, rel=1e-12)
    posterior = posterior_given_edits(steps, x_0, x_t, source)
    assert posterior.prob == pytest.approx(edits[source], rel=1e-13)
    previous = np.reshape(golden["previous_token"], (-1, case["vocab_size"] + 1))
    assert_allclose(posterior.prob_previous, previous, rtol=0, atol=1e-13)
    assert_allclose(posterior.prob_deletions, golden["deletions_before"], rtol=0, atol=1e-13)
    assert posterior.expected_log_step == pytest.approx(golden["expected_log_q_step"], abs=1e-12)
