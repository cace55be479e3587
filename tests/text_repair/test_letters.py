"""What the model sees of a text, and what of it may change."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indel import normalize_text8
from indel.text_repair.letters import LONGEST_WORD, Hold, Stretch, stretches
from support.hostile_texts import anything, tricky


def only(text: str) -> Stretch:
    (stretch,) = stretches(text)
    return stretch


def holds(text: str) -> str:
    """A digit for each letter that is seen: 0 is free, 1 kept, 2 fixed."""
    return "".join(map(str, only(text).holds))


@settings(deadline=None)
@given(anything | tricky)
def test_letters_are_words_and_their_places_are_in_order(text: str) -> None:
    end = 0
    for stretch in stretches(text):
        assert re.fullmatch(r"[a-z]+( [a-z]+)*", stretch.letters)
        assert len(stretch.letters) == len(stretch.starts) == len(stretch.ends)
        assert len(stretch.letters) == len(stretch.holds)
        for letter, start, stop, hold in zip(
            stretch.letters, stretch.starts, stretch.ends, stretch.holds, strict=True
        ):
            assert end <= stop <= len(text)
            assert start in (end, end - 1) or letter != " "
            if hold == Hold.FREE:
                assert text[start:stop].lower() == letter
            end = stop


@settings(deadline=None)
@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=50))
def test_ascii_is_seen_as_text8_has_it(text: str) -> None:
    assert only(f"free {text}").letters == normalize_text8(f"free {text}")


@settings(deadline=None)
@given(st.lists(st.sampled_from([*"àÉñü½²ﬂＡ℡ßй漢", "Ångström"]), max_size=8))
def test_other_letters_are_seen_without_their_accents(words: list[str]) -> None:
    text = "free " + " ".join(words)
    assert only(text).letters == normalize_text8(text, strip_accents=True)


@pytest.mark.parametrize(
    ("text", "seen", "held"),
    [
        ("Teh end", "teh end", "0000000"),
        ("don't", "don t", "00010"),
        ("a  b", "a b", "010"),
        ("a\tb", "a b", "010"),
        ("a\nb", "a b", "010"),
        ("a, b", "a b", "010"),
        ("a-b", "a b", "010"),
        ("caffé ok", "caffe ok", "00001000"),
        ("nai\u0308ve", "naive", "00100"),
        ("co\u00adop", "coop", "0100"),
        ("a 7 b", "a seven b", "012222210"),
        ("a 42", "a four two", "0122221222"),
        ("a b2b c", "a b two b c", "01212221210"),
        ("ok a_b ok", "ok a b ok", "001212100"),
        ("_so_ ok", "so ok", "00100"),
        ("see www.a.bc", "see www a bc", "000122212122"),
        ("to x@y.de", "to x y de", "001212122"),
        ("hi @bob", "hi bob", "001222"),
        ("hi #tag!", "hi tag", "001222"),
        ("ok http://a", "ok http a", "001222212"),
        ("soufﬂé ok", "souffle ok", "0000221000"),
        ("a 你好 b", "a b", "010"),
        ("a 😀 b", "a b", "010"),
        ("a\0b", "a b", "010"),
        ("a\udc80b", "a b", "010"),
    ],
)
def test_what_may_change(text: str, seen: str, held: str) -> None:
    assert only(text).letters == seen
    assert holds(text) == held


def test_a_sentence_goes_on_over_a_line_break_but_not_over_an_empty_line() -> None:
    for new_line in ("\n", "\r\n", "\r"):
        text = f"one sentence{new_line}in two lines{new_line} \t{new_line}{new_line}another one"
        assert [stretch.letters for stretch in stretches(text)] == [
            "one sentence in two lines",
            "another one",
        ]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "42", "你好", "😀", "\0", "a" * 101, "x@" * 99])
def test_where_nothing_may_change_nothing_is_shown(text: str) -> None:
    assert stretches(text) == []


def test_words_that_are_too_long_are_gaps() -> None:
    assert only("a " + "x" * LONGEST_WORD + " b").letters == f"a {'x' * LONGEST_WORD} b"
    assert only("a " + "x" * (LONGEST_WORD + 1) + " b").letters == "a b"
    assert holds("a " + "x" * (LONGEST_WORD + 1) + " b") == "010"


@pytest.mark.parametrize(
    "unit",
    ["\0", "a", "a@", "a.", "\n", "\n ", "\r", "_", "1", "1 ", "a\u0301", "😀", "://", "a b "],
)
def test_time_grows_with_the_length_and_not_with_its_square(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        start = time.process_time()
        stretches(text)
        return time.process_time() - start

    # Sixteen times the length: linear is 16, quadratic 256.
    assert seconds(80_000) < 80 * max(seconds(5_000), seconds(5_000), 0.002)
