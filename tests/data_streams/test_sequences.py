"""Data of one's own: splits, passes, vocabularies found, files, and what is wrong with them."""

from pathlib import Path

import pytest

from indel import ByteVocabulary, CharacterVocabulary, IntegerVocabulary, Sequences
from indel.data import SPLITS, DataError, DataUnavailable, Split, open_data

WORDS = [f"word{number:03d}" for number in range(100)]


def rows(data: Sequences, split: Split) -> list[str]:
    """The whole split, once."""
    return texts(data, 0, data.size(split), split)


def texts(data: Sequences, start: int, count: int, split: Split = "train") -> list[str]:
    return [data.vocabulary.text(row) for row in data.examples(start, count, split).to_lists()]


def test_every_example_is_in_one_split() -> None:
    data = Sequences(WORDS, held_out=0.1)
    parts = {split: rows(data, split) for split in SPLITS}
    assert [len(part) for part in parts.values()] == [80, 10, 10]
    assert sorted(row for part in parts.values() for row in part) == WORDS


def test_the_splits_depend_on_neither_seed_nor_order() -> None:
    one, other = Sequences(WORDS, seed=1), Sequences(WORDS[::-1], seed=2)
    for split in SPLITS:
        assert set(rows(one, split)) == set(rows(other, split))


def test_equal_examples_are_in_one_split() -> None:
    data = Sequences([*WORDS, *WORDS], held_out=0.2)
    parts = [rows(data, split) for split in SPLITS]
    assert [len(part) for part in parts] == [120, 40, 40]
    assert not set(parts[0]) & set(parts[1])
    assert not set(parts[0]) & set(parts[2])


def test_a_pass_holds_every_example_once_and_each_pass_has_its_own_order() -> None:
    data = Sequences(WORDS)
    size = data.size("train")
    passes = [texts(data, turn * size, size) for turn in range(2)]
    assert passes[0] != passes[1]
    assert sorted(passes[0]) == sorted(passes[1])
    assert passes[0] != texts(Sequences(WORDS, seed=1), 0, size)


def test_an_example_is_the_same_however_it_is_asked_for() -> None:
    data = Sequences([*WORDS[:7], "a", "much longer word"], valid=["bb"])
    together = data.examples(3, 40).to_lists()
    alone = [data.examples(3 + number, 1).to_lists()[0] for number in reversed(range(40))]
    assert together == alone[::-1]


def test_given_splits_are_taken_as_they_are() -> None:
    data = Sequences(["ab", "ba"], valid=["c"], test=["abc", "d"])
    assert sorted(rows(data, "train")) == ["ab", "ba"]
    assert (rows(data, "valid"), rows(data, "test")) == (["c"], ["abc", "d"])
    assert data.vocabulary == CharacterVocabulary("abcd")
    assert rows(Sequences(["ab"], valid=["c"]), "test") == ["c"]


def test_integers_and_empty_sequences() -> None:
    data = Sequences([[3, 1], [], [7]], valid=[[2]])
    assert data.vocabulary == IntegerVocabulary(8)
    assert sorted(data.examples(0, 3).to_lists()) == [[], [3, 1], [7]]
    assert data.examples(1, 1, "valid").to_lists() == [[2]]


def test_long_examples_are_left_out() -> None:
    data = Sequences(["ab", "abcd", "a"], valid=["b"], max_length=3)
    assert sorted(rows(data, "train")) == ["a", "ab"]
    assert data.max_length == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("one text",), "list of texts"),
        ((["a", "b"],), "at least 3 different examples, got 2"),
        (([],), "at least one token"),
        ((["a", [1]],), "both"),
        ((["abc", "abd", "x"], CharacterVocabulary("abcd")), "example 2: character 'x'"),
        ((["a", "b", [1]], ByteVocabulary()), "example 2: expected text"),
        (([[1], [2], [-1]],), "example 2: integer -1"),
    ],
)
def test_what_is_wrong_is_named(arguments: tuple[object, ...], says: str) -> None:
    with pytest.raises(DataError, match=says):
        Sequences(*arguments)  # type: ignore[arg-type]


def test_a_share_must_leave_something_to_train_on() -> None:
    with pytest.raises(DataError, match=r"held_out must lie between 0 and 0\.5, got 0\.5"):
        Sequences(WORDS, held_out=0.5)
    with pytest.raises(DataError, match="split valid must hold at least one"):
        Sequences(WORDS, valid=[])


# ---------------------------------------------------------------- files


def test_lines_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\n\r\ntwo\nthree\n  \nfour")
    data = open_data(f"lines:{file}", seed=3)
    assert isinstance(data, Sequences)
    assert data.seed == 3
    found = [row for split in SPLITS for row in rows(data, split)]
    assert sorted(found) == ["four", "one", "three", "two"]


def test_lines_of_integers(tmp_path: Path) -> None:
    file = tmp_path / "numbers.txt"
    file.write_text("1 2 3\n4\n5 6\n")
    data = open_data(f"lines:{file}", vocabulary="integers:10")
    assert isinstance(data, Sequences)
    assert data.size("train") == 1
    assert data.vocabulary == IntegerVocabulary(10)
    file.write_text("1 2\nx\n3\n")
    with pytest.raises(DataError, match=r"numbers\.txt: example 1: expected integers.*'x'"):
        open_data(f"lines:{file}", vocabulary="integers:10")


@pytest.mark.parametrize(("name", "comma"), [("table.csv", ","), ("table.tsv", "\t")])
def test_a_column_of_a_table(tmp_path: Path, name: str, comma: str) -> None:
    file = tmp_path / name
    lines = [("id", "sequence"), ("1", "AC"), ("2", '"G\nT"'), ("3", ""), ("4", "TT")]
    file.write_text("".join(comma.join(line) + "\n" for line in lines))
    data = open_data(f"csv:{file}:sequence")
    assert isinstance(data, Sequences)
    found = [row for split in SPLITS for row in rows(data, split)]
    assert sorted(found) == ["AC", "G\nT", "TT"]
    with pytest.raises(DataError, match="no column 'protein'; its columns are id, sequence"):
        open_data(f"csv:{file}:protein")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match=r"nowhere\.txt"):
        open_data(f"lines:{tmp_path}/nowhere.txt")
    with pytest.raises(ValueError, match="missing a required argument: 'column'"):
        open_data("csv:table.csv")
    file = tmp_path / "latin1.txt"
    file.write_bytes(b"caf\xe9\n")
    with pytest.raises(DataError, match=r"latin1\.txt is not UTF-8"):
        open_data(f"lines:{file}")
    file.write_text("a\nb\n")
    with pytest.raises(DataError, match=r"latin1\.txt: three splits need"):
        open_data(f"lines:{file}")
