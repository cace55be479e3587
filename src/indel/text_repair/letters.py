"""Any text as the model sees it: stretches of a–z and single spaces, each letter with its place."""

from __future__ import annotations

import re
import unicodedata
from array import array
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from indel.vocabularies.text8_alphabet import normalize_text8

LONGEST_WORD = 100
"""A word or an address of more characters than this is none; the model is not shown it."""

# A sentence may be wrapped over lines, but it does not go on after an empty one.
_EMPTY_LINES = re.compile(r"(?>\r\n?|\n)(?:[ \t]*(?>\r\n?|\n))+")
_CHUNK = re.compile(r"\S+")
_WORD = re.compile(r"\w+")
# A web or mail address, an @name, a #tag, a file name, "e.g.": what has such a sign inside.
_ADDRESS = re.compile(r"://|@|#\w|\w\.[a-z]")


class Hold(IntEnum):
    """How far a letter that the model sees may be changed in the text."""

    FREE = 0
    """It may be replaced or taken out."""
    KEPT = 1
    """It stays, but the letters beside it may change: accents, and all gaps but a plain space."""
    FIXED = 2
    """Its whole word stays: numbers, words with digits, underscores or ligatures, addresses."""


@dataclass(frozen=True)
class Stretch:
    """A paragraph as letters; letter i stands for text[starts[i]:ends[i]].

    Several letters may stand for one character ("4" is "four"), and a space for none.
    """

    letters: str
    starts: array[int]
    ends: array[int]
    holds: bytearray
    """A `Hold` for each letter."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where letters[start:end] stand in the text."""
        return self.starts[start], self.ends[end - 1]


def stretches(text: str) -> list[Stretch]:
    """What the model sees of a text, paragraph by paragraph; those that may change nowhere are left
    out.

    >>> [stretch.letters for stretch in stretches("Caffé at 9,\\nisn't it?\\n\\n☕ Yes!")]
    ['caffe at nine isn t it', 'yes']
    """
    words = _words(text)
    found = []
    start = 0
    for end in [*(empty.start() for empty in _EMPTY_LINES.finditer(text)), len(text)]:
        stretch = _stretch(text, start, end, words)
        if Hold.FREE in stretch.holds:
            found.append(stretch)
        start = end
    return found


_FIXED, _HIDDEN = 1, 2


def _words(text: str) -> bytearray:
    """Which characters belong to words that stay, and which to words that are not shown."""
    marks = bytearray(len(text))
    # First whole chunks, then words: a single pattern for addresses could take quadratic time.
    chunks = (chunk for chunk in _CHUNK.finditer(text) if _ADDRESS.search(chunk[0]))
    words = (
        word
        for word in _WORD.finditer(text)
        if len(word[0]) > LONGEST_WORD or not word[0].strip("_").isalpha()
    )
    for found in (*chunks, *words):
        length = len(found[0])
        mark = _HIDDEN if length > LONGEST_WORD else _FIXED
        # Words come last, but must not uncover what is hidden.
        if marks[found.start()] != _HIDDEN:
            marks[found.start() : found.end()] = bytes([mark]) * length
    return marks


def _stretch(text: str, start: int, end: int, words: bytearray) -> Stretch:
    letters: list[str] = []
    starts, ends, holds = array("q"), array("q"), bytearray()

    def show(shown: str, first: int, stop: int, hold: Hold) -> None:
        letters.append(shown)
        starts.extend([first] * len(shown))
        ends.extend([stop] * len(shown))
        holds.extend([hold] * len(shown))

    apart = False  # whether something that is no letter stands after the last letter
    for place in range(start, end):
        character = text[place]
        shown = "" if words[place] == _HIDDEN else _shown(character)
        if not shown:
            if letters and not apart and _joins(character):
                ends[-1] = place + 1
                holds[-1] = max(holds[-1], Hold.KEPT)
            else:
                apart = True
            continue
        alone = not character.isalpha()
        fixed = alone or words[place] == _FIXED or len(shown) > 1
        hold = Hold.FIXED if fixed else Hold.FREE if character.isascii() else Hold.KEPT
        if letters and (apart or alone):
            free = text[ends[-1] : place] == " " and Hold.FIXED not in (holds[-1], hold)
            show(" ", ends[-1], place, Hold.FREE if free else Hold.KEPT)
        show(shown, place, place + 1, hold)
        apart = alone
    return Stretch("".join(letters), starts, ends, holds)


@lru_cache(maxsize=4096)
def _shown(character: str) -> str:
    """The letters for one character; none if it cannot be read aloud in a–z."""
    return normalize_text8(character, strip_accents=True)


@lru_cache(maxsize=4096)
def _joins(character: str) -> bool:
    """Whether a character that is not shown belongs to the letter before it: accents, joiners."""
    return unicodedata.category(character) in {"Mn", "Mc", "Me", "Cf"}
