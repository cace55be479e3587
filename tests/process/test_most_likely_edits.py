"""The most likely edit summary is the best one of all that the oracle lists."""

import math

import pytest
import torch
from hypothesis import assume, given, settings

from indel import Batch
from indel.process import Schedule, log_prob_edits, most_likely_edits
from oracles import edit_probs
from support.cases import Case, cases


@settings(max_examples=25, deadline=None)
@given(cases(max_steps=3))
def test_no_edits_are_likelier(case: Case) -> None:
    probs = edit_probs(case.steps, case.x_0, case.x_t)
    assume(probs)
    x_0, x_t = case.batches()
    edits = most_likely_edits(case.schedule, x_0, x_t, case.t)
    found = tuple(edits.source[0, : len(case.x_t)].tolist())
    best = max(probs.values())
    assert probs[found] >= best * (1 - 1e-5)
    logp = log_prob_edits(case.schedule, x_0, x_t, edits, case.t)
    assert float(logp) == pytest.approx(math.log(best), abs=1e-5)


def test_rows_do_not_depend_on_each_other() -> None:
    schedule = Schedule.paper(vocab_size=3, num_steps=6, rate=0.5)
    x_0 = Batch.from_lists([[0, 1, 2, 0], [], [2, 2]])
    x_t = Batch.from_lists([[1, 2], [0], [2, 1, 2, 0]])
    times = torch.tensor([3, 2, 4])
    together = most_likely_edits(schedule, x_0, x_t, times)
    for row in range(3):
        one = torch.tensor([row])
        alone = most_likely_edits(schedule, x_0.rows(one), x_t.rows(one), times[one])
        assert torch.equal(alone.source, together.source[one])


def test_what_q_cannot_make_is_refused() -> None:
    schedule = Schedule.paper(vocab_size=3, num_steps=6, rate=0.0)
    with pytest.raises(ValueError, match="row 0: q cannot produce"):
        most_likely_edits(schedule, Batch.from_lists([[0]]), Batch.from_lists([[0, 1]]), 3)
