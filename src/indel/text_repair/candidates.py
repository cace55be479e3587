"""What a typed word may have been meant to be, among known words: near ones, pairs, joined ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from indel.text_repair.known_words import KnownWords

SPACE = " "
_FREQUENT = 50
"""Both words of a pair that was run together with another error stand there at least so often."""
_BEST_OF_EACH = 5


@dataclass(frozen=True)
class Candidates:
    """The texts that are weighed against each other for a stretch of words."""

    words: KnownWords
    _of_word: dict[str, list[str]] = field(default_factory=dict, compare=False)

    def __call__(self, typed: str) -> list[str]:
        """The stretch itself first, then what may be meant, each once."""
        each = [self._word(word) for word in typed.split(SPACE)]
        if len(each) == 1:
            return each[0]
        joined = typed.replace(SPACE, "")
        kept = (
            SPACE.join(chosen) for chosen in product(*(self._likeliest(found) for found in each))
        )
        return list(dict.fromkeys([typed, joined, *self.words.neighbors(joined), *kept]))

    def neighbors(self, word: str) -> list[str]:
        """The word itself and all that is one edit away: for words that are known themselves."""
        return [word, *self.words.neighbors(word)]

    def may_be_one(self, first: str, second: str) -> bool:
        """Whether two words, one of them unknown, may be a known one with a space put in."""
        known = self.words.trusted
        return (first not in known or second not in known) and first + second in known

    def _word(self, word: str) -> list[str]:
        if word not in self._of_word:
            near = self.words.near(word, reach(word))
            split = self.words.split(word)
            if not split and not self.words.neighbors(word):
                split = self._nearly_split(word)
            self._of_word[word] = list(dict.fromkeys([word, *near, *split]))
        return self._of_word[word]

    def _likeliest(self, found: list[str]) -> list[str]:
        counts = self.words.counts
        typed, *others = found
        if typed in self.words.trusted:
            return [typed]
        single = sorted((w for w in others if w in counts), key=lambda w: -counts[w])
        close = [w for w in self.words.neighbors(typed) if w in counts]
        return list(dict.fromkeys([typed, *close[:_BEST_OF_EACH], *single[:_BEST_OF_EACH]]))

    def _nearly_split(self, word: str) -> list[str]:
        """Pairs of frequent words, run together with one more error or a letter for the space.

        *wasstype*: *was type*, *was typed*, *was types*, …
        """
        found = []
        for cut in range(1, len(word)):
            for skipped in (0, 1):
                left, right = word[:cut], word[cut + skipped :]
                if not right:
                    continue
                lefts, rights = self._frequent(left), self._frequent(right)
                if left in lefts:
                    found += [f"{left} {other}" for other in rights]
                if right in rights and not skipped:
                    found += [f"{other} {right}" for other in lefts]
        return found

    def _frequent(self, part: str) -> list[str]:
        """A part of a word itself, if it is a frequent word, and frequent words one edit away."""
        counts = self.words.counts
        near = self.words.neighbors(part) if len(part) > 2 else []
        return [word for word in (part, *near) if counts.get(word, 0) >= _FREQUENT]


def reach(word: str) -> int:
    """How many edits away a known word may be: the more, the longer the word is."""
    return next((edits for edits, shorter in ((1, 3), (2, 6), (3, 9)) if len(word) < shorter), 4)
