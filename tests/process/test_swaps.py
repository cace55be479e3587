"""Swaps before q: the pass over x_0 against composed machines and against all swaps one by one."""

import math
from collections.abc import Iterator, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from indel import Batch
from indel.process import Schedule, log_prob
from indel.process.composition import compose
from indel.process.edit_transducers import jump_transducer
from indel.process.swaps import log_prob_swapped, swap_transducer
from oracles.jumps import jump_prob
from support.cases import steps_of

words = st.lists(st.integers(0, 2), min_size=0, max_size=4)
RATES = (0.6, 0.0)


def all_swaps(word: Sequence[int], prob: float) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every way in which neighbors may be swapped, one after the other."""
    if len(word) < 2:
        yield tuple(word), 1.0
        return
    for rest, weight in all_swaps(word[1:], prob):
        yield (word[0], *rest), (1 - prob) * weight
    for rest, weight in all_swaps(word[2:], prob):
        yield (word[1], word[0], *rest), prob * weight


def swapped(schedule: Schedule, x_0: Sequence[int], x_t: Sequence[int], t: int, s: float) -> float:
    pair = (Batch.from_lists([list(word)]) for word in (x_0, x_t))
    return math.exp(float(log_prob_swapped(schedule, *pair, t, swap=s)))


@settings(deadline=None, max_examples=40)
@given(words, words, st.sampled_from([0.0, 0.01, 0.3]), st.sampled_from(RATES))
def test_all_swaps_one_by_one(x_0: list[int], x_t: list[int], s: float, rate: float) -> None:
    schedule = Schedule.paper(3, 8, rate)
    steps = steps_of(schedule)[:3]
    expected = sum(weight * jump_prob(steps, u, x_t) for u, weight in all_swaps(x_0, s))
    assert swapped(schedule, x_0, x_t, 3, s) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@settings(deadline=None, max_examples=8)
@given(words, words)
def test_the_composed_machine(x_0: list[int], x_t: list[int]) -> None:
    schedule = Schedule.paper(3, 8, 0.6)
    machine = jump_transducer(*_parameters(schedule, 3))
    both = compose(swap_transducer(3, 0.1), machine)
    assert both.marginalize(1).probability(x_0, x_t) == pytest.approx(
        swapped(schedule, x_0, x_t, 3, 0.1), rel=1e-9
    )


def _parameters(schedule: Schedule, t: int) -> tuple[list[float], list[float], list[list[float]]]:
    tables, size = schedule.tables(torch.device("cpu")).jump, schedule.vocab_size
    time, values = torch.tensor(t), torch.arange(size + 2)
    return (
        tables.insert_prob(time, values).tolist(),
        [float(tables.delete[t])] * size,
        [tables.replace_prob(time, torch.tensor(x), values).tolist() for x in range(size)],
    )


def test_a_swap_is_no_longer_two_errors() -> None:
    schedule = Schedule.paper(27, 32, 0.6)
    the, teh = (Batch.from_lists([list(word)]) for word in ([20, 8, 5], [20, 5, 8]))
    plain, with_swaps = (
        float(log_prob_swapped(schedule, the, teh, 3, swap=s)) for s in (0.0, 0.002)
    )
    assert plain == pytest.approx(float(log_prob(schedule, the, teh, 3)), rel=1e-9)
    assert with_swaps == pytest.approx(math.log(0.002), abs=0.3)
    assert with_swaps > plain + 5


def test_batches_of_different_lengths_and_bad_input() -> None:
    schedule = Schedule.paper(3, 8, 0.6)
    x_0, x_t = [[0, 1, 2], [1], [], [2, 0]], [[1, 0, 2], [], [1], [0, 2, 2]]
    together = log_prob_swapped(schedule, Batch.from_lists(x_0), Batch.from_lists(x_t), 3, swap=0.1)
    apart = [swapped(schedule, *pair, 3, 0.1) for pair in zip(x_0, x_t, strict=True)]
    assert together.exp().tolist() == pytest.approx(apart)
    with pytest.raises(ValueError, match=r"swap must be at least 0 and below 1, got 1\.0"):
        swapped(schedule, [0], [0], 3, 1.0)
