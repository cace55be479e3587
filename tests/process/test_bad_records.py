"""Records, edits and other input that was once let through."""

import math

import pytest

from indel import Batch
from indel.process import (
    Edits,
    MatrixTransition,
    MixtureTransition,
    Step,
    log_prob_edits,
    posterior,
    step_parents,
    summarize,
)
from indel.process.measures import Measure
from indel.process.transitions import transition_from_dict
from support.bad_inputs import EDITS, HALF, SCHEDULE, X_0, X_T, Case, assert_says, int64, named

LET_THROUGH_ONCE: list[Case] = [
    (
        "a mixture whose rows do not sum to 1",
        lambda: MixtureTransition(0.5, Measure.uniform(3, 0.25)),
        ["drawn", "0.75", "sum to 1"],
    ),
    (
        "a record of such a mixture",
        lambda: transition_from_dict(
            {"prob_keep": 0.5, "drawn": {"vocab_size": 3, "uniform": 0.25, "points": []}}
        ),
        ["drawn", "0.75", "sum to 1"],
    ),
    (
        "a record with a point outside",
        lambda: transition_from_dict(
            {"prob_keep": 0.5, "drawn": {"vocab_size": 3, "uniform": 0.0, "points": [[7, 0.5]]}}
        ),
        ["7", "0…2"],
    ),
    (
        "a record with a negative weight",
        lambda: transition_from_dict(
            {"prob_keep": 1.0, "drawn": {"vocab_size": 3, "uniform": 0.5, "points": [[1, -0.5]]}}
        ),
        ["-0.5", "at least 0"],
    ),
    (
        "a record of other inserts",
        lambda: Step.from_dict(Step(0.1, 0.1, HALF).to_dict() | {"inserted": WRONG_INSERTED}),
        ["inserted", "3 tokens", "4"],
    ),
    (
        "a token that a transition does not have",
        lambda: HALF.likelihood(int64([0, 3])),
        ["token", "3", "0…2"],
    ),
    (
        "a negative token",
        lambda: MatrixTransition([[0.5, 0.5], [0.25, 0.75]]).likelihood(int64([-1])),
        ["token", "-1", "0…1"],
    ),
    (
        "EOS in a chain",
        lambda: summarize([X_0, Batch.from_lists([[0, 1, 5], [1]])], 3),
        ["chain[1]", "token 5", "INS = 3"],
    ),
    (
        "EOS in a step",
        lambda: step_parents(X_0, Batch.from_lists([[0, 1, 5], [1]]), 3),
        ["x_t", "token 5", "INS = 3"],
    ),
    (
        "edits of a narrower x_t are broadcast",
        lambda: log_prob_edits(
            SCHEDULE, X_0, X_T, Edits(int64([[0], [0]]), int64([[0, 2]] * 2)), 2
        ),
        ["source", "(2, 3)", "(2, 1)"],
    ),
    (
        "edits whose sources fall",
        lambda: log_prob_edits(
            SCHEDULE, X_0, X_T, Edits(int64([[1, 0, -1], [0, -1, -1]]), EDITS.deletions), 2
        ),
        ["source[0, 1] = 0"],
    ),
    (
        "edits whose sources do not exist",
        lambda: posterior(
            SCHEDULE, X_0, X_T, Edits(int64([[0, 7, -1], [0, -1, -1]]), EDITS.deletions), 2
        ),
        ["source[0, 1] = 7"],
    ),
    (
        "deletions that do not follow from the sources",
        lambda: log_prob_edits(SCHEDULE, X_0, X_T, Edits(EDITS.source, EDITS.deletions + 1), 2),
        ["deletions", "source"],
    ),
]
WRONG_INSERTED = {"vocab_size": 4, "uniform": 1.0, "points": []}


@pytest.mark.parametrize(("_name", "call", "fragments"), named(LET_THROUGH_ONCE))
def test_input_that_was_once_let_through(_name: str, call, fragments: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        call()
    assert_says(str(error.value), fragments)


LET_THROUGH_AT_FIRST: list[Case] = [
    (
        "a record whose given part is too short",
        lambda: transition_from_dict({"prob_keep": 0.5, "drawn": record_of([0.5, 0.5])}),
        ["given", "2", "3"],
    ),
    (
        "a record whose given part is no distribution",
        lambda: transition_from_dict({"prob_keep": 0.5, "drawn": record_of([1.5, -0.5, 0.0])}),
        ["given", "-0.5", "probability"],
    ),
    (
        "weights that are no numbers",
        lambda: MixtureTransition(0.5, Measure.uniform(3, math.nan)),
        ["nan", "at least 0"],
    ),
    (
        "negative weights",
        lambda: MixtureTransition(1.0, Measure.uniform(3, 0.5) + Measure.point(3, 1, -0.5)),
        ["-0.5", "at least 0"],
    ),
]


def record_of(given: list[float]) -> dict:
    return {"vocab_size": 3, "uniform": 0.0, "points": [], "given": [[0.5, given]]}


@pytest.mark.parametrize(("_name", "call", "fragments"), named(LET_THROUGH_AT_FIRST))
def test_more_input_that_was_once_let_through(_name: str, call, fragments: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        call()
    assert_says(str(error.value), fragments)
