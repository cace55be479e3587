"""χ² tests of samplers against enumerated probabilities."""

from collections.abc import Mapping

import numpy as np
import torch
from scipy import stats
from torch import Tensor

Outcome = tuple[tuple[int, ...], ...]


def chi_square_p(samples: Mapping[Outcome, int], probs: Mapping[Outcome, float]) -> float:
    """The p-value of counted samples whose law is `probs`; what is not listed is one cell.

    Cells expected fewer than forty times are pooled with it: so the χ² law holds.
    """
    total = sum(samples.values())
    impossible = [key for key in samples if probs.get(key, 1.0) == 0.0]
    assert not impossible, f"sampled, but of probability zero: {impossible[:3]}"
    large = [key for key, prob in probs.items() if prob * total >= 40]
    observed = [samples.get(key, 0) for key in large]
    expected = [probs[key] * total for key in large]
    observed.append(total - sum(observed))
    expected.append(total - sum(expected))
    if expected[-1] < 1e-6 * total:
        assert observed[-1] == 0, "sampled, but of probability zero"
        observed, expected = observed[:-1], expected[:-1]
    scaled = np.array(expected) * sum(observed) / sum(expected)
    return float(stats.chisquare(observed, scaled).pvalue)


def count(*columns: Tensor, lengths: Tensor, longest: int) -> dict[Outcome, int]:
    """How often each row occurs, a row being its entries of every column up to its length.

    Rows over the longest length are one outcome together, the empty tuple.
    """
    short = lengths <= longest
    digits = [lengths[:, None], *(column[:, :longest] for column in columns)]
    # One number a row, in a base that holds every token and the −1 of padding.
    table = torch.cat(digits, dim=1)[short] + 1
    base = int(table.max()) + 1 if len(table) else 1
    powers = base ** torch.arange(table.shape[1])
    _, first, counts = np.unique(
        (table * powers).sum(dim=1).numpy(), return_index=True, return_counts=True
    )
    starts = np.cumsum([1, *(digit.shape[1] for digit in digits[1:])])[:-1]
    outcomes: dict[Outcome, int] = {(): int((~short).sum())}
    for row, number in zip((table[first] - 1).tolist(), counts.tolist(), strict=True):
        outcomes[tuple(tuple(row[start : start + row[0]]) for start in starts)] = number
    return outcomes
