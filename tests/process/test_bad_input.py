"""Bad input is a ValueError that names the argument, the value and what is allowed.

What has the wrong type or rank is stopped by the run-time checks of the tests before the library
sees it; run as a script, without those checks, this file prints what users get instead.
"""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from indel import Batch, RowSeeds
from indel.process import (
    AbsorbingTransition,
    Edits,
    GaussianTransition,
    IdentityTransition,
    MatrixTransition,
    MixtureTransition,
    NeighborTransition,
    Schedule,
    Step,
    UniformTransition,
    corrupt,
    corrupt_chain,
    corrupt_step,
    edit_marginals,
    log_prob,
    log_prob_edits,
    log_prob_step,
    log_prob_within,
    posterior,
    sample_edits,
    step_parents,
    summarise,
)
from indel.process.measures import Measure
from indel.process.transitions import transition_from_dict

# K = 3: INS = 3, DEL = 4, EOS = 5.
SCHEDULE = Schedule.paper(3, 4, 0.5)
X_0 = Batch.from_lists([[0, 1, 2], [1]])
X_T = Batch.from_lists([[0, 4, 3], [2]])
MARKED = Batch.from_lists([[0], [1, 4]])
INSERTING = Batch.from_lists([[0, 3], [1]])
ENDED = Batch.from_lists([[0, 5], [1]])
HALF = UniformTransition(3, 0.5)
EDITS = Edits.from_source(X_0, X_T, torch.tensor([[0, 1, -1], [0, -1, -1]]))
Case = tuple[str, Callable[[], object], list[str]]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def int64(values: list) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def source(values: list) -> Edits:
    return Edits.from_source(X_0, X_T, int64(values))


PROBABILITIES: list[Case] = [
    ("insert < 0", lambda: Step(-0.1, 0.1, HALF), ["insert", "-0.1", "[0, 1)"]),
    ("insert = 1", lambda: Step(1.0, 0.1, HALF), ["insert", "1.0", "[0, 1)"]),
    ("insert is NaN", lambda: Step(math.nan, 0.1, HALF), ["insert", "nan", "[0, 1)"]),
    ("delete > 1", lambda: Step(0.1, 1.5, HALF), ["delete", "1.5", "[0, 1]"]),
    ("delete is NaN", lambda: Step(0.1, math.nan, HALF), ["delete", "nan", "[0, 1]"]),
    ("delete is inf", lambda: Step(0.1, math.inf, HALF), ["delete", "inf", "[0, 1]"]),
    (
        "delete_inserted < 0",
        lambda: Step(0.1, 0.1, HALF, delete_inserted=-1e-9),
        ["delete_inserted", "-1e-09", "[0, 1]"],
    ),
    ("keep > 1", lambda: UniformTransition(3, 1.1), ["prob_keep", "1.1", "[0, 1]"]),
    ("keep is NaN", lambda: AbsorbingTransition(3, math.nan, 0), ["prob_keep", "nan", "[0, 1]"]),
    ("keep < 0", lambda: NeighborTransition(3, {}, -0.5), ["prob_keep", "-0.5", "[0, 1]"]),
    (
        "keep of a mixture",
        lambda: MixtureTransition(2.0, Measure.zero(3)),
        ["prob_keep", "2.0", "[0, 1]"],
    ),
    ("rate > 1", lambda: Schedule.paper(3, 4, 1.5), ["rate", "1.5", "[0, 1]"]),
    ("rate is NaN", lambda: Schedule.paper(3, 4, math.nan), ["rate", "nan", "[0, 1]"]),
    (
        "delete_inserted of a schedule",
        lambda: Schedule.paper(3, 4, 0.5, delete_inserted=2.0),
        ["delete_inserted", "2.0", "[0, 1]"],
    ),
    (
        "row sum",
        lambda: MatrixTransition([[0.5, 0.5], [0.5, 0.6]]),
        ["matrix[1]", "1.1", "sum to 1"],
    ),
    (
        "negative entry",
        lambda: MatrixTransition([[1.0, 0.0], [1.5, -0.5]]),
        ["matrix[1, 1]", "-0.5", "probability"],
    ),
    (
        "NaN entry",
        lambda: MatrixTransition([[1.0, 0.0], [math.nan, 1.0]]),
        ["matrix[1, 0]", "nan", "probability"],
    ),
    (
        "sum of inserted",
        lambda: Step(0.1, 0.1, HALF, torch.tensor([0.5, 0.25, 0.5])),
        ["inserted", "1.25", "sum to 1"],
    ),
    (
        "negative inserted",
        lambda: Step(0.1, 0.1, HALF, torch.tensor([0.5, -0.25, 0.75])),
        ["inserted[1]", "-0.25", "probability"],
    ),
    (
        "inserted of a schedule",
        lambda: Schedule.paper(3, 4, 0.5, inserted=torch.tensor([0.5, 0.25, 0.5])),
        ["inserted", "1.25", "sum to 1"],
    ),
]
SIZES: list[Case] = [
    ("no tokens", lambda: UniformTransition(0, 0.5), ["vocab_size", "0", "≥ 1"]),
    ("negative size", lambda: IdentityTransition(-2), ["vocab_size", "-2", "≥ 1"]),
    ("a truth value as size", lambda: IdentityTransition(True), ["vocab_size", "True", "integer"]),
    ("one step", lambda: Schedule.paper(3, 1, 0.5), ["num_steps", "1", "≥ 2"]),
    ("mask", lambda: AbsorbingTransition(3, 0.5, 3), ["mask", "3", "0…2"]),
    ("negative mask", lambda: AbsorbingTransition(3, 0.5, -1), ["mask", "-1", "0…2"]),
    ("sigma = 0", lambda: GaussianTransition(3, 0.0), ["sigma", "0.0", "positive"]),
    ("sigma is NaN", lambda: GaussianTransition(3, math.nan), ["sigma", "nan", "positive"]),
    ("band", lambda: GaussianTransition(3, 1.0, -1), ["band", "-1", "at least 0"]),
    ("a key", lambda: NeighborTransition(3, {3: [0]}, 0.5), ["neighbors", "3", "0…2"]),
    ("a neighbour", lambda: NeighborTransition(3, {1: [7]}, 0.5), ["neighbors[1]", "7", "0…2"]),
    ("itself", lambda: NeighborTransition(3, {1: [0, 1]}, 0.5), ["neighbors[1]", "1 itself"]),
    ("not square", lambda: MatrixTransition([[0.5, 0.5]]), ["matrix", "(1, 2)", "square"]),
    (
        "size of inserted",
        lambda: Step(0.1, 0.1, HALF, torch.tensor([0.5, 0.5])),
        ["inserted", "(2,)", "3 tokens"],
    ),
    (
        "transitions that do not compose",
        lambda: HALF.then(IdentityTransition(4)),
        ["3", "4", "compose"],
    ),
    (
        "dense ones either",
        lambda: MatrixTransition([[1.0]]).then(HALF),
        ["1", "3", "compose"],
    ),
    ("size of prob", lambda: HALF.apply(torch.ones(2, 4)), ["prob", "(2, 4)", "3 entries"]),
    (
        "size of prob, dense",
        lambda: MatrixTransition([[1.0]]).apply(torch.ones(2)),
        ["prob", "(2,)", "1 entries"],
    ),
]
NO_DATA = ["regular tokens", "INS and DEL cannot be in the data"]
TOKENS: list[Case] = [
    (
        "DEL in x_0",
        lambda: corrupt(SCHEDULE, MARKED, 1, generator=generator()),
        ["x_0", "token 4", "row 1, position 1", "0…2", *NO_DATA],
    ),
    (
        "INS in x_0",
        lambda: corrupt(SCHEDULE, INSERTING, 1, generator=generator()),
        ["x_0", "token 3", "row 0, position 1", "0…2", *NO_DATA],
    ),
    (
        "EOS in x_0",
        lambda: corrupt(SCHEDULE, ENDED, 1, generator=generator()),
        ["x_0", "token 5", "row 0, position 1", "0…2"],
    ),
    (
        "DEL at the start of a chain",
        lambda: corrupt_chain(SCHEDULE, MARKED, generator=generator()),
        ["x_0", "token 4", "0…2"],
    ),
    ("log_prob", lambda: log_prob(SCHEDULE, MARKED, X_T, 1), ["x_0", "token 4", "0…2"]),
    (
        "EOS in x_prev",
        lambda: corrupt_step(SCHEDULE, ENDED, 1, generator=generator()),
        ["x_prev", "token 5", "row 0, position 1", "0…2, INS = 3 or DEL = 4"],
    ),
    (
        "EOS in x_t",
        lambda: log_prob(SCHEDULE, X_0, ENDED, 1),
        ["x_t", "token 5", "row 0, position 1", "0…2, INS = 3 or DEL = 4"],
    ),
    ("step to EOS", lambda: log_prob_step(SCHEDULE, X_0, ENDED, 1), ["x_t", "token 5", "INS = 3"]),
    ("from EOS", lambda: log_prob_step(SCHEDULE, ENDED, X_0, 1), ["x_prev", "token 5", "INS = 3"]),
    ("within", lambda: log_prob_within(SCHEDULE, ENDED, 1, 9), ["x_prev", "token 5", "INS = 3"]),
    ("marginals", lambda: edit_marginals(SCHEDULE, X_0, ENDED, 1), ["x_t", "token 5", "INS = 3"]),
    (
        "sampled edits",
        lambda: sample_edits(SCHEDULE, MARKED, X_T, 1, generator=generator()),
        ["x_0", "token 4", "0…2"],
    ),
    (
        "edits",
        lambda: log_prob_edits(SCHEDULE, X_0, ENDED, EDITS, 1),
        ["x_t", "token 5", "INS = 3"],
    ),
    (
        "posterior",
        lambda: posterior(SCHEDULE, X_0, ENDED, None, 1),
        ["x_t", "token 5", "INS = 3"],
    ),
    ("start of a summary", lambda: summarise([MARKED], 3), ["chain[0]", "token 4", "0…2"]),
]
TIMES: list[Case] = [
    ("t = 0 in a step", lambda: SCHEDULE.step(0), ["t ", "0", "1…4"]),
    ("t > T in a step", lambda: SCHEDULE.step(5), ["t ", "5", "1…4"]),
    ("t < 0 in a jump", lambda: SCHEDULE.jump(-1), ["t ", "-1", "0…4"]),
    ("t > T in a jump", lambda: SCHEDULE.jump(5), ["t ", "5", "0…4"]),
    (
        "t > T",
        lambda: corrupt(SCHEDULE, X_0, int64([1, 5]), generator=generator()),
        ["t ", "5", "0…4"],
    ),
    ("t < 0", lambda: corrupt(SCHEDULE, X_0, -1, generator=generator()), ["t ", "-1", "0…4"]),
    (
        "t = 0",
        lambda: corrupt_step(SCHEDULE, X_0, int64([0, 1]), generator=generator()),
        ["t ", "0", "1…4"],
    ),
    ("posterior of t = 0", lambda: posterior(SCHEDULE, X_0, X_0, None, 0), ["t ", "0", "1…4"]),
    ("log_prob at T + 1", lambda: log_prob(SCHEDULE, X_0, X_T, 5), ["t ", "5", "0…4"]),
    ("log_prob_step at 0", lambda: log_prob_step(SCHEDULE, X_0, X_T, 0), ["t ", "0", "1…4"]),
    ("log_prob_within at 0", lambda: log_prob_within(SCHEDULE, X_0, 0, 9), ["t ", "0", "1…4"]),
    (
        "one t too many",
        lambda: corrupt(SCHEDULE, X_0, int64([1, 1, 1]), generator=generator()),
        ["t ", "(3,)", "each of the 2 sequences"],
    ),
    (
        "32 bits",
        lambda: corrupt(SCHEDULE, X_0, torch.ones(2, dtype=torch.int32), generator=generator()),
        ["t ", "torch.int32", "int64"],
    ),
]
PAIRS: list[Case] = [
    (
        "x_0 and x_t",
        lambda: log_prob(SCHEDULE, X_0, Batch.from_lists([[1]]), 1),
        ["equally many", "'x_0': 2", "'x_t': 1"],
    ),
    (
        "x_prev and x_t",
        lambda: log_prob_step(SCHEDULE, X_0, Batch.from_lists([[1]]), 1),
        ["equally many", "'x_prev': 2", "'x_t': 1"],
    ),
    (
        "sources",
        lambda: Edits.from_source(X_0, Batch.from_lists([[1]]), int64([[0]])),
        ["equally many", "'x_0': 2", "'x_t': 1"],
    ),
    (
        "a chain",
        lambda: summarise([X_0, Batch.from_lists([[1]])], 3),
        ["equally many", "'x_prev': 2", "'x_t': 1"],
    ),
    (
        "no step",
        lambda: step_parents(X_0, Batch.from_lists([[0, 1, 2], [1, 1]]), 3),
        ["row 1", "2", "1", "not INS", "not DEL"],
    ),
    ("no chain", lambda: summarise([], 3), ["chain", "at least x_0"]),
    (
        "not increasing",
        lambda: source([[1, 0, -1], [0, -1, -1]]),
        ["source[0, 1] = 0", "−1 or", "3"],
    ),
    (
        "twice the same",
        lambda: source([[1, -1, 1], [0, -1, -1]]),
        ["source[0, 2] = 1", "−1 or", "3"],
    ),
    ("beyond x_0", lambda: source([[0, 1, 2], [1, -1, -1]]), ["source[1, 0] = 1", "length 1"]),
    ("below −1", lambda: source([[0, -2, 2], [0, -1, -1]]), ["source[0, 1] = -2", "−1 or"]),
    ("width of source", lambda: source([[0, 1], [0, -1]]), ["source", "(2, 3)", "(2, 2)"]),
    (
        "32 bits",
        lambda: Edits.from_source(X_0, X_T, torch.full((2, 3), -1, dtype=torch.int32)),
        ["source", "torch.int32", "int64"],
    ),
    (
        "impossible edits",
        lambda: posterior(SCHEDULE, X_0, X_T, EDITS, 1),
        ["row 0", "edits", "t = 1"],
    ),
    (
        "impossible x_t",
        lambda: sample_edits(SCHEDULE, X_0, Batch.from_lists([[3], []]), 1, generator=generator()),
        ["row 0", "x_t", "x_0"],
    ),
]
LIMITS: list[Case] = [
    ("within", lambda: log_prob_within(SCHEDULE, X_0, 1, -1), ["max_length", "-1", "at least 0"]),
    (
        "deletions",
        lambda: posterior(SCHEDULE, X_0, X_0, None, 1, max_deletions=-1),
        ["max_deletions", "-1", "at least 0"],
    ),
    (
        "step",
        lambda: corrupt_step(SCHEDULE, X_0, 1, generator=generator(), max_length=2),
        ["max_length = 2", "3 tokens", "cannot be kept"],
    ),
    (
        "chain",
        lambda: corrupt_chain(SCHEDULE, X_0, generator=generator(), max_length=2),
        ["max_length = 2", "3 tokens", "cannot be kept"],
    ),
    (
        "row seeds",
        lambda: corrupt(SCHEDULE, X_0, 1, generator=RowSeeds(int64([1, 2, 3]))),
        ["generator", "3 row seeds", "2 sequences"],
    ),
]
GROUPS = [PROBABILITIES, SIZES, TOKENS, TIMES, PAIRS, LIMITS]


def named(cases: list[Case]) -> list:
    return [pytest.param(*case, id=case[0]) for case in cases]


@pytest.mark.parametrize(("_name", "call", "fragments"), named(sum(GROUPS, [])))  # noqa: RUF017
def test_bad_input_is_refused_with_the_reason(_name: str, call, fragments: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        call()
    assert_says(str(error.value), fragments)


def assert_says(message: str, fragments: list[str]) -> None:
    for fragment in fragments:
        assert fragment in message, f"{message!r} does not say {fragment!r}"


# ---------------------------------------------------------------- wrong types and ranks

WRONG_TYPES: list[Case] = [
    ("a float as token", lambda: Batch.from_lists([[1, 1.0]]), ["row 0, position 1", "1.0", "≥ 0"]),
    (
        "rows and lengths",
        lambda: Batch(torch.zeros(2, 3, dtype=torch.int64), int64([1])),
        ["tokens", "lengths", "(2, 3)", "(1,)"],
    ),
    (
        "one row",
        lambda: Batch(int64([1, 2]), int64([2])),
        ["tokens", "(batch, length)", "(2,)"],
    ),
    (
        "lengths as floats",
        lambda: Batch(int64([[1, 2]]), torch.tensor([2.0])),
        ["lengths", "torch.int64", "torch.float32"],
    ),
    (
        "seeds as floats",
        lambda: RowSeeds(torch.tensor([1.0])),
        ["seeds", "int64", "torch.float32"],
    ),
    ("a table of seeds", lambda: RowSeeds(int64([[1]])), ["seeds", "one entry a row", "(1, 1)"]),
    (
        "t as floats",
        lambda: corrupt(SCHEDULE, X_0, torch.tensor([1.0, 2.0]), generator=generator()),
        ["t ", "int64", "torch.float32"],
    ),
    (
        "a table of t",
        lambda: corrupt(SCHEDULE, X_0, int64([[1], [2]]), generator=generator()),
        ["t ", "one entry for each of the 2 sequences", "(2, 1)"],
    ),
    (
        "t without an axis",
        lambda: corrupt(SCHEDULE, X_0, torch.tensor(1), generator=generator()),
        ["t ", "one entry for each of the 2 sequences", "()"],
    ),
    (
        "sources as floats",
        lambda: Edits.from_source(X_0, X_T, torch.zeros(2, 3)),
        ["source", "int64", "torch.float32"],
    ),
    (
        "a row of sources",
        lambda: Edits.from_source(X_0, X_T, int64([0, -1, -1])),
        ["source", "(2, 3)", "(3,)"],
    ),
    ("a vector as matrix", lambda: MatrixTransition([1.0]), ["matrix", "square", "(1,)"]),
    ("no matrix", lambda: MatrixTransition([]), ["matrix", "square", "(0,)"]),
    ("a cube", lambda: MatrixTransition([[[1.0]]]), ["matrix", "square", "(1, 1, 1)"]),
    (
        "a table of inserted",
        lambda: Step(0.1, 0.1, HALF, torch.ones(1, 3) / 3),
        ["inserted", "3 tokens", "(1, 3)"],
    ),
    ("a float as size", lambda: IdentityTransition(3.0), ["vocab_size", "3.0", "integer"]),
    ("half a step", lambda: Schedule.paper(3, 2.5, 0.5), ["num_steps", "2.5", "integer"]),
    ("no record", lambda: Schedule.from_dict([1]), ["no record of a schedule"]),
    ("steps of no record", lambda: Schedule.from_dict({"steps": [1]}), ["no record of a schedule"]),
]


@pytest.fixture(scope="module")
def seen_by_users() -> dict[str, list[str]]:
    """For each case the name of its exception, and the message, without run-time type checks."""
    run = subprocess.run(
        [sys.executable, "-W", "error", str(Path(__file__))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize(("name", "_call", "fragments"), named(WRONG_TYPES))
def test_wrong_types_are_refused_with_the_reason(
    name: str, _call, fragments: list[str], seen_by_users: dict[str, list[str]]
) -> None:
    kind, message = seen_by_users[name]
    assert kind == "ValueError", message
    assert_says(message, fragments)


def what_happens(call: Callable[[], object]) -> list[str]:
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]


# ---------------------------------------------------------------- records and edits

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
        lambda: summarise([X_0, Batch.from_lists([[0, 1, 5], [1]])], 3),
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


if __name__ == "__main__":
    print(json.dumps({name: what_happens(call) for name, call, _ in WRONG_TYPES}))
