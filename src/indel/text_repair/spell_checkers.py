"""Spell checkers that people use, as functions from lines to lines, to compare repair with."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources

from indel.vocabularies.text8_alphabet import normalize_text8

Checker = Callable[[Sequence[str]], list[str]]
"""Corrects lines of words in a–z."""

_MISSING = 'it is not installed: pip install "indel[spelling]"'


class Unavailable(Exception):
    """A checker that cannot be used here; the message says why."""


def open_pyspellchecker() -> Checker:
    """pyspellchecker: its best candidate for each word that it does not know."""
    try:
        from spellchecker import SpellChecker
    except ImportError:
        raise Unavailable(_MISSING) from None
    dictionary = SpellChecker()
    return _by_word(lambda word: dictionary.correction(word) or word)


@cache  # reading the dictionary takes seconds
def open_symspellpy() -> Checker:
    """symspellpy: the closest word of its English dictionary, at most two edits away."""
    try:
        import symspellpy
    except ImportError:
        raise Unavailable(_MISSING) from None
    dictionary = symspellpy.SymSpell(max_dictionary_edit_distance=2)
    name = "frequency_dictionary_en_82_765.txt"
    with resources.as_file(resources.files("symspellpy") / name) as path:
        dictionary.load_dictionary(path, term_index=0, count_index=1)

    def correct(word: str) -> str:
        found = dictionary.lookup(
            word, symspellpy.Verbosity.TOP, max_edit_distance=2, include_unknown=True
        )
        return str(found[0].term)

    return _by_word(correct)


def open_aspell() -> Checker:
    """GNU Aspell with its English dictionary: the first suggestion."""
    if shutil.which("aspell") is None:
        raise Unavailable("the command aspell is not here; most systems have a package for it")
    _aspell(["a"])  # it may be there without a dictionary
    return _aspell


CHECKERS: dict[str, Callable[[], Checker]] = {
    "pyspellchecker": open_pyspellchecker,
    "symspellpy": open_symspellpy,
    "aspell": open_aspell,
}


def _by_word(correct: Callable[[str], str]) -> Checker:
    cached = cache(correct)

    def check(lines: Sequence[str]) -> list[str]:
        return [" ".join(cached(word) for word in line.split()) for line in lines]

    return check


def _aspell(lines: Sequence[str]) -> list[str]:
    """All words through one pipe; a line that starts with ^ is text, whatever follows."""
    words = sorted({word for line in lines for word in line.split()})
    done = subprocess.run(
        ["aspell", "pipe", "--lang=en", "--encoding=utf-8"],
        input="".join(f"^{word}\n" for word in words),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise Unavailable(done.stderr.strip().partition("\n")[0])
    answers: dict[str, str] = {}
    for answer in done.stdout.splitlines():
        # "& word count offset: first, second, …"; other signs: known, or nothing to suggest.
        if answer.startswith("& "):
            head, _, suggestions = answer.partition(": ")
            # In text8's alphabet, as the lines are: "don't" is two words.
            answers[head.split()[1]] = normalize_text8(suggestions.split(", ")[0])
    return _by_word(lambda word: answers.get(word, word))(lines)
