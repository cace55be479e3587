"""Known words, typing errors and votes, weighed against each other."""

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indel import Batch, CharacterVocabulary
from indel.levenshtein import edit_distance
from indel.process import Schedule
from indel.process.swaps import log_prob_swapped
from indel.text_repair.known_words import KnownWords
from indel.text_repair.results import Choice
from indel.text_repair.spelling import Spelling
from indel.text_repair.typing_channel import TypingChannel
from indel.text_repair.votes import LetterCorrection
from indel.text_repair.weights import EVIDENCE, RepairWeights, Weights
from indel.text_repair.word_pairs import WordPairs

LETTERS = CharacterVocabulary.text8()
WORDS = KnownWords({"the": 900, "he": 300, "then": 80, "cat": 40, "a": 200, "lot": 30, "chat": 20})
BAYES = Weights(count=1.0, typing=1.0, letters=1.0)
DEFAULT = RepairWeights().words
# In a world of seven words all counts are small, and letters say more.
SMALL = replace(DEFAULT, letters=1.0)


def spelling(
    rate: float = 0.6, words: KnownWords | None = WORDS, weights: Weights = DEFAULT
) -> Spelling:
    return Spelling(TypingChannel(LETTERS, Schedule.paper(28, 32, rate)), weights, words)


def voted(before: str, votes: Iterable[str], start: int = 0) -> LetterCorrection:
    votes = tuple(votes)
    shares = {text: votes.count(text) / len(votes) for text in votes}
    choices = tuple(Choice(text, share) for text, share in shares.items())
    return LetterCorrection(start, start + len(before), choices, votes)


def weighed(model: Spelling, before: str, *votes: str) -> dict[str, float]:
    correction = model.place(before, voted(before, votes)).corrected(model.weights)
    return {choice.text: choice.probability for choice in correction.choices}


def log_q(model: Spelling, x_0: str, x_t: str) -> float:
    channel = model.channel
    pair = (Batch.from_lists([LETTERS.encode(text)]) for text in (x_0, x_t))
    return float(log_prob_swapped(channel.schedule, *pair, channel.t, swap=channel.swap))


def test_bayes_rule() -> None:
    """p(w) ∝ n(w) · q(typed | w), by hand for all words that can matter."""
    model = spelling(weights=BAYES)
    weight = {word: n * math.exp(log_q(model, word, "thhe")) for word, n in WORDS.counts.items()}
    weight["thhe"] = math.exp(log_q(model, "thhe", "thhe") + sum(WORDS.letters_log_probs("thhe")))
    total = sum(weight.values())
    found = weighed(model, "thhe")
    assert {"the"} <= set(found)
    for word, probability in found.items():
        if " " not in word:
            assert probability == pytest.approx(weight[word] / total, rel=1e-3), word


def test_every_weight_counts_its_own_evidence() -> None:
    """Each weight alone, against evidence counted by hand, for *to gether* in a small world."""
    pairs = WordPairs({("went", "together"): 4, ("to", "gather"): 3})
    counts = {"went": 20, "to": 900, "together": 60, "gather": 9, "home": 30}
    model = spelling(words=KnownWords(counts, pairs))
    line = "went to gether home"
    assert model.loose_spaces(line) == {7}
    place = model.place(line, LetterCorrection(5, 14, (), ("to gether", "together")))
    place = model.place(
        line, replace(place.correction, choices=(Choice("together", 0.5), Choice("to gether", 0.5)))
    )
    assert place.typed == "to gether"
    rows = {text: dict(zip(EVIDENCE, row, strict=True)) for text, row in _rows(place)}
    together, apart, gather = rows["together"], rows["to gether"], rows["to gather"]
    n = sum(counts.values())
    assert together["count"] == pytest.approx(math.log(60))
    assert gather["count"] == pytest.approx(math.log(900 * 9 / n))
    assert (together["joined"], apart["joined"], together["split"]) == (1, 0, 0)
    assert (apart["unknown"], together["unknown"], together["kept"]) == (1, 0, 0)
    assert apart["letters"] == pytest.approx(sum(model.words.letters_log_probs("gether")))
    seen = math.log(0.2 + 0.8 * 4 * n / (20 * 60)) + math.log(0.2)
    assert together["pairs"] == pytest.approx(seen)
    assert together["votes"] == pytest.approx(math.log(0.5 / 0.05 + 1))
    assert gather["votes"] == 0
    assert together["typing"] == pytest.approx(log_q(model, "together", "to gether"))
    assert np.all(place.evidence[:, EVIDENCE.index("context_kept")] == 0)


def _rows(place):  # type: ignore[no-untyped-def]
    return zip(place.texts, place.evidence, strict=True)


@given(st.text("aeht", min_size=1, max_size=6), st.integers(0, 3))
def test_near_words_are_those_of_small_edit_distance(word: str, distance: int) -> None:
    near = WORDS.near(word, distance)
    assert sorted(near) == sorted(w for w in WORDS.counts if edit_distance(w, word) <= distance)


@given(st.text("aehtc", min_size=1, max_size=5))
def test_neighbors_are_one_edit_or_swap_away(word: str) -> None:
    swaps = {word[:i] + b + a + word[i + 2 :] for i, (a, b) in enumerate(pairwise(word))}
    expected = {w for w in WORDS.counts if edit_distance(w, word) == 1 or w in swaps - {word}}
    assert set(WORDS.neighbors(word)) == expected


def test_counts_of_texts() -> None:
    assert WORDS.log_count("the") == pytest.approx(math.log(900))
    total = sum(WORDS.counts.values())
    assert WORDS.log_count("a lot") == pytest.approx(math.log(200 * 30 / total))
    assert WORDS.knows("a lot")
    assert not WORDS.knows("a lott")


def test_letters_of_words_are_a_distribution() -> None:
    """p(letter | three before it) sums to 1 over all letters and the end, seen before or not."""
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    for start in ("", "t", "th", "the", "qxz"):
        ends = WORDS.letters_log_probs(start)[-1]
        follows = (WORDS.letters_log_probs(start + letter)[-2] for letter in alphabet)
        total = math.exp(ends) + sum(map(math.exp, follows))
        # Six signs are neither letters nor the end, and get what little is left.
        assert 0.7 < total < 1 + 1e-9
    assert sum(WORDS.letters_log_probs("then")) > sum(WORDS.letters_log_probs("nhte"))


def test_words_are_written_and_read_again(tmp_path: Path) -> None:
    assert KnownWords.read(tmp_path) is None
    words = KnownWords(WORDS.counts, WordPairs({("a", "lot"): 3, ("a", "cat"): 2, ("the", "a"): 1}))
    words.write(tmp_path)
    assert KnownWords.read(tmp_path) == words
    (tmp_path / "word_pairs.txt").write_text("a lot 3 cat\n")
    with pytest.raises(ValueError, match="line 1: expected a word, and then words that follow it"):
        KnownWords.read(tmp_path)
    (tmp_path / "words.txt").write_text("the 9\nsome words\n")
    with pytest.raises(ValueError, match="line 2: expected a word and a count, got 'some words'"):
        KnownWords.read(tmp_path)


def test_weights_are_written_and_read_again(tmp_path: Path) -> None:
    assert RepairWeights.read(tmp_path) == RepairWeights()
    weights = RepairWeights(BAYES, Weights(votes=0.5, context_kept=0.25))
    weights.write(tmp_path)
    assert RepairWeights.read(tmp_path) == weights
    for content, says in (
        ("[", "is no JSON"),
        ('{"more": {}}', "expected an object with words and network"),
        ('{"words": {"counts": 1}}', "expected weights of count, typing"),
        ('{"words": {"count": NaN}}', "count must be a finite number, got nan"),
        ('{"words": {"count": true}}', "count must be a finite number, got True"),
    ):
        (tmp_path / "repair.json").write_text(content)
        with pytest.raises(ValueError, match=says):
            RepairWeights.read(tmp_path)


def test_misspellings_of_frequent_words_are_not_known() -> None:
    counts = {"receive": 900, "recieve": 8, "separate": 1800, "seperate": 13, "relieve": 60}
    counts |= {"stock": 3800, "stork": 30, "alot": 4, "a": 9000, "lot": 90}
    words = KnownWords(counts, WordPairs({("a", "lot"): 700}))
    assert counts.keys() - words.trusted == {"recieve", "seperate", "alot"}
    assert "recieve" not in words.neighbors("recieves")
    found = weighed(spelling(words=words), "recieve")
    assert max(found, key=lambda text: found[text]) == "receive"


def test_an_unknown_word_is_looked_up_even_if_no_draw_changes_it() -> None:
    model = spelling(weights=SMALL)
    assert model.asks("teh", 0, 3)
    assert not model.asks("the", 0, 3)
    assert model.asks("a lott of", 2, 6)
    assert max(weighed(model, "chatt").items(), key=lambda item: item[1])[0] == "chat"
    # A model that cannot delete has no explanation for it.
    assert weighed(spelling(rate=0.0), "chatt").keys() == {"chatt"}


def test_votes_decide_between_words_that_are_alike() -> None:
    model = spelling(weights=replace(SMALL, votes=1.0))
    for winner, loser in (("cat", "chat"), ("chat", "cat")):
        found = weighed(model, "caat", "caat", "caat", winner, winner, winner)
        assert max(found, key=lambda text: found[text]) == winner
        assert found[winner] > 3 * found[loser]


def test_a_known_word_is_trusted_and_looked_at_if_another_fits_far_better() -> None:
    pairs = WordPairs({("more", "than"): 8900})
    words = KnownWords({"more": 9000, "than": 17000, "that": 99000, "of": 500_000}, pairs)
    model = spelling(words=words)
    assert not model.asks("of that of", 3, 7)
    line = "more that of"
    assert model.asks(line, 5, 9)
    place = model.place(line, LetterCorrection(5, 9, (), ()))
    assert {"that", "than"} <= set(place.texts)


def test_neighbors_are_seen_as_they_are_meant() -> None:
    """*tats* could be *bats*; beside *twwo*, which means *two*, it is rather *cats*."""
    pairs = WordPairs({("two", "cats"): 40, ("two", "bats"): 1})
    words = KnownWords({"two": 900, "tow": 3, "cats": 60, "bats": 60, "of": 9000}, pairs)
    model = spelling(words=words)
    line = "twwo tats of"
    places = [model.place(line, LetterCorrection(*at, (), ())) for at in ((0, 4), (5, 9))]
    alone, beside = places[1], model.with_neighbors(places)[1]

    def odds(place):  # type: ignore[no-untyped-def]
        found = dict(zip(place.texts, place.probabilities(model.weights), strict=True))
        return found["cats"] / found["bats"]

    assert odds(alone) == pytest.approx(1.0, rel=0.05)
    assert odds(beside) > 3


def test_badly_typed_lines_may_have_words_with_many_errors() -> None:
    words = KnownWords({"this": 53000, "sentence": 500, "very": 4000, "badly": 90, "good": 900})
    model = spelling(words=words)
    odds = []
    for line in ("this good sentsnetne", "thisn sentsnetne vssry babdly"):
        start = line.index("sent")
        place = model.place(line, LetterCorrection(start, start + 10, (), ()))
        found = dict(zip(place.texts, place.probabilities(model.weights), strict=True))
        odds.append(found["sentence"] / found["sentsnetne"])
    assert odds[1] > 20 * odds[0]


def test_without_words_the_draws_are_the_candidates() -> None:
    weights = Weights(votes=1.0, typing=0.1)
    model = spelling(words=None, weights=weights)
    assert not model.asks("xyzzy", 0, 5)
    assert model.loose_spaces("xy zzy") == set()
    found = weighed(model, "xyzzy", "xyzzy", "xyzzy", "xyzz")
    assert found.keys() == {"xyzzy", "xyzz"}
    assert sum(found.values()) == pytest.approx(1.0)
