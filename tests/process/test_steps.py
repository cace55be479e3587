"""One step: its matrix by definition, and what a limit on the length makes of it."""

import itertools
import json
import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from indel import Batch
from indel.process import (
    AbsorbingTransition,
    IdentityTransition,
    Schedule,
    Step,
    UniformTransition,
    corrupt,
    corrupt_chain,
    corrupt_step,
    corruption,
    log_prob_within,
)
from indel.process.measures import Measure
from indel.randomness import Randomness
from oracles import OracleStep
from support.cases import library_step, oracle_steps
from support.frequencies import chi_square_p

EXACT = {"atol": 1e-12, "rtol": 0}


def defined(step: OracleStep) -> np.ndarray:
    """Q_t entry by entry, as Section 3.1 words it."""
    size = step.vocab_size
    ins, del_ = size, size + 1
    matrix = np.zeros((size + 2, size + 2))
    for x in range(size):
        for y in range(size):
            matrix[x, y] = (1 - step.delete) * step.transition[x][y]
        matrix[x, del_] = step.delete
        matrix[ins, x] = (1 - step.delete_inserted) * step.inserted[x]
    matrix[ins, del_] = step.delete_inserted
    return matrix


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 3).flatmap(oracle_steps))
def test_matrix_is_the_definition(oracle: OracleStep) -> None:
    step = library_step(oracle)
    matrix = step.matrix()
    assert matrix.dtype == torch.float64
    np.testing.assert_allclose(matrix, defined(oracle), **EXACT)
    size = oracle.vocab_size
    np.testing.assert_allclose(matrix[: size + 1].sum(dim=1), 1, **EXACT)
    assert not matrix[size + 1].any()
    assert not matrix[:, size].any()


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 3).flatmap(oracle_steps), st.floats(0, 1), st.floats(0, 1))
def test_push_is_a_row_vector_times_the_matrix(oracle: OracleStep, mass: float, ins: float) -> None:
    step, size = library_step(oracle), oracle.vocab_size
    regular = Measure.uniform(size, mass) + Measure.point(size, 0, 0.25)
    moved, deleted = step.push(regular, ins)
    row = np.array([*regular.dense().tolist(), ins, 0.0]) @ defined(oracle)
    np.testing.assert_allclose(moved.dense(), row[:size], **EXACT)
    assert deleted == pytest.approx(row[size + 1], abs=1e-12)


def test_what_is_left_out_has_the_documented_meaning() -> None:
    step = Step(0.1, 0.3, UniformTransition(4, 0.5))
    assert step.delete_inserted == 0.3
    assert step.vocab_size == 4
    matrix = step.matrix()
    assert matrix[4].tolist() == pytest.approx([0.7 / 4] * 4 + [0, 0.3])
    spared = Step(0.1, 0.3, UniformTransition(4, 0.5), delete_inserted=0.0).matrix()
    assert spared[4].tolist() == pytest.approx([0.25] * 4 + [0, 0])
    assert torch.equal(spared[:4], matrix[:4])


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 3).flatmap(oracle_steps))
def test_records_are_exact(oracle: OracleStep) -> None:
    step = library_step(oracle)
    record = step.to_dict()
    again = Step.from_dict(json.loads(json.dumps(record, allow_nan=False)))
    assert again.to_dict() == record
    assert torch.equal(again.matrix(), step.matrix())


def test_a_large_matrix_is_refused_but_the_step_is_not() -> None:
    step = Step(0.1, 0.2, AbsorbingTransition(100_000, 0.5, 7))
    with pytest.raises(ValueError, match=r"Step.matrix\(\) .*100000×100000 .*limited to 4096"):
        step.matrix()
    moved, deleted = step.push(Measure.point(100_000, 3), 1.0)
    assert deleted == pytest.approx(0.4)
    assert moved.mass == pytest.approx(1.6)


# ---------------------------------------------------------------- a limit on the length

STEP = OracleStep(0.35, 0.2, 0.4, ((0.7, 0.3), (0.4, 0.6)), (0.3, 0.7))
X_PREV = (0, 3, 2)
LIMIT, DRAWS = 4, 30_000


def restricted(limit: int) -> dict[tuple[int, ...], float]:
    """q(x_t | x_{t−1}) of all x_t up to the limit, renormalised."""
    every = [
        tokens
        for length in range(limit + 1)
        for tokens in itertools.product(range(4), repeat=length)
    ]
    probs = {x_t: oracles.step_prob(STEP, X_PREV, x_t) for x_t in every}
    total = sum(probs.values())
    return {x_t: prob / total for x_t, prob in probs.items()}


def limited_draws(step: OracleStep, limit: int, seed: int) -> Counter:
    x_prev = Batch(torch.tensor([X_PREV] * DRAWS), torch.full((DRAWS,), len(X_PREV)))
    schedule = Schedule([library_step(step)])
    generator = torch.Generator().manual_seed(seed)
    x_t = corrupt_step(schedule, x_prev, 1, generator=generator, max_length=limit)
    return Counter(map(tuple, x_t.to_lists()))


@pytest.mark.parametrize("limit", [2, 4])
def test_a_limited_step_draws_from_the_law_given_that_it_fits(limit: int) -> None:
    assert chi_square_p(limited_draws(STEP, limit, seed=1), restricted(limit)) > 1e-3


def test_the_same_test_sees_a_parameter_ten_per_cent_off() -> None:
    """With a limit the chance to insert shows less, but it shows."""
    other = OracleStep(STEP.insert * 1.1, *list(vars(STEP).values())[1:])
    assert chi_square_p(limited_draws(other, LIMIT, seed=1), restricted(LIMIT)) < 1e-3


def test_the_restricted_law_is_normalised_by_the_closed_form() -> None:
    total = sum(
        oracles.step_prob(STEP, X_PREV, x_t)
        for length in range(LIMIT + 1)
        for x_t in itertools.product(range(4), repeat=length)
    )
    schedule = Schedule([library_step(STEP)])
    logp = log_prob_within(schedule, Batch.from_lists([X_PREV]), 1, LIMIT)
    assert math.exp(logp.item()) == pytest.approx(total, abs=1e-12)


PAPER = Schedule.paper(6, 6, 0.9)
ROWS = [[0, 1, 2, 3, 4, 5], [], [3, 3], [1] * 4] * 30


def test_without_a_limit_all_of_these_are_exceeded() -> None:
    x_t, _ = corrupt(PAPER, Batch.from_lists(ROWS), 5, generator=torch.Generator().manual_seed(0))
    assert x_t.lengths.max() > 12


@pytest.mark.parametrize("limit", [6, 12])
def test_no_draw_exceeds_the_limit(limit: int) -> None:
    x_0 = Batch.from_lists(ROWS)
    generator = torch.Generator().manual_seed(limit)
    for t in (1, 5, 6):
        x_t, edits = corrupt(PAPER, x_0, t, generator=generator, max_length=limit)
        assert x_t.lengths.max() <= limit
        assert x_t.width == x_t.lengths.max()
        assert edits.source.shape == x_t.tokens.shape
        # All of x_0 is accounted for: deleted, or the source of something.
        used = (edits.source >= 0).sum(dim=1) + edits.deletions.sum(dim=1)
        assert torch.equal(used, x_0.lengths)
    x_t = corrupt_step(PAPER, x_0, 4, generator=generator, max_length=limit)
    assert x_t.lengths.max() <= limit
    chain = corrupt_chain(PAPER, x_0, generator=generator, max_length=limit)
    assert len(chain) == PAPER.num_steps + 1
    assert max(batch.lengths.max() for batch in chain) <= limit


def test_a_limit_that_is_never_reached_changes_nothing() -> None:
    x_0 = Batch.from_lists(ROWS)
    free = corrupt(PAPER, x_0, 3, generator=torch.Generator().manual_seed(3))
    far = corrupt(PAPER, x_0, 3, generator=torch.Generator().manual_seed(3), max_length=500)
    assert free.x_t.equals(far.x_t)
    assert torch.equal(free.edits.source, far.edits.source)


def test_a_limit_of_zero_leaves_the_empty_sequence() -> None:
    empty = Batch.from_lists([[], []])
    generator = torch.Generator().manual_seed(0)
    assert corrupt(PAPER, empty, 3, generator=generator, max_length=0).x_t.to_lists() == [[], []]
    assert corrupt_step(PAPER, empty, 3, generator=generator, max_length=0).to_lists() == [[], []]


def test_an_impossible_limit_on_a_step_is_refused() -> None:
    x_prev = Batch.from_lists([[0], [1, 7, 2, 3]])
    generator = torch.Generator().manual_seed(0)
    with pytest.raises(ValueError, match=r"max_length = 2 cannot be kept: .* 3 tokens"):
        corrupt_step(PAPER, x_prev, 2, generator=generator, max_length=2)
    # DELs are removed, so they do not count.
    assert corrupt_step(PAPER, x_prev, 2, generator=generator, max_length=3).lengths.max() <= 3


def test_an_impossible_limit_on_a_jump_is_refused() -> None:
    x_0 = Batch.from_lists([[0, 1, 2]])
    generator = torch.Generator().manual_seed(0)
    with pytest.raises(ValueError, match=r"max_length = 2 .*"):
        corrupt(PAPER, x_0, 1, generator=generator, max_length=2)
    with pytest.raises(ValueError, match=r"max_length = -1 .*"):
        corrupt(PAPER, x_0, 3, generator=generator, max_length=-1)


def test_and_at_once_where_it_can_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """At t = 1 nothing has gone yet, and no draw is needed to know it."""

    def no_draw(*_: object) -> None:
        pytest.fail("tried to draw")

    monkeypatch.setattr(corruption, "_draw_jump", no_draw)
    generator = torch.Generator().manual_seed(0)
    x_0 = Batch.from_lists([[0, 1, 2]])
    with pytest.raises(ValueError, match=r"max_length = 2 .*"):
        corrupt(PAPER, x_0, 1, generator=generator, max_length=2)


def test_nor_does_a_negative_limit_need_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corruption, "_draw_jump", lambda *_: pytest.fail("tried to draw"))
    generator = torch.Generator().manual_seed(0)
    with pytest.raises(ValueError, match=r"max_length = -1 .*"):
        corrupt(PAPER, Batch.from_lists([[0]]), 3, generator=generator, max_length=-1)


def test_no_sequences_at_all() -> None:
    nothing = Batch.from_lists([])
    generator = torch.Generator().manual_seed(0)
    for limit in (None, 3):
        assert len(corrupt(PAPER, nothing, 2, generator=generator, max_length=limit).x_t) == 0
        assert len(corrupt_step(PAPER, nothing, 2, generator=generator, max_length=limit)) == 0


def test_a_step_that_does_nothing_but_remove_dels() -> None:
    still = Schedule([Step(0.0, 0.0, IdentityTransition(3))])
    generator = torch.Generator().manual_seed(0)
    x_prev = Batch.from_lists([[0, 4, 2, 4], [4], [], [1, 1]])
    x_t = corrupt_step(still, x_prev, 1, generator=generator)
    assert x_t.to_lists() == [[0, 2], [], [], [1, 1]]


def most_noise(_: Randomness, *shape: int, dtype: torch.dtype) -> torch.Tensor:
    """The largest number below 1."""
    return torch.full(shape, 1 - 2.0**-53, dtype=dtype)


def test_the_last_step_deletes_whatever_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corruption, "uniform", most_noise)
    schedule = Schedule.paper(3, 10, 0.8)
    x_0 = Batch.from_lists([[0, 1, 2]])
    x_t, edits = corrupt(schedule, x_0, 10, generator=torch.Generator())
    assert x_t.tokens[edits.source >= 0].tolist() == [schedule.del_] * 3


def test_what_is_gone_for_sure_is_gone_whatever_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is deleted in step 2, so at t = 3 nothing of x_0 can be there, not even a DEL."""
    monkeypatch.setattr(corruption, "uniform", most_noise)
    half = UniformTransition(2, 0.5)
    schedule = Schedule([Step(0.3, 0.3, half), Step(0.0, 1.0, half), Step(0.0, 1.0, half)])
    tables = schedule.tables(torch.device("cpu")).jump
    assert tables.replace_del[3] == tables.keep[3] == tables.background.mass[3] == 0
    _, edits = corrupt(schedule, Batch.from_lists([[0, 1]]), 3, generator=torch.Generator())
    assert edits.deletions.sum() == 2
