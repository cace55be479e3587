"""Noise of a row: uniform, independent, and the same in any company."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats

from indel import Batch, RowSeeds
from indel.process import (
    GaussianTransition,
    MatrixTransition,
    Schedule,
    Step,
    UniformTransition,
    corrupt,
    corrupt_chain,
    corrupt_step,
    sample_edits,
)
from indel.randomness import _mix, select, split, uniform

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


# ---------------------------------------------------------------- the stream itself


def mix(value: int) -> int:
    """SplitMix64's finaliser on unsigned integers."""
    value &= MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def test_mix_is_splitmix64() -> None:
    """Published outputs for the seed 1234567 (Vigna's splitmix64.c)."""
    states = [signed((1234567 + n * GOLDEN) & MASK) for n in range(1, 6)]
    found = [value & MASK for value in _mix(torch.tensor(states)).tolist()]
    assert found == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63 - 1, -(2**63), 20211203])
def test_entries_are_a_function_of_seed_call_and_column(seed: int) -> None:
    stream = RowSeeds(torch.tensor([seed]))
    for call in range(1, 4):
        key = mix(mix(seed) + call * GOLDEN)
        expected = [(mix(key + n * GOLDEN) >> 11) * 2.0**-53 for n in range(1, 6)]
        assert stream.uniform(5)[0].tolist() == expected


def draws(rows: int, width: int, calls: int = 1) -> np.ndarray:
    """(calls, rows, width) for the seeds 0, 1, 2, …, the worst that people use."""
    stream = RowSeeds(torch.arange(rows))
    return torch.stack([stream.uniform(width) for _ in range(calls)]).numpy()


@pytest.mark.parametrize(
    "shape", [(1, 20_000, 1), (20_000, 1, 1), (1, 1, 1_000), (100, 20, 10)], ids=str
)
def test_entries_are_uniform(shape: tuple[int, int, int]) -> None:
    rows, width, calls = shape
    values = draws(rows, width, calls).ravel()
    assert stats.kstest(values, "uniform").pvalue > 1e-3
    # The leading digits may be good and the trailing ones not.
    assert stats.kstest(values * 1024 % 1, "uniform").pvalue > 1e-3
    assert (values >= 0).all()
    assert (values < 1).all()


def test_bits_are_fair_coins() -> None:
    bits = (draws(200, 100).ravel() * 2.0**53).astype(np.int64)[:, None] >> np.arange(53) & 1
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 4.5 * 0.5 / np.sqrt(len(bits))


@pytest.mark.parametrize("axis", ["calls", "rows", "columns"])
def test_streams_do_not_correlate(axis: str) -> None:
    rows, width, calls = {
        "calls": (200, 100, 8),
        "rows": (8, 500, 40),
        "columns": (500, 8, 40),
    }[axis]
    values = draws(rows, width, calls)
    first = np.moveaxis(values, ("calls", "rows", "columns").index(axis), 0).reshape(8, -1)
    assert_uncorrelated(first)


def test_split_streams_do_not_correlate_with_each_other_or_their_parent() -> None:
    parent = RowSeeds(torch.arange(200))
    streams = [parent.split(), parent.split(), parent, parent.split().split()]
    assert_uncorrelated(np.stack([stream.uniform(100).numpy().ravel() for stream in streams]))


def assert_uncorrelated(values: np.ndarray) -> None:
    """Neither at the same place nor at the next one."""
    bound = 4.5 / np.sqrt(values.shape[1])
    off_diagonal = ~np.eye(len(values), dtype=bool)
    assert np.abs(np.corrcoef(values)[off_diagonal]).max() < bound
    shifted = np.corrcoef(values, np.roll(values, 1, axis=1))[: len(values), len(values) :]
    assert np.abs(shifted).max() < bound


def test_no_number_comes_twice() -> None:
    parent = RowSeeds(torch.arange(300))
    values = [parent.uniform(50), parent.split().uniform(50), parent.uniform(50)]
    found = torch.stack(values).flatten()
    assert len(found.unique()) == len(found)


def test_float32_never_reaches_one() -> None:
    values = RowSeeds(torch.arange(1000)).uniform(1000, torch.float32)
    assert values.dtype == torch.float32
    assert values.max() < 1
    assert torch.equal(values * 2**24, (values * 2**24).floor())
    assert stats.kstest(values.flatten().numpy()[:20_000], "uniform").pvalue > 1e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_below_one_or_refused(dtype: torch.dtype) -> None:
    try:
        values = RowSeeds(torch.arange(1000)).uniform(100, dtype)
    except ValueError:
        return
    assert values.max() < 1


def test_row_and_column_do_not_depend_on_the_batch_or_its_width() -> None:
    seeds = torch.tensor([5, 7, 7, -2])
    wide = RowSeeds(seeds).uniform(9)
    for row, seed in enumerate(seeds.tolist()):
        alone = RowSeeds(torch.tensor([seed])).uniform(4)
        assert torch.equal(alone[0], wide[row, :4])
    assert torch.equal(wide[1], wide[2])
    assert not (wide[0] == wide[1]).any()


def test_a_width_of_zero_counts_as_a_call() -> None:
    first, second = RowSeeds(torch.tensor([3])), RowSeeds(torch.tensor([3]))
    assert first.uniform(0).shape == (1, 0)
    second.uniform(8)
    assert torch.equal(first.uniform(4), second.uniform(4))


def test_rows_go_on_where_the_stream_stands_and_leave_it_alone() -> None:
    stream, same = RowSeeds(torch.tensor([1, 2, 3])), RowSeeds(torch.tensor([1, 2, 3]))
    for each in (stream, same):
        each.uniform(2)
    chosen = stream.rows(torch.tensor([2, 0]))
    assert len(chosen) == 2
    for _ in range(2):
        expected = same.uniform(5)
        assert torch.equal(chosen.uniform(5), expected[[2, 0]])
    # The copy has drawn twice, the original not at all since.
    again = RowSeeds(torch.tensor([1, 2, 3]))
    again.uniform(2)
    assert torch.equal(stream.uniform(5), again.uniform(5))


def test_split_takes_one_call_however_much_the_part_draws() -> None:
    busy, idle = RowSeeds(torch.tensor([1, 2])), RowSeeds(torch.tensor([1, 2]))
    part = busy.split()
    for _ in range(7):
        part.uniform(3)
    idle.split()
    assert torch.equal(busy.uniform(3), idle.uniform(3))
    assert torch.equal(busy.split().uniform(3), idle.split().uniform(3))


def test_a_generator_is_split_and_selected_by_using_it() -> None:
    generator = torch.Generator().manual_seed(0)
    assert split(generator) is generator
    assert select(generator, torch.tensor([0])) is generator
    expected = torch.rand(2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.equal(uniform(generator, 2, 3, dtype=torch.float64), expected)


# ---------------------------------------------------------------- samplers that use it

PAPER = Schedule.paper(5, 5, 0.8)
DENSE = Schedule(
    [
        Step(0.3, 0.3, GaussianTransition(5, 1.0)),
        Step(0.2, 0.1, UniformTransition(5, 0.5), torch.tensor([0.5, 0, 0.25, 0, 0.25])),
        Step(0.2, 0.4, MatrixTransition(torch.eye(5).roll(1, 0)), delete_inserted=0.0),
    ]
)
ROWS = [[0, 1, 2, 3, 4], [], [4], [2, 2, 2], [1, 3, 1], [0] * 9]
SEEDS = [11, 12, 13, 14, 11, -5]
TIMES = [3, 2, 1, 3, 2, 3]
# A draw of the six together: x_t (or all of x_0 … x_T) and what else comes with it, as lists.
Draw = Callable[[Schedule, list[int], int], list]


def batch_of(rows: list[int], extra: int) -> tuple[Batch, torch.Tensor, RowSeeds]:
    x_0 = Batch.from_lists([ROWS[row] for row in rows])
    seeds = RowSeeds(torch.tensor([SEEDS[row] for row in rows]))
    return x_0.widened(x_0.width + extra), torch.tensor([TIMES[row] for row in rows]), seeds


def draw_jump(schedule: Schedule, rows: list[int], extra: int, limit: int | None = None) -> list:
    x_0, t, seeds = batch_of(rows, extra)
    found = []
    for _ in range(2):
        x_t, edits = corrupt(schedule, x_0, t, generator=seeds, max_length=limit)
        found += [x_t.to_lists(), cut(edits.source, x_t, 0), cut(edits.deletions, x_t, 1)]
    return found


def draw_step(schedule: Schedule, rows: list[int], extra: int, limit: int | None = None) -> list:
    x_prev, t, seeds = batch_of(rows, extra)
    return [
        corrupt_step(schedule, x_prev, t, generator=seeds, max_length=limit).to_lists()
        for _ in range(2)
    ]


def draw_chain(schedule: Schedule, rows: list[int], extra: int, limit: int | None = None) -> list:
    x_0, _, seeds = batch_of(rows, extra)
    chain = corrupt_chain(schedule, x_0, generator=seeds, max_length=limit)
    return [batch.to_lists() for batch in chain]


def draw_edits(schedule: Schedule, rows: list[int], extra: int) -> list:
    x_0, t, seeds = batch_of(rows, extra)
    x_t = Batch.from_lists([[0, 5, 1, 6, 2][: 1 + row % 5] for row in rows])
    x_t = x_t.widened(x_t.width + extra)
    t = t.clamp_min(2)
    edits = [sample_edits(schedule, x_0, x_t, t, generator=seeds) for _ in range(4)]
    return [cut(each.source, x_t, 0) for each in edits]


def cut(values: torch.Tensor, x_t: Batch, more: int) -> list[list[int]]:
    lengths = (x_t.lengths + more).tolist()
    return [row[:length] for row, length in zip(values.tolist(), lengths, strict=True)]


SAMPLERS: dict[str, Draw] = {
    "corrupt": draw_jump,
    "corrupt_step": draw_step,
    "corrupt_chain": draw_chain,
    "sample_edits": draw_edits,
    "corrupt, limited": lambda *args: draw_jump(*args, limit=9),
    "corrupt_step, limited": lambda *args: draw_step(*args, limit=9),
    "corrupt_chain, limited": lambda *args: draw_chain(*args, limit=9),
}


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("schedule", [PAPER, DENSE], ids=["paper", "dense"])
def test_a_sequence_is_corrupted_alike_in_any_company(schedule: Schedule, sampler: str) -> None:
    draw = SAMPLERS[sampler]
    together = draw(schedule, [0, 1, 2, 3, 4, 5], 0)
    for row in (0, 1, 3):
        alone = draw(schedule, [row], 0)
        assert [each[0] for each in alone] == [each[row] for each in together]
    for order, extra in (([5, 3, 1, 0], 0), ([2, 4, 4], 7)):
        others = draw(schedule, order, extra)
        assert others == [[each[row] for row in order] for each in together]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_other_seeds_give_other_results(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, rows = SAMPLERS[sampler], [0, 1, 2, 3, 4, 5]
    first = draw(PAPER, rows, 0)
    monkeypatch.setattr(f"{__name__}.SEEDS", [seed + 100 for seed in SEEDS])
    assert draw(PAPER, rows, 0) != first


def test_one_stream_gives_something_new_at_each_call() -> None:
    x_0 = Batch.from_lists([list(range(5)) * 6])
    seeds = RowSeeds(torch.tensor([1]))
    first, second = (corrupt(PAPER, x_0, 4, generator=seeds).x_t for _ in range(2))
    assert not first.equals(second)


def test_limited_draws_were_rejected_at_least_once() -> None:
    """Otherwise the limit in the tests above would show nothing."""
    lengths = [len(row) for row in draw_jump(PAPER, [0, 1, 2, 3, 4, 5], 0)[0]]
    assert max(lengths) > 9


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        (lambda: RowSeeds(torch.tensor([1], dtype=torch.int32)), ["seeds", "int64", "torch.int32"]),
        (
            lambda: uniform(RowSeeds(torch.tensor([1, 2])), 3, 4, dtype=torch.float64),
            ["generator", "2 row seeds", "3 sequences"],
        ),
        (
            lambda: corrupt(
                PAPER, Batch.from_lists([[0], [1]]), 1, generator=RowSeeds(torch.tensor([1]))
            ),
            ["generator", "1 row seeds", "2 sequences"],
        ),
    ],
)
def test_bad_input_is_refused_with_the_reason(call: Callable, fragments: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        call()
    for fragment in fragments:
        assert fragment in str(error.value)
