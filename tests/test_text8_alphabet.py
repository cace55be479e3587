"""`normalize_text8` against the last lines of Matt Mahoney's filter, and on hostile text."""

import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indel.vocabularies.text8_alphabet import normalize_text8

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def mahoney(text: str) -> str:
    """The filter's steps in its order: lower-case A–Z, spell digits, squeeze all else to spaces."""
    text = re.sub("[A-Z]", lambda letter: chr(ord(letter.group()) + 32), f" {text} ")
    for digit, name in enumerate(DIGITS):
        text = text.replace(str(digit), f" {name} ")
    return re.sub("[^a-z]+", " ", text).strip(" ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anarchism originated as a term of abuse", "anarchism originated as a term of abuse"),
        ("3", "three"),
        ("1789–1799", "one seven eight nine one seven nine nine"),
        ("B2B", "b two b"),
        ("don't -- stop", "don t stop"),
        ("\tline\r\nline\N{NO-BREAK SPACE}", "line line"),
        ("Chloé", "chlo"),
        ("İstanbul", "stanbul"),
        ("Straße", "stra e"),
        ("\N{KELVIN SIGN}ing", "ing"),
        ("٣", ""),
        ("😀\x00\ud800", ""),
        ("", ""),
    ],
)
def test_examples(text: str, expected: str) -> None:
    assert normalize_text8(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Chloé", "chloe"),
        ("Chloe\N{COMBINING ACUTE ACCENT}", "chloe"),
        ("İstanbul", "istanbul"),
        ("\N{KELVIN SIGN}ing", "king"),
        ("ﬁne", "fine"),
        ("ＦＵＬＬ４", "full four"),
        ("3\N{VARIATION SELECTOR-16}\N{COMBINING ENCLOSING KEYCAP}", "three"),
        ("a\N{COMBINING ENCLOSING CIRCLE}b", "ab"),
        ("Straße, smørrebrød", "stra e sm rrebr d"),
    ],
)
def test_strip_accents(text: str, expected: str) -> None:
    assert normalize_text8(text, strip_accents=True) == expected


@given(ANY_TEXT)
def test_agrees_with_the_filter_of_text8(text: str) -> None:
    assert normalize_text8(text) == mahoney(text)


@given(ANY_TEXT)
def test_strip_accents_is_the_filter_after_decomposition(text: str) -> None:
    decomposed = unicodedata.normalize("NFKD", text)
    unmarked = "".join(part for part in decomposed if unicodedata.category(part)[0] != "M")
    assert normalize_text8(text, strip_accents=True) == mahoney(unmarked)


@given(ANY_TEXT, st.booleans())
def test_output_is_words_of_a_to_z_and_stays_as_it_is(text: str, strip_accents: bool) -> None:
    normalised = normalize_text8(text, strip_accents=strip_accents)
    assert re.fullmatch("([a-z]+( [a-z]+)*)?", normalised)
    assert normalize_text8(normalised, strip_accents=strip_accents) == normalised


@pytest.mark.parametrize("pattern", ["a", " ", "7", "\N{COMBINING ACUTE ACCENT}\u0323", "😀é"])
@pytest.mark.parametrize("strip_accents", [False, True])
def test_long_text_takes_linear_time(pattern: str, strip_accents: bool) -> None:
    text = pattern * (400_000 // len(pattern))
    start = time.process_time()
    normalised = normalize_text8(text, strip_accents=strip_accents)
    assert time.process_time() - start < 2  # measured: 0.05 s; quadratic takes minutes
    word = normalize_text8(pattern, strip_accents=strip_accents)
    assert len(normalised.replace(" ", "")) == len(word) * (400_000 // len(pattern))


def test_text_must_be_str() -> None:
    with pytest.raises(TypeError):
        normalize_text8(b"bytes")  # type: ignore[arg-type]
