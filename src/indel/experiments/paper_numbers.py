"""What the paper reports, to stand beside what we measure."""

from __future__ import annotations

from typing import NamedTuple

RATES = (0.0, 0.4, 0.6, 0.8)
"""The insert/delete rates r of both tables; 0 is in place."""


class PaperValue(NamedTuple):
    """A mean over five seeds and its standard deviation."""

    mean: float
    deviation: float


BOUND = {
    0.0: PaperValue(39.95, 0.06),
    0.4: PaperValue(36.35, 0.07),
    0.6: PaperValue(35.71, 0.04),
    0.8: PaperValue(38.51, 0.17),
}
"""Table 1: bound on −log p(x_0) in nats."""

ERROR_RATE = {
    0.0: PaperValue(13.12, 2.40),
    0.4: PaperValue(5.70, 0.37),
    0.6: PaperValue(5.16, 0.27),
    0.8: PaperValue(6.48, 0.13),
}
"""Table 1: steps that differ from the commonest one, in percent."""

ARITHMETIC_EXAMPLES = 100_000 * 512
"""Table 1: examples that each run was trained on."""

BITS = {0.0: 1.669, 0.4: 1.759, 0.6: 1.789, 0.8: 1.844}
"""Table 2: bound in bits per character, the best of twelve learning-rate schedules."""

TEXT8_EXAMPLES = 1_000_000 * 512
"""Table 2: examples that each run was trained on."""

LEARNING_RATES = (5e-5, 1e-4, 2e-4, 5e-4)
"""Table 2: the sweep, each with every one of `SCHEDULES`."""

SCHEDULES = ("constant", "reciprocal-square-root", "cosine")

SENTENCE = "thisn sentsnetne wasstype vssry babdly"
"""Figure 4: to be repaired."""


def rate_name(rate: float) -> str:
    """How the paper's tables call a forward process.

    >>> rate_name(0.0), rate_name(0.4)
    ('in place', '0.4 insert/delete')
    """
    return f"{rate:g} insert/delete" if rate else "in place"
