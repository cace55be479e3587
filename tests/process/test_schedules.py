"""Schedules: the paper's closed forms, and the expected numbers of tokens by simulation."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from indel import Batch
from indel.process import (
    AbsorbingTransition,
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
    paper_noise,
    stacks,
)
from indel.process.measures import Measure
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

# ---------------------------------------------------------------- the paper's schedule

RATES = [0.0, 0.4, 0.6, 0.8, 1.0]
LENGTHS = [2, 3, 10, 32]


@pytest.mark.parametrize("delete_inserted", [None, 0.0])
@pytest.mark.parametrize("num_steps", LENGTHS)
@pytest.mark.parametrize("rate", RATES)
def test_closed_forms(rate: float, num_steps: int, delete_inserted: float | None) -> None:
    schedule = Schedule.paper(28, num_steps, rate, delete_inserted=delete_inserted)
    assert (schedule.num_steps, schedule.vocab_size) == (num_steps, 28)
    assert (schedule.ins, schedule.del_) == (28, 29)
    for t in range(num_steps):
        jump = schedule.jump(t)
        assert jump.keep == close(1 - rate * noise(t, num_steps))
        assert isinstance(jump.kept, MixtureTransition)
        assert jump.kept.prob_keep == close(1 - noise(t, num_steps))
        assert jump.kept.drawn.mass == close(noise(t, num_steps))
    for t in range(1, num_steps):
        step = schedule.step(t)
        before, now = rate * noise(t - 1, num_steps), rate * noise(t, num_steps)
        assert step.delete == close((now - before) / (1 - before))
        assert step.insert / (1 - step.insert) == close(step.delete)
        assert step.delete_inserted == (step.delete if delete_inserted is None else 0.0)
        assert step.inserted.dense().tolist() == pytest.approx([1 / 28] * 28)
    last = schedule.step(num_steps)
    assert (last.insert, last.delete, last.delete_inserted) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize("delete_inserted", [None, 0.0])
@pytest.mark.parametrize("rate", RATES)
def test_jumps_are_distributions(rate: float, delete_inserted: float | None) -> None:
    schedule = Schedule.paper(5, 12, rate, delete_inserted=delete_inserted)
    for t in range(schedule.num_steps + 1):
        jump = schedule.jump(t)
        assert jump.replace.shape == (5, 7)
        assert jump.delete.shape == (5,)
        assert jump.insert.shape == (7,)
        np.testing.assert_allclose(jump.delete + jump.replace.sum(dim=1), 1, atol=EXACT)
        assert jump.stop == close(1 - jump.insert.sum().item())
        assert not jump.replace[:, 5].any()
        assert (jump.replace >= 0).all()
        assert (jump.insert >= 0).all()
        assert jump.loops == pytest.approx(1 / (1 - jump.insert[6].item()), rel=1e-12)
    first, last = schedule.jump(0), schedule.jump(schedule.num_steps)
    assert torch.equal(first.replace[:, :5], torch.eye(5, dtype=torch.float64))
    assert not first.insert.any()
    # Step T leaves DELs alone: of x_0, and of what was inserted.
    np.testing.assert_allclose(last.delete + last.replace[:, 6], 1, atol=EXACT)
    assert not last.insert[:6].any()


def test_rate_zero_is_in_place() -> None:
    schedule = Schedule.paper(6, 8, 0.0)
    for t in range(1, 8):
        step, jump = schedule.step(t), schedule.jump(t)
        assert (step.insert, step.delete, step.delete_inserted) == (0.0, 0.0, 0.0)
        assert (jump.prob_delete, jump.replace_del, jump.stop) == (0.0, 0.0, 1.0)
        assert not jump.insert.any()
    x_0 = Batch.from_lists([[0, 1, 2, 3], [], [5]])
    chain = corrupt_chain(schedule, x_0, generator=torch.Generator().manual_seed(0))
    for x_t in chain:
        assert torch.equal(x_t.lengths, x_0.lengths)
    assert max(max(row, default=0) for x_t in chain[:-1] for row in x_t.to_lists()) < 6
    assert chain[-1].to_lists() == [[7] * 4, [], [7]]


@pytest.mark.parametrize("delete_inserted", [None, 0.0])
def test_the_last_step_deletes_everything(delete_inserted: float | None) -> None:
    schedule = Schedule.paper(4, 7, 0.8, delete_inserted=delete_inserted)
    x_0 = Batch.from_lists([[0, 1, 2, 3] * 4, [], [2]] * 40)
    generator = torch.Generator().manual_seed(0)
    for x_t in (
        corrupt(schedule, x_0, 7, generator=generator).x_t,
        corrupt_chain(schedule, x_0, generator=generator)[-1],
    ):
        assert set(x_t.tokens[x_t.mask].tolist()) == {schedule.del_}


def test_noise_starts_slowly_and_ends_at_one() -> None:
    assert [paper_noise(time) for time in (0.0, 1.0)] == [0.0, 1.0]
    assert paper_noise(0.5) == close(0.05 + 0.225)
    assert paper_noise(1 / 9) == close(1 / 45)


# ---------------------------------------------------------------- one's own functions


def linear(end: float) -> Callable[[float], float]:
    return lambda time: end * time


@pytest.mark.parametrize(
    ("relative_length", "deleted"),
    [
        (lambda time: 1.0 + time, linear(0.3)),
        (lambda time: 1.0 - 0.4 * time, linear(0.5)),
        (lambda time: math.exp(-time), linear(0.95)),
        (lambda time: 1.0, linear(0.5)),
        (lambda time: 2.0**time, linear(0.0)),
    ],
    ids=["growing", "shrinking", "decaying", "level", "no deletions"],
)
def test_lengths_follow_the_function(relative_length, deleted) -> None:
    """ℓ_t·|x_0| tokens that are not DEL, and those that the gap at the start brings.

    That gap alone gains a_s = α_s/(1−α_s) in step s, and grows with ℓ like everything else.
    """
    num_steps = 6
    schedule = Schedule.interpolate(
        4, num_steps, deleted=deleted, replaced=linear(0.5), relative_length=relative_length
    )
    times = [t / (num_steps - 1) for t in range(num_steps)]
    generator = torch.Generator().manual_seed(3)
    x_0 = repeated([0, 1, 2, 3] * 2, 2000)
    chain = corrupt_chain(schedule, x_0, generator=generator)
    for t in range(1, num_steps):
        jump, step = schedule.jump(t), schedule.step(t)
        assert jump.keep == close(1 - deleted(times[t]))
        assert isinstance(jump.kept, MixtureTransition)
        assert jump.kept.prob_keep == close(1 - 0.5 * times[t])
        odds = [s.insert / (1 - s.insert) for s in map(schedule.step, range(1, t + 1))]
        now = relative_length(times[t])
        ends = sum(a * now / relative_length(times[s]) for s, a in enumerate(odds, start=1))
        mean = 8 * now + ends
        present = (chain[t].mask & (chain[t].tokens != schedule.del_)).sum(dim=1).double()
        error = present.std().item() / math.sqrt(len(present))
        assert abs(present.mean().item() - mean) <= 4 * error + EXACT
        expected = expected_counts(schedule, [0, 1, 2, 3] * 2, t)
        assert expected["length"] - expected["token 5"] == pytest.approx(mean, abs=1e-9)
        assert step.insert < 1
    assert schedule.step(num_steps).delete == 1.0


def test_the_paper_is_one_interpolation() -> None:
    made = Schedule.interpolate(
        9, 10, deleted=lambda time: 0.6 * paper_noise(time), replaced=paper_noise
    )
    assert made == Schedule.paper(9, 10, 0.6)
    assert made != Schedule.paper(9, 10, 0.61)
    assert made != Schedule.paper(9, 11, 0.6)
    assert made != Schedule.paper(8, 10, 0.6)
    assert made != Schedule.paper(9, 10, 0.6, delete_inserted=0.0)
    assert made != "a schedule"


def test_once_all_is_deleted_or_replaced_it_stays_so() -> None:
    def soon(time: float) -> float:
        return min(1.0, 2 * time)

    schedule = Schedule.interpolate(3, 5, deleted=soon, replaced=soon)
    assert [schedule.jump(t).keep for t in range(5)] == [1.0, 0.5, 0.0, 0.0, 0.0]
    assert [schedule.step(t).delete for t in range(1, 6)] == [0.5, 1.0, 1.0, 1.0, 1.0]
    assert not schedule.jump(3).kept.prob_keep


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"deleted": lambda s: s * (1 - s)}, "deleted must not fall with time; at 1 it is 0"),
        ({"replaced": lambda s: 0.5 - abs(s - 0.5)}, "replaced must not fall with time; at 1 it"),
        ({"deleted": lambda s: 0.25 + 0.5 * s}, r"deleted\(0.0\) must be 0, got 0.25"),
        ({"replaced": lambda s: 0.25}, r"replaced\(0.0\) must be 0, got 0.25"),
        ({"deleted": lambda s: 2 * s}, r"deleted\(1.0\) must lie in \[0, 1\], got 2.0"),
        ({"replaced": lambda s: -s}, r"replaced\(0.5\) must lie in \[0, 1\], got -0.5"),
        ({"deleted": lambda s: math.nan}, r"deleted\(0.0\) must lie in \[0, 1\], got nan"),
        ({"relative_length": lambda s: 1 - s}, r"relative_length\(1.0\) must be a positive .* 0.0"),
        (
            {"relative_length": lambda s: math.inf if s else 1.0},
            r"relative_length\(0.5\) must be a positive number, got inf",
        ),
        (
            {"relative_length": lambda s: 1 - 0.5 * s},
            "at time 0.5 the length would have to fall .* relative_length there by 0.25",
        ),
        pytest.param(
            {"relative_length": lambda s: 2.0},
            r"relative_length\(0.0\) must be 1, got 2.0",
        ),
    ],
)
def test_functions_that_no_process_follows_are_refused(functions: dict, message: str) -> None:
    functions = {"deleted": linear(0.0), "replaced": linear(0.0)} | functions
    with pytest.raises(ValueError, match=message):
        Schedule.interpolate(4, 3, **functions)


# ---------------------------------------------------------------- Figure 7


def test_description_is_figure_7() -> None:
    """r = 0.6 and ten steps over 512 numbers: every line by exact arithmetic."""
    rate, size = Fraction(6, 10), 512
    u = [Fraction(t, 90) + Fraction(9, 10) * Fraction(t, 9) ** 2 for t in range(10)]
    table = Schedule.paper(size, 10, 0.6).describe()
    assert [level.t for level in table] == list(range(1, 11))
    for t, level in enumerate(table[:-1], start=1):
        delete = rate * (u[t] - u[t - 1]) / (1 - rate * u[t - 1])
        keep = (1 - u[t]) / (1 - u[t - 1])
        copy = (1 - delete) * (keep + (1 - keep) / size)
        survived = 1 - rate * u[t]
        expected = {
            "t": t,
            "insert": delete / (1 + delete),
            "delete": delete,
            "delete_inserted": delete,
            "copy": copy,
            "replace": 1 - delete - copy,
            "survived": survived,
            "unchanged": survived * (1 - u[t] + u[t] / size),
        }
        assert asdict(level) == {name: close(float(value)) for name, value in expected.items()}
    assert asdict(table[-1]) == {
        "t": 10,
        "insert": 0.0,
        "delete": 1.0,
        "delete_inserted": 1.0,
        "copy": 0.0,
        "replace": 0.0,
        "survived": 0.0,
        "unchanged": 0.0,
    }
    # Noise grows towards the end, as the figure shows.
    assert [level.delete for level in table] == sorted(level.delete for level in table)
    # By hand: u_1 = 1/45 and u_8 = 4/5, so d_1 = 0.6/45 and d_9 = 0.12/0.52.
    assert table[0].delete == close(1 / 75)
    assert table[8].delete == close(3 / 13)
    assert table[8].insert == close(3 / 16)


def test_description_of_a_dense_transition_averages_over_tokens() -> None:
    transition = MatrixTransition([[0.5, 0.5], [0.0, 1.0]])
    level = Schedule([Step(0.1, 0.2, transition), Step(0.1, 0.5, transition)]).describe()[1]
    assert level.copy == close(0.5 * 0.75)
    assert level.replace == close(0.5 * 0.25)
    assert level.unchanged == close(0.8 * 0.5 * (0.25 + 1) / 2)
    assert level.survived == close(0.4)


# ---------------------------------------------------------------- records


def some_schedules() -> dict[str, Schedule]:
    given = Measure.given(torch.tensor([0.0, 0.125, 0.5, 0.125], dtype=torch.float64))
    steps = [
        Step(0.1, 0.2, UniformTransition(4, 1 / 3)),
        Step(0.0, 0.0, IdentityTransition(4), delete_inserted=0.5),
        Step(0.3, 1.0, AbsorbingTransition(4, 0.7, 1), FRESH),
        Step(0.2, 0.1, AbsorbingTransition(4, 0.7, 3).then(AbsorbingTransition(4, 0.1, 0))),
        Step(0.2, 0.1, MixtureTransition(0.25, given)),
    ]
    dense = [
        Step(0.1, 0.2, GaussianTransition(4, 0.7, 2)),
        Step(0.1, 0.2, NeighborTransition(4, {0: [1], 3: [1, 2]}, 0.9), FRESH),
        Step(0.1, 0.2, blocks(4, 0.3)),
    ]
    return {
        "paper": Schedule.paper(28, 32, 0.6),
        "spared": Schedule.paper(28, 10, 0.4, delete_inserted=0.0),
        "absorbing": absorbing(None),
        "mixtures": Schedule(steps),
        "dense": Schedule(dense),
        "both": Schedule([*steps, *dense]),
    }


@pytest.mark.parametrize("name", some_schedules())
def test_records_are_exact(name: str) -> None:
    schedule = some_schedules()[name]
    record = schedule.to_dict()
    text = json.dumps(record, allow_nan=False)
    again = Schedule.from_dict(json.loads(text))
    assert again == schedule
    assert json.dumps(again.to_dict()) == text
    for t in range(schedule.num_steps + 1):
        assert torch.equal(again.jump(t).insert, schedule.jump(t).insert)
        assert torch.equal(again.jump(t).replace, schedule.jump(t).replace)
    x_0 = Batch.from_lists([[0, 1, 2, 3] * 3])
    first, second = (
        corrupt_chain(each, x_0, generator=torch.Generator().manual_seed(5))
        for each in (schedule, again)
    )
    assert all(a.equals(b) for a, b in zip(first, second, strict=True))


def test_nor_does_a_transition_that_keeps_everything_get_lost() -> None:
    schedule = Schedule([Step(0.1, 0.2, AbsorbingTransition(4, 1.0, 2))])
    assert Schedule.from_dict(schedule.to_dict()) == schedule


@settings(deadline=None, max_examples=15)
@given(st.floats(0, 1), st.integers(2, 6), st.integers(1, 4), st.sampled_from([None, 0.0, 0.3]))
def test_records_of_any_rate_are_exact(rate, num_steps: int, size: int, delete_inserted) -> None:
    schedule = Schedule.paper(size, num_steps, rate, delete_inserted=delete_inserted)
    assert Schedule.from_dict(json.loads(json.dumps(schedule.to_dict()))) == schedule


@pytest.mark.parametrize("record", [{}, {"steps": []}, {"steps": [{}]}, {"steps": None}])
def test_something_else_is_no_record(record: dict) -> None:
    with pytest.raises(ValueError, match=r"no record of a schedule|at least one step"):
        Schedule.from_dict(record)


def test_a_schedule_is_not_hashable() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Schedule.paper(3, 3, 0.5))


# ---------------------------------------------------------------- large vocabularies


def test_fifty_thousand_tokens_and_a_thousand_steps() -> None:
    schedule = Schedule.paper(50_000, 1_000, 0.6)
    assert schedule.jump(999).keep == pytest.approx(0.4, abs=1e-12)
    assert schedule.jump(500).kept.prob_keep == pytest.approx(1 - noise(500, 1000), abs=1e-12)
    jump = schedule.jump(700)
    assert jump.insert.shape == (50_002,)
    assert jump.delete.shape == (50_000,)
    assert 1 - jump.insert.sum().item() == pytest.approx(jump.stop, abs=1e-12)
    for refused in (lambda: jump.replace, jump.kept.matrix, schedule.step(3).matrix):
        with pytest.raises(ValueError, match=r"50000×50000 .* limited to 4096 tokens"):
            refused()
    x_0 = repeated(list(range(0, 50_000, 500)), 4)
    generator = torch.Generator().manual_seed(0)
    x_t, edits = corrupt(schedule, x_0, 900, generator=generator)
    assert (x_t.tokens < 50_002).all()
    assert ((edits.source >= 0).sum(dim=1) + edits.deletions.sum(dim=1) == 100).all()


def test_steps_share_one_distribution_of_inserts() -> None:
    given = torch.full((1000,), 1e-3, dtype=torch.float64)
    schedule = Schedule.paper(1000, 10, 0.6, inserted=given)
    kept = {
        part.prob.data_ptr() for t in range(1, 11) for part in schedule.step(t).inserted.weights
    }
    assert len(kept) == 1


def test_dense_jumps_that_would_not_fit_are_refused_before_they_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each jump keeps a matrix of its own: 1 000 steps over 4 096 tokens are 128 GB."""
    monkeypatch.setattr(stacks, "MAX_STACK_BYTES", 5 * 10**2 * 8)
    step = Step(0.1, 0.1, GaussianTransition(10, 1.0))
    Schedule([step] * 4)
    with pytest.raises(ValueError, match=r"6 dense transitions over 10 tokens need"):
        Schedule([step] * 5)


def test_steps_over_different_vocabularies_make_no_schedule() -> None:
    steps = [Step(0.1, 0.1, IdentityTransition(3)), Step(0.1, 0.1, IdentityTransition(4))]
    with pytest.raises(ValueError, match="step 1 has 3, step 2 has 4"):
        Schedule(steps)
    with pytest.raises(ValueError, match="at least one step"):
        Schedule([])
