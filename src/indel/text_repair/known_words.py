"""The words of the text that a model was trained on, and how often each stands there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indel.atomic_files import write_output
from indel.model.saving import WORDS
from indel.text_repair.near_words import NearWords
from indel.text_repair.word_pairs import WordPairs

_PAIRED = 0.8
"""λ: how much of the probability of a word comes from the one before it."""


@dataclass(frozen=True)
class KnownWords:
    """Counts of words: what a small network cannot hold of the words that it has met."""

    counts: Mapping[str, int]
    pairs: WordPairs = field(default_factory=WordPairs)
    """How often two of them follow each other."""

    @classmethod
    def of(cls, text: str, *, least: int = 1, most_pairs: int = 0) -> KnownWords:
        """The words that stand in a text at least so often, and the most frequent pairs of words.

        >>> KnownWords.of("to be or not to be", least=2).counts
        {'to': 2, 'be': 2}
        """
        counts = Counter(text.split())
        return cls(
            {word: count for word, count in counts.most_common() if count >= least},
            WordPairs.of(text, most=most_pairs) if most_pairs else WordPairs(),
        )

    @cached_property
    def trusted(self) -> frozenset[str]:
        """The known words without those that are misspellings of far more frequent ones.

        A word of six letters or more is one if a swap, another vowel, or a letter doubled or not
        makes it a word that stands there a hundred times as often; so is what is more often
        written as a pair of words. Shorter words are too easily like one another.

        >>> words = KnownWords({"receive": 900, "recieve": 8, "relieve": 60})
        >>> sorted(words.trusted)
        ['receive', 'relieve']
        """
        frequent = {word: count for word, count in self.counts.items() if count >= _MISSPELT}
        wrong = {
            other
            for word, count in frequent.items()
            for other in misspellings(word)
            if len(other) >= _SHORTEST and self.counts.get(other, count) * _MISSPELT <= count
        }
        wrong |= {
            first + second
            for (first, second), count in self.pairs.counts.items()
            if self.counts.get(first + second, count) * _MISSPELT <= count
        }
        return frozenset(self.counts.keys() - wrong)

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
        return cls(counts, WordPairs.read(Path(folder)))

    def write(self, folder: Path) -> None:
        """Write a line for each word, and the pairs, so that `read` finds them again."""
        lines = (f"{word} {count}\n" for word, count in self.counts.items())
        write_output(folder / WORDS, "".join(lines).encode())
        if self.pairs.counts:
            self.pairs.write(folder)

    def knows(self, text: str) -> bool:
        """Whether all words of a text are known, and no misspellings."""
        return all(word in self.trusted for word in text.split())

    def log_count(self, text: str) -> float:
        """How often words would follow each other by chance: log (Π n_i / N^(k−1)).

        A word that is not known is left out of the product.
        """
        words = text.split()
        found = sum(math.log(self.counts[word]) for word in words if word in self.trusted)
        return found - (len(words) - 1) * math.log(self.total)

    def log_ratio(self, *sequence: str) -> float:
        """How much more likely words are after each other than by chance, as a logarithm.

        Σ log (1 − λ + λ · n(a, b) N / (n(a) n(b))) over neighbors that are both known.
        """
        pairs, found = self.pairs.counts, 0.0
        for first, second in pairwise(sequence):
            before, after = self.counts.get(first), self.counts.get(second)
            if pairs and before and after:
                by_chance = before * after / self.total
                found += math.log(1 - _PAIRED + _PAIRED * pairs.get((first, second), 0) / by_chance)
        return found

    def near(self, word: str, distance: int = 2) -> list[str]:
        """The known words that are at most so many insertions, deletions and replacements away."""
        return self._near.within(word, distance)

    def neighbors(self, word: str) -> list[str]:
        """The known words that are one insertion, deletion, replacement or swap away.

        >>> sorted(KnownWords({"the": 9, "then": 2, "he": 5, "tea": 1}).neighbors("teh"))
        ['tea', 'the']
        """
        return self._near.one_away(word)

    def split(self, word: str) -> list[str]:
        """The pairs of known words that are written as one.

        >>> KnownWords({"a": 9, "lot": 3, "al": 1}).split("alot")
        ['a lot']
        """
        cuts = ((word[:place], word[place:]) for place in range(1, len(word)))
        return [f"{a} {b}" for a, b in cuts if a in self.trusted and b in self.trusted]

    @cached_property
    def total(self) -> int:
        """How many words the text has, each as often as it stands there."""
        return max(1, sum(self.counts.values()))

    @cached_property
    def log_letters(self) -> NDArray[np.float64]:
        """log p(letter | the three before it) over the known words; see `letters_log_probs`."""
        return _letter_table(tuple(self.counts))

    def letters_log_probs(self, word: str) -> list[float]:
        """How much a word looks like the known ones: log p(letter | the three before it) for each.

        The letters of all known words, each word counted once, in groups of four; where a group was
        not seen, the shorter ones speak (Witten and Bell's interpolation). The end is one more.
        """
        codes = [_EDGE] * (_ORDER - 1) + [ord(letter) % _EDGE for letter in word] + [_END]
        table, group, found = self.log_letters, 0, []
        for place, code in enumerate(codes):
            group = (group * _SIGNS + code) % _SIGNS**_ORDER
            if place >= _ORDER - 1:
                found.append(float(table[group]))
        return found

    @cached_property
    def _near(self) -> NearWords:
        return NearWords.of(tuple(sorted(self.trusted)))


_MISSPELT = 100
_SHORTEST = 6
_VOWELS = "aeiou"
_ORDER = 4
_END, _EDGE = 0, 32  # what ends a word, what stands before it; a–z are 1…26 in between
_SIGNS = 33


def misspellings(word: str) -> Iterator[str]:
    """What a word becomes by one swap, one other vowel, or one letter doubled or not.

    >>> list(misspellings("too"))
    ['oto', 'tao', 'teo', 'tio', 'tuo', 'toa', 'toe', 'toi', 'tou', 'ttoo', 'tooo', 'to']
    """
    for place, (first, second) in enumerate(pairwise(word)):
        if first != second:
            yield word[:place] + second + first + word[place + 2 :]
    for place, letter in enumerate(word):
        if letter in _VOWELS:
            yield from (word[:place] + v + word[place + 1 :] for v in _VOWELS if v != letter)
    previous = ""
    for place, letter in enumerate(word):
        if letter != previous:
            yield word[:place] + letter + word[place:]
        previous = letter
    for place, (first, second) in enumerate(pairwise(word)):
        if first == second:
            yield word[:place] + word[place + 1 :]


def _letter_table(words: tuple[str, ...]) -> NDArray[np.float64]:
    letters = "".join("\x40" * (_ORDER - 1) + word + "\0" for word in words)
    raw = np.frombuffer(letters.encode("latin-1", "replace"), dtype=np.uint8)
    codes = np.where(raw == 0x40, _EDGE, np.where(raw == 0, _END, raw % _EDGE)).astype(np.int64)
    probs = np.full((1, _SIGNS), 1.0 / _SIGNS)
    for order in range(1, _ORDER + 1):
        groups = np.zeros(max(len(codes) - order + 1, 0), dtype=np.int64)
        for place in range(order):
            groups = groups * _SIGNS + codes[place : len(codes) - order + 1 + place]
        # Groups that end before a word begins are no letters of one.
        groups = groups[groups % _SIGNS != _EDGE]
        counts = np.bincount(groups, minlength=_SIGNS**order).reshape(-1, _SIGNS)
        kinds = (counts > 0).sum(axis=1, keepdims=True)
        total = counts.sum(axis=1, keepdims=True) + kinds
        # The last letters of a longer group are the lowest digits of its number.
        shorter = np.tile(probs, (len(counts) // len(probs), 1))
        seen = (counts + kinds * shorter) / np.maximum(total, 1)
        probs = np.where(total > 0, seen, shorter)
    return np.asarray(np.log(probs.reshape(-1)))
