"""The weights of the evidence that predict best how people corrected a file of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from indel.levenshtein import edit_distance
from indel.text_repair.context import ContextScore
from indel.text_repair.corrections import likely_enough
from indel.text_repair.lines import Mender, Progress
from indel.text_repair.pairs import Pair, intended
from indel.text_repair.spelling import Place
from indel.text_repair.weights import EVIDENCE, RepairWeights, Weights

AGREEMENTS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_STEPS = 50
_SLIGHT = 1e-9  # a weight that decides nothing, but has the evidence collected


@dataclass(frozen=True)
class Example:
    """A place, which of its texts is right, and what it should be."""

    place: Place
    right: int
    """What was typed if none of the texts is right: such a place is best left alone."""
    intended: str


@dataclass(frozen=True)
class Tuned:
    """What a fit has come to."""

    weights: Weights
    kinds: tuple[str, ...]
    """The evidence that differs between texts anywhere, so that its weight was found."""
    examples: Sequence[Example]
    before: float
    """Mean −log p(right) with the weights that the fit started from."""
    after: float

    def wrong(self, agreement: float) -> int:
        """Wrong characters at the places of the examples if so much probability is asked for."""
        return sum(
            edit_distance(_answer(example.place, self.weights, agreement), example.intended)
            for example in self.examples
        )


def examples_of(
    pairs: Sequence[Pair],
    mender: Mender,
    *,
    network: bool = True,
    progress: Progress | None = None,
) -> list[Example]:
    """All places that are looked at in the noisy sentences, with the evidence of the network."""
    assert mender.spelling is not None
    slight = _SLIGHT if network else 0.0
    weights = replace(mender.spelling.weights, context_kept=slight, context_written=slight)
    scorer = ContextScore(mender.denoiser, weights, batch_size=mender.batch_size)
    found = mender.places([pair.noisy for pair in pairs], progress=progress)
    scored = iter(scorer([place for line in found for place in line], progress=progress))
    examples = []
    for pair, line in zip(pairs, found, strict=True):
        meant = intended(pair.noisy, pair.clean)
        for _ in line:
            place = next(scored)
            text = meant(place.correction.start, place.correction.end)
            if text:
                right = place.texts.index(text) if text in place.texts else 0
                examples.append(Example(place, right, text))
    return examples


def starting_weights(*, with_words: bool) -> Weights:
    """Where a fit starts: the default weights, or votes that count as shares."""
    start = RepairWeights().words if with_words else Weights(votes=1.0)
    return replace(start, contexts=start.contexts or _SLIGHT)


def tune(examples: Sequence[Example], start: Weights, *, spread: float = 1.0) -> Tuned:
    """Maximise Σ log p(right) − Σ (w − w₀)² / 2σ² over the weights of all evidence that there is.

    The weights start at w₀ and stay near it where the examples say little. The sum is concave, so
    Newton's method with halved steps finds the maximum.
    """
    columns = [
        column
        for column in range(len(EVIDENCE))
        if any(np.ptp(each.place.evidence[:, column]) > 0 for each in examples)
    ]
    kinds = tuple(EVIDENCE[column] for column in columns)
    rest = replace(start, **dict.fromkeys(kinds, 0.0))
    fixed = _vector(rest)
    tables = [(each.place.evidence[:, columns], each.place.evidence @ fixed) for each in examples]
    rights = [each.right for each in examples]
    origin = _vector(start)[columns]

    def value(w: NDArray[np.float64]) -> float:
        total = -((w - origin) ** 2).sum() / (2 * spread**2)
        for (table, offset), right in zip(tables, rights, strict=True):
            scores = table @ w + offset
            top = scores.max()
            total += scores[right] - top - np.log(np.exp(scores - top).sum())
        return float(total)

    w, best = origin.copy(), value(origin)
    for _ in range(_STEPS):
        gradient, curvature = _derivatives(w, tables, rights)
        gradient -= (w - origin) / spread**2
        step = np.linalg.solve(curvature + np.eye(len(w)) / spread**2, gradient)
        while (found := value(w + step)) < best and np.abs(step).max() > 1e-9:
            step = step / 2
        if found <= best + 1e-9:
            break
        w, best = w + step, found
    tuned = replace(start, **dict(zip(kinds, np.round(w, 3).tolist(), strict=True)))
    return Tuned(tuned, kinds, examples, _loss(examples, start), _loss(examples, tuned))


def _derivatives(
    w: NDArray[np.float64],
    tables: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
    rights: Sequence[int],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of Σ log p(right): the gradient, and the second derivative with its sign turned."""
    gradient, curvature = np.zeros(len(w)), np.zeros((len(w), len(w)))
    for (table, offset), right in zip(tables, rights, strict=True):
        scores = table @ w + offset
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        mean = shares @ table
        gradient += table[right] - mean
        curvature += (table * shares[:, None]).T @ table - np.outer(mean, mean)
    return gradient, curvature


def _loss(examples: Sequence[Example], weights: Weights) -> float:
    losses = [-np.log(each.place.probabilities(weights)[each.right]) for each in examples]
    return float(np.mean(losses)) if losses else 0.0


def _answer(place: Place, weights: Weights, agreement: float) -> str:
    shares = place.probabilities(weights)
    best = int(shares.argmax())
    typed = shares[place.texts.index(place.typed)]
    made = likely_enough(float(shares[best]), float(typed), agreement)
    return place.texts[best] if made else place.typed


def _vector(weights: Weights) -> NDArray[np.float64]:
    return np.array([getattr(weights, name) for name in EVIDENCE])
