"""What the benchmark counts, against slow or obvious answers."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indel.levenshtein import edit_distance
from indel.text_repair.evaluation import Result, as_typed, difference, measure, reliability
from indel.text_repair.pairs import Half, Pair, aligned_words, intended, read_pairs
from indel.text_repair.results import Choice, Correction, Repair
from indel.text_repair.scoring import kept_words

texts = st.text("abc", max_size=90)


def slow_edit_distance(first: str, second: str) -> int:
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        above, row = row, [i]
        for j, b in enumerate(second, start=1):
            row.append(min(above[j - 1] + (a != b), above[j] + 1, row[j - 1] + 1))
    return row[-1]


@settings(deadline=None)
@given(texts, texts)
def test_edit_distance(first: str, second: str) -> None:
    assert edit_distance(first, second) == slow_edit_distance(first, second)


def test_kept_words_are_found_by_alignment_and_not_by_place() -> None:
    before = ["he", "has", "a", "a", "big", "dog"]
    assert kept_words(before, ["yesterday", "he", "has", "a", "big", "dog"]) == {0, 1, 2, 4, 5}
    assert kept_words(before, []) == set()
    assert kept_words([], before) == set()


PAIRS = [
    Pair("teh cat sat", "the cat sat"),
    Pair("on a mat", "on a mat"),
    Pair("thedog barks", "the dog barks"),
]


def test_results() -> None:
    result = Result(PAIRS, ["the cat sit", "on a mat", "the dog barks"], seconds=2.0)
    assert result.wrong.tolist() == [1, 0, 0]
    assert result.error_rate == pytest.approx(1 / (11 + 8 + 13))
    assert result.exact == pytest.approx(2 / 3)
    # Right were: cat sat, on a mat, barks. "sat" is gone.
    assert result.untouched == pytest.approx(5 / 6)
    assert result.speed == pytest.approx((11 + 8 + 12) / 2)


def test_as_typed_touches_nothing() -> None:
    result = as_typed(PAIRS)
    assert result.wrong.tolist() == [2, 0, 1]
    assert result.untouched == 1.0
    assert result.exact == pytest.approx(1 / 3)


def test_measure_corrects_all_at_once_and_takes_the_time() -> None:
    calls = []

    def correct(lines: list[str]) -> list[str]:
        calls.append(lines)
        return [line.replace("teh", "the") for line in lines]

    result = measure(PAIRS, correct)
    assert calls == [[pair.noisy for pair in PAIRS]]
    assert result.wrong.tolist() == [0, 0, 1]
    assert result.seconds > 0


def made(wrong: list[int]) -> Result:
    """A result with so many wrong characters of ten in each sentence."""
    pairs = [Pair("a" * 10, "a" * 10)] * len(wrong)
    return Result(pairs, ["b" * n + "a" * (10 - n) for n in wrong], 1.0)


def test_a_result_does_not_differ_from_itself() -> None:
    result = made([1, 2, 3])
    assert difference(result, result, seed=0) == (0.0, 0.0, 0.0)


def test_intervals_are_paired() -> None:
    chance = random.Random(0)
    first = [chance.randint(0, 9) for _ in range(100)]
    better = difference(made(first), made([n + 1 for n in first]), seed=0)
    # Always one of ten characters, however much sentences differ among themselves.
    assert better == pytest.approx((-0.1, -0.1, -0.1))


def test_intervals_have_the_size_that_the_central_limit_theorem_gives() -> None:
    chance = np.random.default_rng(1)
    extra = chance.integers(0, 9, size=400)
    found = difference(made(extra.tolist()), made([0] * 400), seed=3)
    assert found == difference(made(extra.tolist()), made([0] * 400), seed=3)
    assert found != difference(made(extra.tolist()), made([0] * 400), seed=4)
    error = extra.std() / 10 / 400**0.5
    assert found.mean == pytest.approx(extra.mean() / 10)
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.05)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    lines = [f"{'x' * n}\t{'y' * n}" for n in range(1, 11)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def lengths(pairs: list[Pair]) -> list[int]:
    return [len(pair.clean) for pair in pairs]


def test_which_pairs_are_read(file: Path) -> None:
    assert lengths(read_pairs(file)) == list(range(1, 11))
    assert lengths(read_pairs(file, half=Half.FIRST)) == [1, 3, 5, 7, 9]
    assert lengths(read_pairs(file, half=Half.SECOND)) == [2, 4, 6, 8, 10]
    assert lengths(read_pairs(file, min_length=3, max_length=8, limit=2)) == [3, 4]
    assert lengths(read_pairs(file, half=Half.SECOND, min_length=3, limit=2)) == [4, 6]
    assert read_pairs(file)[0] == Pair("x", "y")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"one\ttwo\nno tab here\n", "line 2: expected .* got 1 fields in 'no tab here'"),
        (b"a\tb\tc\n", "line 1: .* got 3 fields"),
        (b"\xff\tb\n", "UTF-8"),
        (b"", "none of the 0 pairs"),
        (b"a\t\n", "none of the 1 pairs"),
    ],
)
def test_bad_files(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=says):
        read_pairs(path)


def test_lengths_that_leave_nothing(file: Path) -> None:
    with pytest.raises(ValueError, match="none of the 10 pairs"):
        read_pairs(file, min_length=50)


def test_words_of_two_sentences_are_aligned() -> None:
    assert aligned_words("i have alot of mony", "i have a lot of money") == [
        (0, 1, "i"),
        (2, 6, "have"),
        (7, 11, "a lot"),
        (12, 14, "of"),
        (15, 19, "money"),
    ]
    assert aligned_words("so to gether", "we are so together") == [
        (0, 2, "so"),
        (3, 12, "together"),
    ]
    assert aligned_words("", "a") == []
    meant = intended("a b c", "a x c")
    assert meant(2, 3) == "x"
    assert meant(0, 3) == "a x"
    assert meant(1, 3) is None


def test_reliability_counts_places_by_probability() -> None:
    def correction(start: int, before: str, after: str, probability: float) -> Correction:
        choices = (Choice(after, probability), Choice(before, 1 - probability))
        return Correction(start, start + len(before), before, choices)

    noisy, clean = "teh cta sta tonihgt", "the cat sat tonight"
    made = (correction(0, "teh", "the", 0.95), correction(4, "cta", "cat", 0.91))
    doubts = (correction(8, "sta", "stay", 0.55), correction(12, "tonihgt", "tonihgt", 1.0))
    repair = Repair(noisy, "the cat sta tonihgt", made, doubts, (), ())
    first, second = reliability([Pair(noisy, clean)], [repair])
    assert (first.low, first.high, first.places, first.right) == (0.5, 0.6, 1, 0.0)
    assert (second.low, second.places, second.right) == (0.9, 2, 1.0)
    assert second.mean == pytest.approx(0.93)
