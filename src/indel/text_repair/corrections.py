"""Corrections of letters become corrections of the text that the letters were read from."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice
from operator import mul
from typing import Protocol, runtime_checkable

from indel.text_repair.caution import keep_odds
from indel.text_repair.letters import Stretch, stretches
from indel.text_repair.lines import LetterRepair, Progress
from indel.text_repair.results import LEAST, Choice, Correction, Repair
from indel.text_repair.rewriting import rewrite
from indel.text_repair.votes import LetterCorrection

MOST_ALTERNATIVES = 5
_ROUNDING = 1e-9


@runtime_checkable
class LetterMender(Protocol):
    """What mends lines of letters: `indel.text_repair.lines.Mender`."""

    @property
    def draws(self) -> int:
        """How often each line is drawn."""

    def __call__(
        self, lines: Sequence[str], *, progress: Progress | None = None
    ) -> list[LetterRepair]:
        """What the draws make of each line."""


def mend(
    texts: Sequence[str],
    mender: LetterMender,
    *,
    agreement: float,
    progress: Progress | None = None,
) -> list[Repair]:
    """Repair texts, with all their letters in one call of the mender.

    A correction is made if its likeliest choice changes something and is `likely_enough`; otherwise
    it is a doubt.
    """
    cut = [stretches(text) for text in texts]
    lines = [stretch.letters for found in cut for stretch in found]
    mended = iter(mender(lines, progress=progress))
    repairs = []
    for text, found in zip(texts, cut, strict=True):
        places = [
            _Place.of(text, stretch, correction, agreement)
            for stretch, line in zip(found, islice(mended, len(found)), strict=True)
            for correction in line.corrections
        ]
        repairs.append(_assembled(text, [place for place in places if place.matters], mender.draws))
    return repairs


def likely_enough(choice: float, typed: float, agreement: float) -> bool:
    """Whether a choice is made, by its probability and that of what was typed.

    Between these two alone it needs the probability `agreement`: a lead of 2 · agreement − 1. Where
    what was typed is all but impossible the rest is shared by other choices, none of which is
    better served by leaving it, so the lead decides; but a choice must be likelier than not, unless
    less is asked for.

    >>> likely_enough(0.6, 0.4, 0.6), likely_enough(0.55, 0.45, 0.6)
    (True, False)
    >>> likely_enough(0.55, 0.0, 0.6), likely_enough(0.45, 0.0, 0.6), likely_enough(0.55, 0.0, 0.9)
    (True, False, False)
    """
    return choice >= min(agreement, 0.5) and choice - typed >= 2 * agreement - 1 - _ROUNDING


@dataclass(frozen=True)
class _Place:
    """A correction in the text, what each draw writes there, and whether it is made."""

    correction: Correction
    votes: tuple[str, ...]
    made: bool

    @classmethod
    def of(cls, text: str, stretch: Stretch, found: LetterCorrection, agreement: float) -> _Place:
        start, end = stretch.span(found.start, found.end)
        before = text[start:end]
        written = {
            letters: rewrite(text, stretch, found.start, found.end, letters)
            for letters in (*found.votes, *(choice.text for choice in found.choices))
        }
        # What differs in letters may be the same in the text, where some of them must not change.
        shares: dict[str, float] = {}
        for choice in found.choices:
            shares.setdefault(written[choice.text], 0.0)
            shares[written[choice.text]] += choice.probability
        cautious = _cautious(shares, text, start, end)
        ranked = sorted(cautious.items(), key=lambda item: -item[1])
        correction = Correction(start, end, before, tuple(Choice(*item) for item in ranked))
        made = correction.after != before and likely_enough(
            correction.probability, cautious.get(before, 0.0), agreement
        )
        return cls(correction, tuple(written[vote] for vote in found.votes), made)

    @property
    def matters(self) -> bool:
        """Whether any draw changes something that may be changed."""
        return any(choice.text != self.correction.before for choice in self.correction.choices)

    @property
    def answer(self) -> str:
        """What stands here in the end."""
        return self.correction.after if self.made else self.correction.before

    @cached_property
    def probability(self) -> float:
        """How likely the answer is."""
        written = {choice.text: choice.probability for choice in self.correction.choices}
        return written.get(self.answer, 0.0)


def _cautious(shares: dict[str, float], text: str, start: int, end: int) -> dict[str, float]:
    """The probabilities once the looks of the word are known: Bayes' rule with its odds."""
    odds, before = keep_odds(text, start, end), text[start:end]
    if odds == 1 or shares.keys() <= {before}:
        return shares
    # What is not listed may still be as likely as the least that would be.
    kept = odds * max(shares.get(before, 0.0), LEAST)
    total = kept + sum(share for written, share in shares.items() if written != before)
    return {
        written: (kept if written == before else shares[written]) / total
        for written in {before: None, **shares}
    }


def _assembled(text: str, places: Sequence[_Place], draws: int) -> Repair:
    return Repair(
        original=text,
        text=_written(text, places, (place.answer for place in places)),
        corrections=tuple(place.correction for place in places if place.made),
        doubts=tuple(place.correction for place in places if not place.made),
        alternatives=_alternatives(text, places),
        draws=tuple(
            _written(text, places, (place.votes[number] for place in places))
            for number in range(draws)
        ),
    )


def _written(text: str, places: Sequence[_Place], answers: Iterable[str]) -> str:
    """The text with an answer at each place."""
    pieces = []
    end = 0
    for place, answer in zip(places, answers, strict=True):
        pieces += [text[end : place.correction.start], answer]
        end = place.correction.end
    return "".join(pieces) + text[end:]


def _alternatives(text: str, places: Sequence[_Place]) -> tuple[Choice, ...]:
    """The likeliest texts that differ from the answer at one place; the places are independent."""
    shares = [place.probability for place in places]
    before = list(accumulate(shares, mul, initial=1.0))
    after = list(accumulate(reversed(shares), mul, initial=1.0))[::-1]
    others = [
        (_ratio(choice.probability, shares[number]), number, choice)
        for number, place in enumerate(places)
        for choice in place.correction.choices
        if choice.text != place.answer
    ]
    # By ratios: in a long text the products of all the places are too small to compare.
    best = heapq.nlargest(MOST_ALTERNATIVES, others, key=lambda other: other[0])
    found = []
    for _, number, choice in best:
        answers = [place.answer for place in places]
        answers[number] = choice.text
        probability = before[number] * choice.probability * after[number + 1]
        found.append(Choice(_written(text, places, answers), probability))
    return tuple(found)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.inf
