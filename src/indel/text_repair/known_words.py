"""The words of the text that a model was trained on, and how often each stands there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indel.files import write_output
from indel.model.folders import WORDS

_SIGNS = 32  # a–z have different remainders


@dataclass(frozen=True)
class KnownWords:
    """Counts of words: what a small network cannot hold of the words that it has met."""

    counts: Mapping[str, int]

    @classmethod
    def of(cls, text: str, *, least: int = 1) -> KnownWords:
        """The words that stand in a text at least so often.

        >>> KnownWords.of("to be or not to be", least=2).counts
        {'to': 2, 'be': 2}
        """
        counts = Counter(text.split())
        return cls({word: count for word, count in counts.most_common() if count >= least})

    @classmethod
    def read(cls, folder: str | Path) -> KnownWords | None:
        """The words in the folder of a model, if there are any."""
        path = Path(folder) / WORDS
        if not path.is_file():
            return None
        counts = {}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            word, _, count = line.partition(" ")
            if not word or not count.isdecimal():
                raise ValueError(
                    f"{path}, line {number}: expected a word and a count, got {line!r}"
                )
            counts[word] = int(count)
        return cls(counts)

    def write(self, folder: Path) -> None:
        """Write a line for each word, so that `read` finds them again."""
        lines = (f"{word} {count}\n" for word, count in self.counts.items())
        write_output(folder / WORDS, "".join(lines).encode())

    def knows(self, text: str) -> bool:
        """Whether all words of a text are known."""
        return all(word in self.counts for word in text.split())

    def log_count(self, text: str, *, unknown: float) -> float:
        """How often words would follow each other by chance: log (Π n_i / N^(k−1))."""
        words = text.split()
        found = sum(math.log(self.counts.get(word, unknown)) for word in words)
        return found - (len(words) - 1) * math.log(self._total)

    def near(self, word: str, distance: int = 2) -> list[str]:
        """The known words that may be at most so many edits away, and some more.

        An edit changes the length by at most one, and the set of letters by at most two.
        """
        close = np.flatnonzero(np.abs(self._lengths - len(word)) <= distance)
        differing = (self._letters[close] != _letter_set(word)).sum(axis=1)
        return [self._words[place] for place in close[differing <= 2 * distance]]

    def split(self, word: str) -> list[str]:
        """The pairs of known words that are written as one.

        >>> KnownWords({"a": 9, "lot": 3, "al": 1}).split("alot")
        ['a lot']
        """
        cuts = ((word[:place], word[place:]) for place in range(1, len(word)))
        return [f"{a} {b}" for a, b in cuts if a in self.counts and b in self.counts]

    @cached_property
    def _total(self) -> int:
        return max(1, sum(self.counts.values()))

    @cached_property
    def _words(self) -> tuple[str, ...]:
        return tuple(self.counts)

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        return np.array([len(word) for word in self._words], dtype=np.int64)

    @cached_property
    def _letters(self) -> NDArray[np.bool_]:
        found = [_letter_set(word) for word in self._words]
        return np.array(found, dtype=np.bool_).reshape(-1, _SIGNS)


def _letter_set(word: str) -> NDArray[np.bool_]:
    """Which letters a word has; signs other than a–z may share a place, so more words are near."""
    found = np.zeros(_SIGNS, dtype=np.bool_)
    found[[ord(letter) % _SIGNS for letter in word]] = True
    return found
