"""Means over seeds and differences in standard errors, against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from indel.experiments.comparisons import Comparison, Measured

IN_PLACE = (10.0, 10.4, 9.9, 10.3, 10.1)
BETTER = (9.0, 9.3, 9.1, 8.8, 9.2)


def measured(values: tuple[float, ...], error: float = 0.5) -> Measured:
    return Measured(values, (error,) * len(values))


def test_mean_deviation_and_standard_error_are_over_seeds() -> None:
    row = measured(BETTER)
    assert row.mean == pytest.approx(np.mean(BETTER))
    assert row.deviation == pytest.approx(np.std(BETTER, ddof=1))
    assert row.standard_error == pytest.approx(np.std(BETTER, ddof=1) / math.sqrt(5))
    assert row.text(1) == f"{np.mean(BETTER):.1f} ± {np.std(BETTER, ddof=1):.1f}"


def test_one_seed_has_the_standard_error_of_its_sequences() -> None:
    row = measured((7.25,), error=0.125)
    assert (row.deviation, row.standard_error, str(row)) == (None, 0.125, "7.25")
    against = Comparison.of(row, measured(IN_PLACE))
    assert not against.over_seeds


def test_a_difference_is_counted_in_standard_errors() -> None:
    against = Comparison.of(measured(BETTER), measured(IN_PLACE))
    variance = (np.var(BETTER, ddof=1) + np.var(IN_PLACE, ddof=1)) / 5
    assert against.difference == pytest.approx(np.mean(BETTER) - np.mean(IN_PLACE))
    assert against.number_of_errors == pytest.approx(against.difference / math.sqrt(variance))
    assert against.over_seeds


def test_verdicts_have_a_direction_and_a_threshold() -> None:
    better, worse = measured(BETTER), measured(IN_PLACE)
    assert Comparison.of(better, worse).verdict == "better"
    assert Comparison.of(worse, better).verdict == "worse"
    near = measured(tuple(value + 0.01 for value in IN_PLACE))
    assert Comparison.of(near, worse).verdict == "undecided"
    equal = Comparison.of(measured((1.0,), 0.0), measured((1.0,), 0.0))
    assert (equal.number_of_errors, equal.verdict) == (0.0, "undecided")


def test_units_change_values_and_errors_alike() -> None:
    row = measured((0.1, 0.2), error=0.05).scaled(100.0)
    assert row.values == pytest.approx((10.0, 20.0))
    assert row.errors == pytest.approx((5.0, 5.0))
