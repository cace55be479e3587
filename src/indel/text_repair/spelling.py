"""Votes of draws and counts of words, joined by the exact probability of each typing error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from indel.batch import Batch
from indel.process import Schedule, log_prob
from indel.text_repair.known_words import KnownWords
from indel.text_repair.results import Choice
from indel.text_repair.votes import LetterCorrection
from indel.tokens import Vocabulary

_LEAST = 1e-3  # choices less likely than this are not worth a line


@dataclass(frozen=True)
class Spelling:
    """p(w | typed) ∝ (v(w) + ε) · n(w) · q(typed | w), over words w drawn or known, and pairs.

    v is the share of the draws that write w, n how often w stands in the training text, and q the
    forward process itself, in closed form: so any number of letters may be missing, wrong or too
    many. Without known words the votes alone count.

    Paper: App. B.2 for q(typed | w)
    """

    words: KnownWords
    vocabulary: Vocabulary
    schedule: Schedule
    t: int = 3
    """The noise that q assumes; at least 2, since what is inserted or deleted in step t itself
    shows as a mark and not in the letters."""
    smoothing: float = 1.0
    """ε: what a word counts that no draw wrote. The larger, the less the draws matter."""
    unknown: float = 0.01
    """n of a word that is not known."""
    trust: float = 30.0
    """How much more often than q says people type what they mean, if all words are known."""
    _found: dict[str, list[tuple[str, float]]] = field(default_factory=dict, compare=False)

    def asks(self, before: str) -> bool:
        """Whether a stretch is looked at even if no draw changes it: a word that is not known."""
        return " " not in before and before not in self.words.counts

    def __call__(self, before: str, correction: LetterCorrection) -> LetterCorrection:
        """The same place and votes, with all likely choices and new probabilities."""
        votes = {choice.text: choice.probability for choice in correction.choices}
        evidence = dict(self._known(before)) if self.asks(before) else {}
        drawn = [text for text in votes if text not in evidence]
        evidence |= zip(drawn, self._evidence(before, drawn), strict=True)
        logs = {
            text: math.log(votes.get(text, 0.0) + self.smoothing) + value
            for text, value in evidence.items()
            if value > -math.inf
        }
        if before in logs and self.words.knows(before):
            logs[before] += math.log(self.trust)
        largest = max(logs.values())
        weights = {text: math.exp(value - largest) for text, value in logs.items()}
        total = sum(weights.values())
        choices = [Choice(text, weight / total) for text, weight in weights.items()]
        ranked = sorted(choices, key=lambda choice: (-choice.probability, choice.text))
        likely = [choice for choice in ranked if choice.probability >= _LEAST]
        return LetterCorrection(correction.start, correction.end, tuple(likely), correction.votes)

    def _known(self, before: str) -> list[tuple[str, float]]:
        """The word as it stands and known words near it, with their evidence."""
        if before not in self._found:
            texts = [before, *self.words.near(before), *self.words.split(before)]
            scored = zip(texts, self._evidence(before, texts), strict=True)
            ranked = sorted(scored, key=lambda item: -item[1])[:20]
            self._found[before] = ranked
        return self._found[before]

    def _evidence(self, before: str, texts: Sequence[str]) -> list[float]:
        """log (n(w) · q(typed | w))."""
        if not texts:
            return []
        x_0 = Batch.from_lists([self.vocabulary.encode(text) for text in texts])
        x_t = Batch.from_lists([self.vocabulary.encode(before)] * len(texts))
        logs = log_prob(self.schedule, x_0, x_t, self.t).tolist()
        return [
            value + self.words.log_count(text, unknown=self.unknown)
            for text, value in zip(texts, logs, strict=True)
        ]
