"""What the looks of a word in the text say for leaving it alone: names, brands, abbreviations."""

from __future__ import annotations

import re
from functools import lru_cache

MIXED = 1000.0
"""iPhone, McDonald, YouTube."""
NAME = 100.0
"""A capital inside a sentence; an abbreviation in a text that is not all capitals."""
CAREFUL = 30.0
"""Any word of a text with capitals and full stops: who types these mistypes less elsewhere too."""
FIRST = 60.0
"""A capital where a sentence begins, in such a text: there names and other words look alike."""
_LONGEST_ABBREVIATION = 5

_WORD = re.compile(r"[^\W\d_]+")
# What a sentence may follow: its marks, a colon, a line break, and quotes or brackets after them.
_SENTENCE_START = re.compile(r"(?:^|[.!?:;…\n\r•*–—-])[\s\"'“”‘’«»()\[\]{}>#]*\Z")
_LOOK_BACK = 20
_CAPITAL = re.compile(r"\b[A-Z]")
_END = re.compile(r"\w[.!?…][\"'”’)]*(?:\s|\Z)")


def keep_odds(text: str, start: int, end: int) -> float:
    """How many times likelier text[start:end] is meant as it stands than its letters alone say.

    >>> text = "Dear all, my sister Priya has an iPhone and a TV."
    >>> [keep_odds(text, text.index(word), text.index(word) + len(word))
    ...     for word in ("Dear", "sister", "Priya", "iPhone", "TV")]
    [60.0, 30.0, 100.0, 1000.0, 100.0]
    """
    words = _WORD.finditer(text[start:end])
    return max((_word_odds(text, start, word) for word in words), default=1.0)


def _word_odds(text: str, start: int, found: re.Match[str]) -> float:
    word = found[0]
    if word.islower():
        return CAREFUL if _careful(text) else 1.0
    if len(word) > 1 and word.isupper():
        short = len(word) <= _LONGEST_ABBREVIATION
        return NAME if short and not _shouted(text) else 1.0
    if not word[1:].islower() and len(word) > 1:
        return MIXED if word[1:] != word[1:].upper() else 1.0
    place = start + found.start()
    before = text[max(0, place - _LOOK_BACK) : place]
    begins = _SENTENCE_START.search(before if place > _LOOK_BACK else "\n" + before)
    if not begins:
        return NAME
    return FIRST if _careful(text) else 1.0


@lru_cache(maxsize=8)
def _careful(text: str) -> bool:
    """Whether a text has capitals, but not all, and marks that end sentences."""
    return bool(_CAPITAL.search(text)) and bool(_END.search(text)) and not _shouted(text)


@lru_cache(maxsize=8)
def _shouted(text: str) -> bool:
    """Whether a text is mostly capitals, so that they say nothing."""
    letters = [character for character in text if character.isalpha()]
    return 2 * sum(character.isupper() for character in letters) > len(letters)
