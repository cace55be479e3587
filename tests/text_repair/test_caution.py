"""Names, brands and abbreviations are left alone."""

import pytest

from indel.text_repair.caution import CAREFUL, FIRST, MIXED, NAME, keep_odds


@pytest.mark.parametrize(
    ("text", "word", "odds"),
    [
        ("i met priya today", "priya", 1.0),
        ("i met Priya today", "Priya", NAME),
        ("I met priya today.", "priya", CAREFUL),
        ("Priya is here.", "Priya", FIRST),
        ("It rained. Priya left.", "Priya", FIRST),
        ("He said: “Priya left.”", "Priya", FIRST),
        ("one line\nPriya left", "Priya", 1.0),
        ("One line.\nPriya left.", "Priya", FIRST),
        ("my iPhone and YouTube", "iPhone", MIXED),
        ("my iPhone and YouTube", "YouTube", MIXED),
        ("the NASA probe", "NASA", NAME),
        ("THE NASA PROBE IS HERE", "NASA", 1.0),
        ("THE NASA PROBE IS HERE.", "PROBE", 1.0),
        ("12 34", "12 34", 1.0),
    ],
)
def test_odds(text: str, word: str, odds: float) -> None:
    start = text.index(word)
    assert keep_odds(text, start, start + len(word)) == odds


def test_of_several_words_the_most_careful_counts() -> None:
    text = "we saw Priya leave"
    assert keep_odds(text, 3, len(text)) == NAME
