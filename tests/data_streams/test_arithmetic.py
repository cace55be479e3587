"""Arithmetic sequences against the law of the paper's text, enumerated here on its own."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from indel.batch import Batch
from indel.data import ArithmeticData

SMALL = {"numbers": 24, "lowest": 3, "max_step": 4, "min_length": 3, "max_length": 9}


def law(
    numbers: int, lowest: int, max_step: int, min_length: int, max_length: int
) -> dict[tuple[int, ...], Fraction]:
    """The probability of each sequence, by summing over all ways to draw it."""
    total: Counter[tuple[int, ...]] = Counter()
    for step in range(1, max_step + 1):
        lengths = [
            length
            for length in range(min_length, max_length + 1)
            if step * (length - 1) < numbers - 1 - lowest
        ]
        for sign in (1, -1):
            for length in lengths:
                drawn = [
                    tuple(start + sign * step * place for place in range(length))
                    for start in range(numbers)
                ]
                fitting = [x for x in drawn if lowest <= min(x) and max(x) < numbers]
                for x in fitting:
                    total[x] += Fraction(1, 2 * max_step * len(lengths) * len(fitting))
    return dict(total)


def test_every_sequence_of_a_small_task_has_its_exact_probability() -> None:
    expected = law(**SMALL)
    assert sum(expected.values()) == 1
    count = 60_000
    seen = Counter(map(tuple, ArithmeticData(seed=1, **SMALL).examples(0, count).to_lists()))
    assert seen.keys() <= expected.keys()
    observed = [seen[x] for x in expected]
    assert chisquare(observed, [float(p) * count for p in expected.values()]).pvalue > 0.001


def test_marginals_of_the_papers_task() -> None:
    count = 100_000
    batch = ArithmeticData(seed=0).examples(0, count)
    steps = (batch.tokens[:, 1] - batch.tokens[:, 0]).tolist()
    seen = Counter(zip(steps, batch.lengths.tolist(), strict=True))
    expected = {}
    for size in range(1, 11):
        lengths = [length for length in range(32, 65) if size * (length - 1) < 509]
        for sign in (1, -1):
            for length in lengths:
                expected[sign * size, length] = 1 / 20 / len(lengths)
    assert seen.keys() <= expected.keys()
    for key in (lambda pair: abs(pair[0]), lambda pair: pair[0] > 0, lambda pair: pair[1], None):
        observed: Counter[object] = Counter()
        wanted: Counter[object] = Counter()
        for pair, probability in expected.items():
            observed[key(pair) if key else pair] += seen[pair]
            wanted[key(pair) if key else pair] += probability * count
        assert chisquare(list(observed.values()), list(wanted.values())).pvalue > 0.001


def test_start_is_uniform_among_those_that_fit() -> None:
    count = 100_000
    batch = ArithmeticData(seed=4).examples(0, count)
    last = batch.tokens.gather(1, batch.lengths[:, None] - 1)[:, 0]
    smallest = torch.minimum(batch.tokens[:, 0], last)
    assert int(torch.maximum(batch.tokens[:, 0], last).max()) == 511
    expected = torch.zeros(512, dtype=torch.float64)
    for size in range(1, 11):
        lengths = [length for length in range(32, 65) if size * (length - 1) < 509]
        for length in lengths:
            starts = 510 - size * (length - 1)
            expected[2 : 2 + starts] += count / 10 / len(lengths) / starts
    seen = smallest.bincount(minlength=512).double()
    common = expected > 5
    assert int(seen[expected == 0].sum()) == 0
    rest = [[float(values[~common].sum())] for values in (seen, expected)]
    observed, wanted = seen[common].tolist() + rest[0], expected[common].tolist() + rest[1]
    assert chisquare(observed, wanted).pvalue > 0.001


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize("options", [{}, SMALL])
def test_all_examples_are_valid_and_without_error(split: str, options: dict[str, int]) -> None:
    data = ArithmeticData(seed=5, **options)
    batch = data.examples(10**12, 5_000, split)
    assert bool(data.is_valid(batch).all())
    assert data.error_rate(batch) == 0.0
    assert int(batch.tokens[batch.mask].max()) < data.vocabulary.size
    assert int(batch.lengths.max()) <= data.max_length


def test_entropy_is_that_of_the_enumerated_law() -> None:
    entropy = -sum(float(p) * math.log(p) for p in law(**SMALL).values())
    assert ArithmeticData(**SMALL).exact_entropy() == pytest.approx(entropy, abs=1e-12)
    # Of the whole task, one term for all sequences of a step, direction and length.
    entropy, number = 0.0, 0
    for size in range(1, 11):
        starts = [510 - size * (length - 1) for length in range(32, 65)]
        starts = [count for count in starts if count > 1]
        entropy += sum(math.log(20 * len(starts) * count) for count in starts) / len(starts) / 10
        number += 2 * sum(starts)
    assert ArithmeticData().exact_entropy() == pytest.approx(entropy, abs=1e-10)
    assert number == 167_970


def test_valid_sequences_are_exactly_those_of_the_law() -> None:
    data = ArithmeticData(**SMALL)
    possible = set(law(**SMALL))
    tried = [
        tuple(start + step * place for place in range(length))
        for step in range(-6, 7)
        for length in range(12)
        for start in range(26)
    ]
    tried = [x for x in tried if min(x, default=0) >= 0]
    assert set(tried) > possible
    valid = data.is_valid(Batch.from_lists(tried)).tolist()
    assert {x for x, good in zip(tried, valid, strict=True) if good} == possible


def test_one_wrong_term_makes_a_sequence_invalid() -> None:
    data = ArithmeticData(seed=2)
    batch = data.examples(0, 64)
    for place in (0, 1, 15, 31):
        tokens = batch.tokens.clone()
        tokens[:, place] = torch.where(tokens[:, place] > 256, tokens[:, place] - 1, 300)
        assert not bool(data.is_valid(Batch(tokens, batch.lengths)).any())


def plain_error_rate(row: list[int], size: int) -> float:
    """The definition, word for word, with what is not a number as a step of its own."""
    steps = [b - a if 0 <= a < size and 0 <= b < size else None for a, b in pairwise(row)]
    if not steps:
        return 1.0
    commonest = max((steps.count(step) for step in steps if step is not None), default=0)
    return 1 - commonest / len(steps)


@given(st.lists(st.lists(st.integers(0, 14), max_size=9), min_size=1, max_size=5))
def test_error_rates_follow_the_definition(rows: list[list[int]]) -> None:
    # With 12 numbers, 12…14 are the markers.
    data = ArithmeticData(numbers=12, lowest=2, max_step=2, min_length=3, max_length=5)
    expected = [plain_error_rate(row, 12) for row in rows]
    rates = data.error_rates(Batch.from_lists(rows).widened(11)).tolist()
    assert rates == pytest.approx(expected, abs=1e-6)
    mean = sum(expected) / len(expected)
    assert data.error_rate(Batch.from_lists(rows)) == pytest.approx(mean, abs=1e-6)


def test_error_rate_of_written_examples() -> None:
    data = ArithmeticData()
    rows = [
        [10, 20, 30, 40, 50],
        [10, 20, 30, 41, 51],  # 10 10 11 10
        [10, 20, 10, 20, 10],  # the sign counts
        [0, 1, 2, 3],  # 0 and 1 are numbers
        [10, 20, 30, 513],  # a marker
        [7],
        [],
    ]
    expected = [0, 1 / 4, 1 / 2, 0, 1 / 3, 1, 1]
    assert data.error_rates(Batch.from_lists(rows)).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_step": 17}, "min_length 32 with max_step 17 spans 527, .* less than 509"),
        ({"min_length": 1}, "min_length must be an integer ≥ 2, got 1"),
        ({"min_length": 65}, "min_length 65 is above max_length 64"),
        ({"max_step": 0}, "max_step must be an integer ≥ 1, got 0"),
        ({"lowest": -1}, "lowest must be an integer ≥ 0, got -1"),
        ({"numbers": 0}, "numbers must be an integer ≥ 1, got 0"),
        ({"seed": -1}, "seed must be an integer ≥ 0, got -1"),
    ],
)
def test_impossible_tasks_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ArithmeticData(**options)
