"""Which words of a list are near a given one, by edit distance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_BASE = 1099511628211  # odd: a polynomial in it, modulo 2^64, tells texts apart well enough
_MODULUS = 1 << 64
_LONGEST = 48  # letters that a machine word has room for, with some to spare


@dataclass(frozen=True)
class NearWords:
    """Words as rows of letters, sorted by length, and an index of each with a letter left out."""

    words: tuple[str, ...]
    lengths: NDArray[np.int64]
    letters: dict[str, int]
    """The number of each letter that any word has; 0 is for what stands after the end."""
    codes: NDArray[np.uint8]
    hashes: NDArray[np.uint64]
    """Of the words and of all that a word becomes without one of its letters, sorted."""
    places: NDArray[np.int64]
    """Which word each hash is of."""

    @classmethod
    def of(cls, words: tuple[str, ...]) -> NearWords:
        """Words that are too long for a machine word are never near anything."""
        words = tuple(sorted((word for word in words if len(word) <= _LONGEST), key=len))
        lengths = np.array([len(word) for word in words], dtype=np.int64)
        width = int(lengths.max(initial=0))
        # Beyond 255 different letters some share a number: then what is near is looked at twice.
        letters = {
            letter: 1 + number % 255 for number, letter in enumerate(sorted(set("".join(words))))
        }
        padded = [[*map(letters.__getitem__, word), *[0] * (width - len(word))] for word in words]
        codes = np.array(padded, dtype=np.uint8).reshape(-1, width)
        return cls(words, lengths, letters, codes, *_index(codes, lengths))

    def within(self, word: str, distance: int) -> list[str]:
        """The words at most so many edits away: a column of Levenshtein's table for all at once.

        A column is one integer, a bit for each row (G. Myers, J. ACM 46, 1999).
        """
        length = len(word)
        if not 0 < length <= _LONGEST:
            return []
        low, high = np.searchsorted(self.lengths, [length - distance, length + distance + 1])
        codes, lengths = self.codes[low:high], self.lengths[low:high]
        if not len(codes):
            return []
        rows = np.zeros(256, dtype=np.int64)
        for place, letter in enumerate(word):
            # A letter that no word has is equal to nothing.
            if letter in self.letters:
                rows[self.letters[letter]] |= 1 << place
        last, all_rows = length - 1, (1 << length) - 1
        grows = np.full(len(codes), all_rows, dtype=np.int64)
        shrinks = np.zeros_like(grows)
        now = np.full_like(grows, length)
        found = now.copy()
        for column in range(int(lengths.max())):
            equal = rows[codes[:, column]]
            diagonal = (((equal & grows) + grows) ^ grows) | equal | shrinks
            right_grows = shrinks | ~(diagonal | grows)
            right_shrinks = grows & diagonal
            now = now + ((right_grows >> last) & 1) - ((right_shrinks >> last) & 1)
            right_grows = right_grows << 1 | 1
            grows = ((right_shrinks << 1) | ~(equal | shrinks | right_grows)) & all_rows
            shrinks = right_grows & (equal | shrinks) & all_rows
            np.copyto(found, now, where=lengths == column + 1)
        return [self.words[low + place] for place in np.flatnonzero(found <= distance)]

    def one_away(self, word: str) -> list[str]:
        """The words one insertion, deletion, replacement or swap of neighbors away.

        Two such words become the same if one letter is left out of either or of both.
        """
        if not 0 < len(word) < _LONGEST:
            return []
        codes = [self.letters.get(letter, 256) for letter in word]
        asked = np.array([_hash(text) for text in (codes, *_shorter(codes))], dtype=np.uint64)
        first = np.searchsorted(self.hashes, asked, "left")
        stop = np.searchsorted(self.hashes, asked, "right")
        ranges = zip(first, stop, strict=True)
        alike = {int(place) for low, high in ranges for place in self.places[low:high]}
        return [
            self.words[place] for place in sorted(alike) if is_one_away(word, self.words[place])
        ]


def is_one_away(first: str, second: str) -> bool:
    """Whether one insertion, deletion, replacement or swap makes one word the other.

    >>> is_one_away("teh", "the"), is_one_away("teh", "teh"), is_one_away("thee", "eh")
    (True, False, False)
    """
    same = next(
        (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    a, b = first[same:], second[same:]
    if not a and not b:
        return False
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[1::-1] == b[:2] and a[2:] == b[2:])


def _shorter(codes: list[int]) -> Iterator[list[int]]:
    return (codes[:place] + codes[place + 1 :] for place in range(len(codes)))


def _hash(codes: list[int]) -> int:
    found = 0
    for code in codes:
        found = (found * _BASE + code) % _MODULUS
    return found


def _index(
    codes: NDArray[np.uint8], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The hashes of all words, and of all that they become without a letter."""
    count, width = codes.shape
    power = np.array([pow(_BASE, exponent, _MODULUS) for exponent in range(width + 1)], np.uint64)
    start = np.zeros((count, width + 1), dtype=np.uint64)
    base = np.uint64(_BASE)
    for place in range(width):
        start[:, place + 1] = start[:, place] * base + codes[:, place]
    everything = np.arange(count)
    whole = start[everything, lengths]
    hashes, places = [whole], [everything]
    for place in range(width):
        row = everything[np.searchsorted(lengths, place + 1) :]
        rest = power[lengths[row] - place - 1]
        # What stands before the letter, moved, and what stands after it.
        hashes.append(start[row, place] * rest + whole[row] - start[row, place + 1] * rest)
        places.append(row)
    joined, of = np.concatenate(hashes), np.concatenate(places)
    order = np.argsort(joined)
    return joined[order], of[order]
