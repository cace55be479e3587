"""Repair measured on pairs of a noisy and a clean sentence, beside other ways to correct them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indel.levenshtein import edit_distance
from indel.text_repair.pairs import Pair, intended
from indel.text_repair.results import Repair
from indel.text_repair.scoring import kept_words

RESAMPLES = 10_000
_AT_ONCE = 250  # resamples; the memory of one draw of indices is this times the sentences


@dataclass(frozen=True)
class Result:
    """What one way to correct makes of all pairs."""

    pairs: Sequence[Pair]
    outputs: Sequence[str]
    seconds: float

    @cached_property
    def wrong(self) -> NDArray[np.int64]:
        """Wrong characters of each output: its edit distance from the clean sentence."""
        pairs = zip(self.pairs, self.outputs, strict=True)
        return np.array([edit_distance(output, pair.clean) for pair, output in pairs])

    @cached_property
    def characters(self) -> NDArray[np.int64]:
        """Characters of each clean sentence."""
        return np.array([len(pair.clean) for pair in self.pairs])

    @property
    def error_rate(self) -> float:
        """CER: wrong characters over clean characters, of all sentences together."""
        return float(self.wrong.sum() / self.characters.sum())

    @property
    def exact(self) -> float:
        """The share of sentences that are as they should be."""
        return float((self.wrong == 0).mean())

    @cached_property
    def untouched(self) -> float:
        """Of the words that were correct, aligned word by word, the share that is still there."""
        correct = kept = 0
        for pair, output in zip(self.pairs, self.outputs, strict=True):
            words = pair.noisy.split()
            right = kept_words(words, pair.clean.split())
            correct += len(right)
            kept += len(right & kept_words(words, output.split()))
        return kept / correct if correct else 1.0

    @property
    def speed(self) -> float:
        """Noisy characters per second of processor time; infinite where there was nothing to do."""
        total = sum(len(pair.noisy) for pair in self.pairs)
        return total / self.seconds if self.seconds else float("inf")


class Difference(NamedTuple):
    """Of two error rates, with a 95 % interval; below zero the first is better."""

    mean: float
    low: float
    high: float


class Bin(NamedTuple):
    """The places whose likeliest correction has a probability between two bounds."""

    low: float
    high: float
    places: int
    mean: float
    """The mean of their probabilities."""
    right: float
    """The share of them at which the correction is right."""


def reliability(pairs: Sequence[Pair], repairs: Sequence[Repair], *, bins: int = 10) -> list[Bin]:
    """How often corrections are right, by their probability; equal where these mean what they say.

    All places whose likeliest choice changes something count, whether it was made or not.
    """
    found: list[tuple[float, bool]] = []
    for pair, repair in zip(pairs, repairs, strict=True):
        meant = intended(pair.noisy, pair.clean)
        for each in (*repair.corrections, *repair.doubts):
            if each.after != each.before:
                found.append((each.probability, meant(each.start, each.end) == each.after))
    table = []
    for number in range(bins):
        low, high = number / bins, (number + 1) / bins
        # Certainty belongs to the last one.
        inside = [each for each in found if number == min(int(each[0] * bins), bins - 1)]
        if inside:
            probabilities, right = zip(*inside, strict=True)
            table.append(
                Bin(low, high, len(inside), float(np.mean(probabilities)), float(np.mean(right)))
            )
    return table


def measure(pairs: Sequence[Pair], correct: Callable[[Sequence[str]], list[str]]) -> Result:
    """Correct all noisy sentences at once, and take the time that processors spend on it."""
    start = _processor_seconds()
    outputs = correct([pair.noisy for pair in pairs])
    return Result(pairs, outputs, _processor_seconds() - start)


def _processor_seconds() -> float:
    """Of this process and of those that it has started and waited for, on all cores together."""
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


def as_typed(pairs: Sequence[Pair]) -> Result:
    """Correct nothing."""
    return Result(pairs, [pair.noisy for pair in pairs], 0.0)


def difference(first: Result, second: Result, *, seed: int) -> Difference:
    """How much more the first gets wrong than the second, by a paired bootstrap over sentences.

    Sentences are drawn with replacement, each with what both made of it, 10,000 times.
    """
    extra, characters = first.wrong - second.wrong, first.characters
    generator = np.random.default_rng(seed)
    rates = []
    for _ in range(RESAMPLES // _AT_ONCE):
        drawn = generator.integers(len(extra), size=(_AT_ONCE, len(extra)))
        # Empty clean sentences alone have no rate.
        rates.append(extra[drawn].sum(1) / np.maximum(characters[drawn].sum(1), 1))
    low, high = np.quantile(np.concatenate(rates), [0.025, 0.975])
    return Difference(float(extra.sum() / characters.sum()), float(low), float(high))
