"""Words that follow from known ones by rule: plurals, verb forms, comparisons, compounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

_VOWELS = frozenset("aeiou")
_SHORTEST_STEM = 3
_SHORTEST_PART = 4

Known = Callable[[str], bool]


def is_derived(word: str, known: Known) -> bool:
    """Whether a word is a regular form of a known one, or has one, or is made of two known ones.

    The rules of spelling count: *studies* and *stopped* are forms, *studys* and *stoped* are not.

    >>> [is_derived(word, {"text", "google", "study", "stop"}.__contains__)
    ...     for word in ("texted", "googled", "studies", "studys", "stopped", "stoped")]
    [True, True, True, False, True, False]
    """
    forms = (word + ending for ending in ("s", "es", "ed", "d", "ing", "ly"))
    return (
        any(known(stem) for stem in _stems(word))
        or (len(word) >= _SHORTEST_PART and any(known(form) for form in forms))
        or _is_compound(word, known)
    )


def _stems(word: str) -> Iterator[str]:
    """The words that a word may be a regular form of."""
    found: list[str] = []
    if word.endswith("s") and not word.endswith("ss"):
        # A stem that hisses takes -es, one in a consonant and y takes -ies.
        found += _with(word, "s", lambda stem: not _hisses(stem) and not _ends_in_soft_y(stem))
        found += _with(word, "es", lambda stem: _hisses(stem) or stem.endswith("o"))
        found += [stem + "y" for stem in _with(word, "ies", _ends_in_consonant)]
    for ending in ("ed", "ing", "er", "ers", "est", "able", "ish"):
        found += _with(word, ending, lambda stem: not _drops_or_doubles(stem))
        found += [stem + "e" for stem in _with(word, ending, _ends_in_consonant)]
        found += [
            stem[:-1]
            for stem in _with(word, ending, lambda stem: stem[-1] == stem[-2])
            if _ends_in_short_vowel(stem[:-1])
        ]
        if ending != "ing":
            found += [stem[:-1] + "y" for stem in _with(word, ending, lambda s: s.endswith("i"))]
    found += _with(word, "ly", lambda stem: not stem.endswith(("y", "le")))
    found += [stem + "y" for stem in _with(word, "ily", _ends_in_consonant)]
    found += [stem + "l" for stem in _with(word, "ly", lambda stem: stem.endswith("l"))]
    found += [stem + "y" for stem in _with(word, "iness", _ends_in_consonant)]
    for ending in ("ness", "less", "like", "wise", "ful", "fully", "ship", "ist", "ists", "ism"):
        found += _with(word, ending, lambda stem: not _ends_in_soft_y(stem))
    for beginning in ("un", "re", "non", "over", "under", "out", "pre", "mis", "anti", "super"):
        if word.startswith(beginning):
            found.append(word[len(beginning) :])
    yield from (stem for stem in found if len(stem) >= _SHORTEST_STEM)


def _with(word: str, ending: str, allowed: Callable[[str], bool]) -> list[str]:
    """The word without an ending, if it has it and the rest may take it."""
    stem = word[: -len(ending)]
    fits = word.endswith(ending) and len(stem) >= _SHORTEST_STEM - 1 and allowed(stem)
    return [stem] if fits else []


def _is_compound(word: str, known: Known) -> bool:
    cuts = range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
    return any(known(word[:cut]) and known(word[cut:]) for cut in cuts)


def _hisses(stem: str) -> bool:
    return stem.endswith(("s", "x", "z", "ch", "sh"))


def _ends_in_consonant(stem: str) -> bool:
    return stem[-1] not in _VOWELS


def _ends_in_soft_y(stem: str) -> bool:
    return stem.endswith("y") and stem[-2:-1] not in _VOWELS


def _ends_in_short_vowel(stem: str) -> bool:
    """One vowel between consonants at the end of a single syllable: *stop*, *plan*."""
    if len(stem) < 3 or stem[-1] in _VOWELS or stem[-1] in "wxy" or stem[-2] not in _VOWELS:
        return False
    starts = sum(b in _VOWELS and a not in _VOWELS for a, b in pairwise("x" + stem))
    return starts == 1 and stem[-3] not in _VOWELS


def _drops_or_doubles(stem: str) -> bool:
    """Whether a stem cannot stand unchanged before -ed, -ing or -er."""
    return stem.endswith("e") or _ends_in_soft_y(stem) or _ends_in_short_vowel(stem)
