"""How many tokens of each kind a schedule leads to one expects, against samples."""

import math
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from indel import Batch
from indel.process import (
    Schedule,
    corrupt,
    corrupt_chain,
    summarize,
)
from support.schedule_cases import (
    EXACT,
    FRESH,
    absorbing,
    blocks,
    close,
    expected_counts,
    noise,
    repeated,
)

# Tokens 0 and 1 are of x_0, and stay among themselves; 2 and 3 come from inserts alone. So what
# was never deleted can be told from what is new by looking at x_t.
OLD, NEW = (0, 1), (2, 3)


@cache
def told_apart(delete_inserted: float | None) -> Schedule:
    return Schedule.paper(
        4, 8, 0.9, transition=blocks, inserted=FRESH, delete_inserted=delete_inserted
    )


@cache
def uniform(delete_inserted: float | None) -> Schedule:
    return Schedule.paper(4, 8, 0.6, delete_inserted=delete_inserted)


def counted(schedule: Schedule, x_t: Batch, source: torch.Tensor) -> dict[str, torch.Tensor]:
    """The same numbers in each of the sampled sequences."""
    origin = source >= 0
    masks = {f"token {y}": x_t.tokens == y for y in range(schedule.vocab_size + 2)}
    masks |= {
        "emitted": origin,
        "inserted": x_t.mask & ~origin,
        "inserted INS": ~origin & (x_t.tokens == schedule.ins),
        "inserted DEL": ~origin & (x_t.tokens == schedule.del_),
        "length": x_t.mask,
    }
    return {name: mask.sum(dim=1).double() for name, mask in masks.items()}


def assert_within_four_standard_errors(
    found: dict[str, torch.Tensor], expected: dict[str, float]
) -> None:
    for name, mean in expected.items():
        values = found[name]
        error = values.std().item() / math.sqrt(len(values))
        assert abs(values.mean().item() - mean) <= 4 * error + EXACT, (name, values.mean(), mean)


X_0 = [0, 1, 1, 0, 1, 0, 0, 0, 1, 0]
KINDS = {"told apart": told_apart, "absorbing": absorbing, "uniform": uniform}
CHOICES = [None, 0.0]


@pytest.mark.parametrize("delete_inserted", CHOICES)
@pytest.mark.parametrize("kind", KINDS)
def test_expected_numbers_of_tokens_agree_with_jumps(kind: str, delete_inserted) -> None:
    schedule = KINDS[kind](delete_inserted)
    x_0 = repeated(X_0, 3000)
    for t in (0, 1, 3, 6, 7, 8):
        generator = torch.Generator().manual_seed(100 + t)
        x_t, edits = corrupt(schedule, x_0, t, generator=generator)
        found = counted(schedule, x_t, edits.source)
        assert_within_four_standard_errors(found, expected_counts(schedule, X_0, t))


@pytest.mark.parametrize("delete_inserted", CHOICES)
@pytest.mark.parametrize("kind", KINDS)
def test_expected_numbers_of_tokens_agree_with_chains(kind: str, delete_inserted) -> None:
    schedule = KINDS[kind](delete_inserted)
    x_0 = repeated(X_0, 3000)
    generator = torch.Generator().manual_seed(7)
    chain = corrupt_chain(schedule, x_0, generator=generator)
    for t in (1, 3, 6, 7, 8):
        edits = summarize(chain[: t + 1], schedule.vocab_size)
        found = counted(schedule, chain[t], edits.source)
        assert_within_four_standard_errors(found, expected_counts(schedule, X_0, t))


@pytest.mark.parametrize("delete_inserted", CHOICES)
def test_what_is_old_in_x_t_was_never_deleted(delete_inserted: float | None) -> None:
    """keep_t = 1 − r·u_t is what the eye sees; β̄_t + Q̄_t[x, DEL] = r·u_t would be wrong."""
    schedule = told_apart(delete_inserted)
    for t in range(schedule.num_steps):
        expected = expected_counts(schedule, X_0, t)
        old = sum(expected[f"token {y}"] for y in OLD)
        assert old == close(len(X_0) * (1 - 0.9 * noise(t, schedule.num_steps)))
    gone = schedule.jump(6).prob_delete + schedule.jump(6).replace_del
    assert gone < 0.9 * noise(6, 8) - 0.05


@settings(deadline=None, max_examples=25)
@given(st.floats(0, 1), st.integers(2, 8), st.sampled_from(CHOICES), st.integers(0, 6))
def test_expected_numbers_of_tokens_follow_from_the_steps(
    rate: float, num_steps: int, delete_inserted: float | None, length: int
) -> None:
    """One step after another: n tokens and m INS lose shares d and d′ and gain (n+m+1)·α/(1−α)."""
    schedule = Schedule.paper(3, num_steps, rate, delete_inserted=delete_inserted)
    regular, ins, del_ = float(length), 0.0, 0.0
    for t in range(1, num_steps + 1):
        step = schedule.step(t)
        present = regular + ins
        del_ = step.delete * regular + step.delete_inserted * ins
        regular = present - del_
        ins = (present + 1) * step.insert / (1 - step.insert)
        expected = expected_counts(schedule, [0] * length, t)
        assert sum(expected[f"token {y}"] for y in range(3)) == pytest.approx(regular, abs=1e-9)
        assert expected["token 3"] == pytest.approx(ins, abs=1e-9)
        assert expected["token 4"] == pytest.approx(del_, abs=1e-9)


def test_the_length_is_kept_on_average_but_for_markers_and_the_ends() -> None:
    """x_t has |x_0| tokens that are not DEL, and Σ d_s more for the gap at the start."""
    schedule = Schedule.paper(28, 32, 0.6)
    extra = 0.0
    for t in range(1, 32):
        extra += schedule.step(t).delete
        expected = expected_counts(schedule, [0] * 118, t)
        assert expected["length"] - expected["token 29"] == pytest.approx(118 + extra, abs=1e-9)
