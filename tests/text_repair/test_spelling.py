"""Known words and the votes of draws, weighed by the exact forward process."""

import math
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indel import Batch, CharacterVocabulary
from indel.process import Schedule, log_prob
from indel.text_repair.known_words import KnownWords
from indel.text_repair.results import Choice
from indel.text_repair.scoring import edit_distance
from indel.text_repair.spelling import Spelling
from indel.text_repair.votes import LetterCorrection

LETTERS = CharacterVocabulary.text8()
WORDS = KnownWords({"the": 900, "he": 300, "then": 80, "cat": 40, "a": 200, "lot": 30, "chat": 20})


def spelling(rate: float = 0.6, words: KnownWords = WORDS, **settings: float) -> Spelling:
    return Spelling(words, LETTERS, Schedule.paper(28, 32, rate), **settings)


def voted(before: str, votes: Iterable[str]) -> LetterCorrection:
    votes = tuple(votes)
    shares = {text: votes.count(text) / len(votes) for text in votes}
    choices = tuple(Choice(text, share) for text, share in shares.items())
    return LetterCorrection(0, len(before), choices, votes)


def log_q(schedule: Schedule, x_0: str, x_t: str, t: int) -> float:
    pair = (Batch.from_lists([LETTERS.encode(text)]) for text in (x_0, x_t))
    return float(log_prob(schedule, *pair, t))


def test_the_formula() -> None:
    """p(w) ∝ (v(w) + ε) · n(w) · q(typed | w), by hand for all words that can matter."""
    model = spelling(smoothing=0.2, unknown=0.3, t=4)
    votes = ["thhe", "the", "the", "t he"]
    found = {c.text: c.probability for c in model("thhe", voted("thhe", votes)).choices}
    counts = {**WORDS.counts, "thhe": 0.3, "t he": 0.3 * 300 / sum(WORDS.counts.values())}
    share = {"thhe": 0.25, "the": 0.5, "t he": 0.25}
    weight = {
        word: (share.get(word, 0.0) + 0.2)
        * count
        * math.exp(log_q(model.schedule, word, "thhe", 4))
        for word, count in counts.items()
    }
    total = sum(weight.values())
    for word, probability in found.items():
        assert probability == pytest.approx(weight[word] / total, rel=1e-3), word
    assert {"the", "thhe"} <= set(found)


@given(st.text("aeht", min_size=1, max_size=6), st.integers(0, 3))
def test_no_word_that_is_near_is_missed(word: str, distance: int) -> None:
    near = WORDS.near(word, distance)
    assert {w for w in WORDS.counts if edit_distance(w, word) <= distance} <= set(near)


def test_counts_of_texts() -> None:
    assert WORDS.log_count("the", unknown=0.1) == pytest.approx(math.log(900))
    assert WORDS.log_count("teh", unknown=0.1) == pytest.approx(math.log(0.1))
    total = sum(WORDS.counts.values())
    expected = math.log(200 * 30 / total)
    assert WORDS.log_count("a lot", unknown=0.1) == pytest.approx(expected)
    assert WORDS.knows("a lot")
    assert not WORDS.knows("a lott")


def test_words_are_written_and_read_again(tmp_path: Path) -> None:
    assert KnownWords.read(tmp_path) is None
    WORDS.write(tmp_path)
    assert KnownWords.read(tmp_path) == WORDS
    (tmp_path / "words.txt").write_text("the 9\nsome words\n")
    with pytest.raises(ValueError, match="line 2: expected a word and a count, got 'some words'"):
        KnownWords.read(tmp_path)


def test_an_unknown_word_is_looked_up_even_if_no_draw_changes_it() -> None:
    settings = {"smoothing": 1.0, "unknown": 1e-3}
    model = spelling(**settings)
    assert model.asks("teh")
    assert not model.asks("the")
    assert not model.asks("a lott of")
    found = model("chatt", voted("chatt", ["chatt"] * 4))
    assert found.choices[0].text == "chat"
    assert found.votes == ("chatt",) * 4
    # A model that cannot delete has no explanation for it.
    assert spelling(rate=0.0, **settings)("chatt", voted("chatt", ["chatt"])).choices == (
        Choice("chatt", 1.0),
    )


def test_votes_decide_between_words_that_are_alike() -> None:
    model = spelling(smoothing=0.1)
    for winner, loser in (("cat", "chat"), ("chat", "cat")):
        found = model("caat", voted("caat", ["caat", "caat", winner, winner, winner]))
        assert found.choices[0].text == winner
        probability = {choice.text: choice.probability for choice in found.choices}
        assert probability[winner] > 3 * probability[loser]


def test_a_known_word_is_trusted() -> None:
    votes = ["he", "the", "the", "the"]
    alike = spelling(trust=1.0)("he", voted("he", votes)).choices
    changed = {choice.text: choice.probability for choice in alike}
    trusted = spelling(trust=30.0)("he", voted("he", votes)).choices
    assert trusted[0].text == "he"
    assert trusted[0].probability > changed["he"]


def test_nothing_drawn_is_known() -> None:
    """Words of another kind: no knowledge, no crash, the votes still count."""
    model = spelling(words=KnownWords({}))
    found = model("xyzzy", voted("xyzzy", ["xyzzy", "xyzzy", "xyzz"]))
    assert found.choices[0].text == "xyzzy"
    assert sum(choice.probability for choice in found.choices) == pytest.approx(1.0, abs=0.01)
