"""New letters in an old text: case, punctuation and all that is held stay."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indel.levenshtein import edit_distance
from indel.text_repair.letters import stretches
from indel.text_repair.rewriting import align, rewrite

words = st.text("ab ", max_size=12)


def rewritten(text: str, written: str) -> str:
    (stretch,) = stretches(text)
    return rewrite(text, stretch, 0, len(stretch.letters), written)


@settings(deadline=None)
@given(words, words)
def test_alignments_lead_from_one_text_to_the_other_by_the_fewest_edits(
    before: str, after: str
) -> None:
    edits = align(before, after, [0] * len(before))
    assert [place for place, _ in edits if place is not None] == list(range(len(before)))
    assert "".join(letter for _, letter in edits) == after
    changes = sum(place is None or before[place] != letter for place, letter in edits)
    assert changes == edit_distance(before, after)


def test_of_equal_alignments_one_keeps_the_spaces() -> None:
    kept = [tuple(edit) for edit in align("ab cd", "abb cd", [0] * 5)]
    assert (2, " ") in kept


@pytest.mark.parametrize(
    ("before", "written", "after"),
    [
        ("thsi", "this", "this"),
        ("Thsi", "this", "This"),
        ("THSI", "this", "THIS"),
        ("Teh", "the", "The"),
        ("Hte", "the", "The"),
        ("Ehllo", "hello", "Hello"),
        ("I", "it", "It"),
        ("TE", "the", "THE"),
        ("Wastyped", "was typed", "Was typed"),
        ("WASTYPED", "was typed", "WAS TYPED"),
        ("Some thing", "something", "Something"),
        ("McDnald", "mcdonald", "McDonald"),
        ("iPhnoe", "iphone", "iPhone"),
        ("eBAAY", "ebay", "eBAY"),
        ("eBY", "ebay", "eBAY"),
        ("The the cat", "the cat", "The cat"),
    ],
)
def test_case(before: str, written: str, after: str) -> None:
    assert rewritten(before, written) == after


@pytest.mark.parametrize(
    ("before", "written", "after"),
    [
        # Around what is kept, words are mended.
        ("wrold,\n\tteh", "world the", "world,\n\tthe"),
        ("cna't", "can t", "can't"),
        ("well-knwon", "well known", "well-known"),
        ("caffé", "cafe", "café"),
        ("Cafs é", "cafes e", "Cafes é"),
        ("naïvve", "naive", "naïve"),
        ("nai\u0308vve", "naive", "nai\u0308ve"),
        ("cafe\u0301e", "cafe", "cafe\u0301"),
        ("in teh 3rd row", "in the third row", "in the 3rd row"),
        # A plain space may come and go.
        ("to gether", "together", "together"),
        ("togo", "to go", "to go"),
        # What would touch something kept is not done; the other words are.
        ("don't", "dont", "don't"),
        ("teh don't", "the dont", "the don't"),
        ("a\tb teh", "ab the", "a\tb the"),
        ("a  b", "ab", "a  b"),
        ("a\nb", "ab", "a\nb"),
        ("résumé", "resumption", "résumé"),
        ("4 teh", "for the", "4 the"),
        ("at 10 teh", "at tenth the", "at 10 the"),
        ("b2b teh", "b to b the", "b2b the"),
        ("see a.bc teh", "see ab c the", "see a.bc the"),
        ("soufﬂéé ok", "souffle okay", "soufﬂéé okay"),
        # Nothing is not a way to write a word, nor is a sign that the text8 alphabet has.
        ("teh", "", "teh"),
        ("teh", "  ", "teh"),
        ("teh", "th-e", "teh"),
        ("teh", " the  ", "the"),
    ],
)
def test_what_is_kept_stays(before: str, written: str, after: str) -> None:
    assert rewritten(before, written) == after


def test_what_is_rewritten_at_great_length_is_left() -> None:
    before = "abc " * 400 + "teh"
    assert rewritten(before, before.replace("teh", "the")) == before


def test_only_the_letters_asked_for_are_rewritten() -> None:
    text = "(Teh) Wrold!"
    (stretch,) = stretches(text)
    assert rewrite(text, stretch, 0, 3, "the") == "The"
    assert rewrite(text, stretch, 4, 9, "world") == "World"
