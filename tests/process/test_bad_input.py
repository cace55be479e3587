"""Bad input is a ValueError that names the argument, the value and what is allowed.

What has the wrong type or rank is stopped by the run-time checks of the tests before the library
sees it; run as a script, without those checks, this file prints what users get instead.
"""

import math

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
    summarize,
)
from indel.process.measures import Measure
from support.bad_inputs import (
    EDITS,
    ENDED,
    HALF,
    INSERTING,
    MARKED,
    SCHEDULE,
    X_0,
    X_T,
    Case,
    assert_says,
    generator,
    int64,
    named,
    source,
)

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
    ("rate is a flag", lambda: Schedule.paper(3, 4, True), ["rate", "True", "[0, 1]"]),
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
    ("start of a summary", lambda: summarize([MARKED], 3), ["chain[0]", "token 4", "0…2"]),
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
        lambda: summarize([X_0, Batch.from_lists([[1]])], 3),
        ["equally many", "'x_prev': 2", "'x_t': 1"],
    ),
    (
        "no step",
        lambda: step_parents(X_0, Batch.from_lists([[0, 1, 2], [1, 1]]), 3),
        ["row 1", "2", "1", "not INS", "not DEL"],
    ),
    ("no chain", lambda: summarize([], 3), ["chain", "at least x_0"]),
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


@pytest.mark.parametrize(("_name", "call", "fragments"), named(sum(GROUPS, [])))  # noqa: RUF017
def test_bad_input_is_refused_with_the_reason(_name: str, call, fragments: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        call()
    assert_says(str(error.value), fragments)
