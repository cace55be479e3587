"""All evidence on how words were meant, weighed: counts, typing errors, draws, the network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from indel.text_repair.candidates import SPACE, Candidates
from indel.text_repair.derived_words import is_derived
from indel.text_repair.known_words import KnownWords
from indel.text_repair.letter_contexts import LetterContexts
from indel.text_repair.results import LEAST, Choice
from indel.text_repair.typing_channel import TypingChannel
from indel.text_repair.votes import LetterCorrection
from indel.text_repair.weights import EVIDENCE, Weights

_FIRST, _MOST = 60, 20  # candidates that all evidence is collected for, and that are kept
_SMOOTHING = 0.05  # ε of the votes
_SUSPICIOUS = 2.0
"""A known word is looked at if another, one edit away, has e² times its evidence or more."""
_NEARBY = 100  # letters on either side that say how badly a text is typed
_MANY = 0.4  # a share of unknown words that makes it a badly typed one
_READINGS = 4  # of a neighbor, those that a place is seen between
_LONGEST = 40  # letters of a stretch that is looked up

_COLUMN = {name: column for column, name in enumerate(EVIDENCE)}
_CONTEXT = [_COLUMN["context_kept"], _COLUMN["context_written"]]


@dataclass(frozen=True)
class Place:
    """A stretch letters[start:end], the texts that may stand there, and the evidence for each."""

    letters: str
    correction: LetterCorrection
    texts: tuple[str, ...]
    """What was typed is the first."""
    evidence: NDArray[np.float64]
    """A row for each text, a column for each of `weights.EVIDENCE`."""

    @property
    def typed(self) -> str:
        """What stands there."""
        return self.texts[0]

    def probabilities(self, weights: Weights) -> NDArray[np.float64]:
        """p(text | typed) for each text."""
        scores = self.evidence @ np.array([getattr(weights, name) for name in EVIDENCE])
        found = np.exp(scores - scores.max())
        return np.asarray(found / found.sum())

    def with_context(self, rows: Sequence[int], scores: Sequence[tuple[float, float]]) -> Place:
        """The same with the network's scores for some of the texts; others are dropped."""
        evidence = self.evidence[list(rows)]
        evidence[:, _CONTEXT] = scores
        return replace(self, texts=tuple(self.texts[row] for row in rows), evidence=evidence)

    def corrected(self, weights: Weights) -> LetterCorrection:
        """The correction with all likely choices and their probabilities."""
        shares = self.probabilities(weights).tolist()
        choices = [Choice(*each) for each in zip(self.texts, shares, strict=True)]
        ranked = sorted(choices, key=lambda choice: (-choice.probability, choice.text))
        likely = tuple(choice for choice in ranked if choice.probability >= LEAST)
        return replace(self.correction, choices=likely)


@dataclass(frozen=True)
class Spelling:
    """Finds the texts that may be meant for a stretch of words, and the evidence for each of them.

    Without known words the candidates are what the draws write.
    """

    channel: TypingChannel
    weights: Weights
    words: KnownWords | None = None
    contexts: LetterContexts | None = None

    def loose_spaces(self, letters: str) -> set[int]:
        """The spaces that may be there by mistake: what is around them is looked at whole."""
        if self.words is None:
            return set()
        candidates, found = self._candidates, set[int]()
        words, end, joined = letters.split(SPACE), -1, False
        for first, second in pairwise(words):
            end += len(first) + 1
            short = len(first) + len(second) < _LONGEST
            joined = not joined and short and candidates.may_be_one(first, second)
            if joined:
                found.add(end)
        return found

    def asks(self, letters: str, start: int, end: int) -> bool:
        """Whether a stretch is looked at even if no draw changes it.

        A word that is not known, or one edit away from a word with far more evidence.
        """
        stretch = letters[start:end]
        if self.words is None or not stretch or len(stretch) > _LONGEST:
            return False
        if not self.words.knows(stretch):
            return True
        return SPACE not in stretch and len(stretch) > 2 and self._suspicious(letters, start, end)

    def place(self, letters: str, correction: LetterCorrection) -> Place:
        """The evidence on one stretch; the network's columns are zero."""
        start, end = correction.start, correction.end
        typed = letters[start:end]
        votes = {choice.text: choice.probability for choice in correction.choices}
        texts = list(dict.fromkeys([typed, *votes, *self._looked_up(letters, start, end)]))
        log_probs = self.channel.log_probs(typed, texts, bad=self._badly_typed(letters, start, end))
        typing = dict(zip(texts, log_probs, strict=True))
        around = _around(letters, start, end)
        # What q cannot make has no weight: −∞ times a weight of 0 would not be a number.
        possible = [text for text in texts if text == typed or typing[text] > -math.inf]
        chosen = [
            typed,
            *sorted(possible[1:], key=lambda text: -self._prior(text, typing))[:_FIRST],
        ]
        rows = [self._evidence(typed, text, typing[text], votes, around) for text in chosen]
        evidence = np.array(rows)
        evidence[:, _COLUMN["contexts"]] = self._fits(letters[:start], chosen, letters[end:])
        found = Place(letters, correction, tuple(chosen), evidence)
        order = np.argsort(-found.probabilities(self.weights)[1:], kind="stable")[: _MOST - 1] + 1
        best = [0, *order.tolist()]
        return replace(
            found, texts=tuple(found.texts[i] for i in best), evidence=found.evidence[best]
        )

    def with_neighbors(self, places: Sequence[Place]) -> list[Place]:
        """The places of one line, each seen between what its neighbors probably mean."""
        if self.words is None or not self.words.pairs.counts:
            return list(places)
        readings = [self._readings(place) for place in places]
        guesses = [likeliest[0][0] for likeliest in readings]
        found = []
        for number, place in enumerate(places):
            before, after = _around(place.letters, place.correction.start, place.correction.end)
            start, end = place.correction.start, place.correction.end
            if number and places[number - 1].correction.end == start - 1:
                before = guesses[number - 1].rpartition(SPACE)[2]
            if number + 1 < len(places) and places[number + 1].correction.start == end + 1:
                after = guesses[number + 1].partition(SPACE)[0]
            evidence = place.evidence.copy()
            evidence[:, _COLUMN["pairs"]] = [
                self.words.log_ratio(before, *text.split(), after) for text in place.texts
            ]
            if len(places) > 1:  # alone it was seen between the same letters before
                evidence[:, _COLUMN["contexts"]] = self._fits_between(places, readings, number)
            found.append(replace(place, evidence=evidence))
        return found

    def _fits(self, before: str, texts: Sequence[str], after: str) -> NDArray[np.float64]:
        """How well each text fits there by the contexts of letters, if that counts at all."""
        if self.contexts is None or not self.weights.contexts:
            return np.zeros(len(texts))
        return self.contexts.log_probs(before, texts, after)

    def _fits_between(
        self, places: Sequence[Place], readings: Sequence[list[tuple[str, float]]], number: int
    ) -> NDArray[np.float64]:
        """The same where the places on both sides may mean several things: log Σ p(these) p."""
        letters, here = places[number].letters, places[number].correction
        lefts, rights = [("", 0.0)], [("", 0.0)]
        low, high = 0, len(letters)
        if number:
            lefts, low = readings[number - 1], places[number - 1].correction.end
        if number + 1 < len(places):
            rights, high = readings[number + 1], places[number + 1].correction.start
        start = places[number - 1].correction.start if number else 0
        end = places[number + 1].correction.end if number + 1 < len(places) else len(letters)
        found = [
            p
            + q
            + self._fits(
                letters[:start] + left + letters[low : here.start],
                places[number].texts,
                letters[here.end : high] + right + letters[end:],
            )
            for left, p in lefts
            for right, q in rights
        ]
        return np.asarray(np.logaddexp.reduce(found, axis=0))

    def _readings(self, place: Place) -> list[tuple[str, float]]:
        """The likeliest texts of a place with their log-probabilities."""
        shares = place.probabilities(self.weights)
        best = np.argsort(-shares, kind="stable")[:_READINGS]
        return [(place.texts[row], math.log(shares[row])) for row in best if shares[row] > 0]

    @cached_property
    def _candidates(self) -> Candidates:
        assert self.words is not None
        return Candidates(self.words)

    def _badly_typed(self, letters: str, start: int, end: int) -> bool:
        """Whether many words around a place are unknown: then more errors in one are likely too."""
        if self.words is None:
            return False
        nearby = letters[max(0, start - _NEARBY) : end + _NEARBY].split()
        unknown = sum(word not in self.words.trusted for word in nearby)
        return len(nearby) > 2 and unknown > _MANY * len(nearby)

    def _looked_up(self, letters: str, start: int, end: int) -> list[str]:
        stretch = letters[start:end]
        if not self.asks(letters, start, end):
            return []
        if SPACE not in stretch and self._candidates.words.knows(stretch):
            return self._candidates.neighbors(stretch)
        return self._candidates(stretch)

    def _suspicious(self, letters: str, start: int, end: int) -> bool:
        word = letters[start:end]
        around = _around(letters, start, end)
        own = self._fit(word, around)
        neighbors = self._candidates.neighbors(word)[1:]
        return any(self._fit(other, around) - own > _SUSPICIOUS for other in neighbors)

    def _fit(self, word: str, around: tuple[str, str]) -> float:
        """How well a known word fits, whatever was typed."""
        assert self.words is not None
        ratio = self.words.log_ratio(around[0], word, around[1])
        return self.weights.count * self.words.log_count(word) + self.weights.pairs * ratio

    def _prior(self, text: str, typing: Mapping[str, float]) -> float:
        """Counts and typing alone: enough to leave out what cannot win."""
        count = self.words.log_count(text) if self.words is not None else 0.0
        return self.weights.count * count + self.weights.typing * typing[text]

    def _evidence(
        self,
        typed: str,
        text: str,
        log_q: float,
        votes: Mapping[str, float],
        around: tuple[str, str],
    ) -> list[float]:
        spaces = text.count(SPACE) - typed.count(SPACE)
        found = {
            "typing": log_q,
            "kept": float(text == typed),
            "split": float(max(0, spaces)),
            "joined": float(max(0, -spaces)),
            "first_letter": float(text[:1] != typed[:1]),
            "votes": math.log(votes.get(text, 0.0) / _SMOOTHING + 1) if votes else 0.0,
        }
        if self.words is not None:
            unknown = [word for word in text.split() if word not in self.words.trusted]
            letters = [p for word in unknown for p in self.words.letters_log_probs(word)]
            if unknown:
                found["kept"] = 0.0
            found |= {
                "count": self.words.log_count(text),
                "unknown": float(len(unknown)),
                "letters": sum(letters),
                "derived": float(
                    sum(is_derived(w, self.words.trusted.__contains__) for w in unknown)
                ),
                "pairs": self.words.log_ratio(around[0], *text.split(), around[1]),
            }
        return [found.get(name, 0.0) for name in EVIDENCE]


def _around(letters: str, start: int, end: int) -> tuple[str, str]:
    """The words before and after a stretch; empty where there is none."""
    before = letters[max(0, start - _LONGEST) : max(start - 1, 0)].rpartition(SPACE)[2]
    after = letters[end + 1 : end + _LONGEST].partition(SPACE)[0]
    return before, after
