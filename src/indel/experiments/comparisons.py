"""Means over seeds, and by how many standard errors one forward process beats another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, stdev

DECISIVE = 2.0
"""Differences of more standard errors than this are called differences."""


@dataclass(frozen=True)
class Measured:
    """One measure of all runs of a row: a value a seed, each with its own standard error.

    >>> str(Measured((1.0, 2.0, 3.0), (0.1, 0.1, 0.1)))
    '2.00 ± 1.00'
    """

    values: tuple[float, ...]
    errors: tuple[float, ...]
    """Of each value, over the sequences it was measured on."""

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the seeds; None for one seed."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def standard_error(self) -> float:
        """Of the mean: over the seeds, or, for one seed, over the sequences."""
        if self.deviation is None:
            return self.errors[0]
        return self.deviation / math.sqrt(len(self.values))

    def scaled(self, factor: float) -> Measured:
        """The same in another unit."""
        return Measured(
            tuple(factor * value for value in self.values),
            tuple(factor * error for error in self.errors),
        )

    def __str__(self) -> str:
        return self.text(2)

    def text(self, digits: int) -> str:
        """Mean ± standard deviation; without the latter for one seed."""
        mean = f"{self.mean:.{digits}f}"
        return mean if self.deviation is None else f"{mean} ± {self.deviation:.{digits}f}"


@dataclass(frozen=True)
class Comparison:
    """How a row differs from the in-place row; less is better in all that we measure."""

    difference: float
    standard_error: float
    over_seeds: bool

    @classmethod
    def of(cls, row: Measured, baseline: Measured) -> Comparison:
        """Means of independent runs: the variances add up."""
        return cls(
            row.mean - baseline.mean,
            math.hypot(row.standard_error, baseline.standard_error),
            row.deviation is not None and baseline.deviation is not None,
        )

    @property
    def number_of_errors(self) -> float:
        """The difference in standard errors; negative: lower, so better."""
        if self.standard_error == 0.0:
            return math.copysign(math.inf, self.difference) if self.difference else 0.0
        return self.difference / self.standard_error

    @property
    def verdict(self) -> str:
        """In a word."""
        if abs(self.number_of_errors) <= DECISIVE:
            return "undecided"
        return "better" if self.difference < 0 else "worse"
