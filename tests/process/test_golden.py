"""Values of an independent implementation, reproduced to 1e−9."""

import json
from pathlib import Path

import pytest
import torch

from indel import Batch
from indel.process import Edits, MatrixTransition, Schedule, Step, log_prob, posterior

CASES = json.loads((Path(__file__).parent.parent / "data/golden-forward-process.json").read_text())
ALIGNMENTS = [
    (case, number) for case in range(len(CASES)) for number in range(len(CASES[case]["alignments"]))
]


def schedule_of(case: dict) -> Schedule:
    return Schedule(
        Step(
            step["insert"],
            step["delete"],
            MatrixTransition(step["transition"]),
            torch.tensor(step["inserted"], dtype=torch.float64),
            step["delete_inserted"],
        )
        for step in case["steps"]
    )


@pytest.mark.parametrize("number", range(len(CASES)))
def test_jumps(number: int) -> None:
    case = CASES[number]
    schedule = schedule_of(case)
    for t, expected in enumerate(case["jumps"]):
        jump = schedule.jump(t)
        size = case["vocab_size"]
        torch.testing.assert_close(jump.insert, double(expected["insert"]), atol=1e-9, rtol=0)
        torch.testing.assert_close(
            jump.delete, torch.full_like(jump.delete, expected["delete"]), atol=1e-9, rtol=0
        )
        torch.testing.assert_close(
            jump.replace[:, :size], double(expected["replace"]), atol=1e-9, rtol=0
        )
        deleted = torch.full_like(jump.delete, expected["replace_by_del"])
        torch.testing.assert_close(jump.replace[:, size + 1], deleted, atol=1e-9, rtol=0)


@pytest.mark.parametrize(("case_number", "number"), ALIGNMENTS)
def test_alignments(case_number: int, number: int) -> None:
    case = CASES[case_number]
    expected = case["alignments"][number]
    schedule = schedule_of(case)
    x_0, x_t = Batch.from_lists([expected["x0"]]), Batch.from_lists([expected["xt"]])
    source = torch.tensor([[-1 if s is None else s for s in expected["source"]]], dtype=torch.int64)
    edits = Edits.from_source(x_0, x_t, source)
    t = expected["t"]
    assert log_prob(schedule, x_0, x_t, t).item() == pytest.approx(
        expected["log_q_xt_given_x0"], abs=1e-9, rel=0
    )
    result = posterior(schedule, x_0, x_t, edits, t, max_deletions=9)
    kept = x_t.tokens[0] != schedule.ins
    torch.testing.assert_close(
        result.prob_previous[0, kept],
        double(expected["previous_token"]).reshape(-1, schedule.vocab_size + 1),
        atol=1e-9,
        rtol=0,
    )
    kept_and_end = torch.cat([kept, torch.tensor([True])])
    torch.testing.assert_close(
        result.prob_deletions[0, kept_and_end],
        double(expected["deletions_before"]),
        atol=1e-9,
        rtol=0,
    )
    assert result.expected_log_step.item() == pytest.approx(
        expected["expected_log_q_step"], abs=1e-9, rel=0
    )


def double(values: list) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)
