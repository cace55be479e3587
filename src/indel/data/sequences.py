"""Data of one's own: one example each, from a list, the lines of a file or a column of a table."""

from __future__ import annotations

import csv
import hashlib
import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from indel.batch import Batch
from indel.checks import integer
from indel.data.errors import DataError, DataUnavailable
from indel.data.streams import SPLITS, BatchStream, Split
from indel.randomness import RowSeeds, seeds_for
from indel.vocabularies import CharacterVocabulary, IntegerVocabulary, Vocabulary

Example = str | Sequence[int]


class Sequences(BatchStream):
    """Examples in memory, each of them whole, with the splits train, valid and test.

    Training takes the examples in passes over the split, each shuffled anew: example i is a pure
    function of (seed, i). valid and test are read in the order given, again and again.

    The splits do not depend on the seed or on the order of the examples: different examples are
    sorted by their hash, the first share of them is valid and the next is test. So equal examples
    are always in the same split.

    Args:
        examples: Texts, or lists of integers ≥ 0.
        vocabulary: What spells them; None: the characters that occur, or the integers up to the
            largest one.
        valid: The examples of the split valid, if they are given apart.
        test: The examples of the split test. Where only one of the two is given it is both.
        held_out: The share of the different examples that is valid, and again that is test.
        max_length: Longer examples are left out; None: there is no limit.
        seed: Of the order in which training sees the examples.

    >>> data = Sequences(["GATTACA", "ACT", "TAG", "CAT"])
    >>> data.vocabulary, data.max_length, [data.size(split) for split in ("train", "valid", "test")]
    (CharacterVocabulary(characters='ACGT'), 7, [2, 1, 1])
    """

    def __init__(
        self,
        examples: Iterable[Example],
        vocabulary: Vocabulary | None = None,
        *,
        valid: Iterable[Example] | None = None,
        test: Iterable[Example] | None = None,
        held_out: float = 0.05,
        max_length: int | None = None,
        seed: int = 0,
    ) -> None:
        given = {"train": _listed("examples", examples)}
        if valid is not None or test is not None:
            given["valid"] = _listed("valid", valid if valid is not None else test)
            given["test"] = _listed("test", test if test is not None else valid)
        if vocabulary is None:
            vocabulary = found_vocabulary(each for rows in given.values() for each in rows)
        longest = None if max_length is None else integer("max_length", max_length, least=1)
        rows = {name: _encoded(name, each, vocabulary, longest) for name, each in given.items()}
        splits = rows if "valid" in rows else _split(rows["train"], held_out)
        for split, part in splits.items():
            if not part:
                raise DataError(f"the split {split} must hold at least one example, got none")
        self._splits = {split: _Rows(splits[split]) for split in SPLITS}
        super().__init__(vocabulary, max(1, *(r.longest for r in self._splits.values())), seed)
        # The order of the pass that is being read.
        self._order: tuple[int, NDArray[Any]] | None = None

    @classmethod
    def lines(
        cls,
        path: str | os.PathLike[str],
        vocabulary: Vocabulary | None = None,
        *,
        held_out: float = 0.05,
        max_length: int | None = None,
        seed: int = 0,
    ) -> Sequences:
        """One example per line of a UTF-8 file; blank lines are left out.

        With an `IntegerVocabulary` a line is integers with spaces between them.

        Args:
            path: The file.
            vocabulary: What spells them; None: the characters that occur.
            held_out: The share of the different examples that is valid, and again that is test.
            max_length: Longer examples are left out; None: there is no limit.
            seed: Of the order in which training sees the examples.

        Returns:
            Data with the splits train, valid and test.

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        ...     written = file.write("GATTACA\\nACT\\nTAG\\nCAT\\n")
        ...     file.flush()
        ...     Sequences.lines(file.name).vocabulary.size
        4

        Reference: docs/training.md
        """
        options = {"held_out": held_out, "max_length": max_length, "seed": seed}
        return cls._of_texts(path, _lines(Path(path)), vocabulary, **options)

    @classmethod
    def csv(
        cls,
        path: str | os.PathLike[str],
        column: str,
        vocabulary: Vocabulary | None = None,
        *,
        held_out: float = 0.05,
        max_length: int | None = None,
        seed: int = 0,
    ) -> Sequences:
        """One example per row of a CSV file (or .tsv) whose first row names its columns.

        Empty cells are left out. With an `IntegerVocabulary` a cell is integers with spaces.

        Args:
            path: The file.
            column: The name of the column.
            vocabulary: What spells them; None: the characters that occur.
            held_out: The share of the different examples that is valid, and again that is test.
            max_length: Longer examples are left out; None: there is no limit.
            seed: Of the order in which training sees the examples.

        Returns:
            Data with the splits train, valid and test.

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        ...     written = file.write("name,bases\\na,GATTACA\\nb,ACT\\nc,TAG\\n")
        ...     file.flush()
        ...     Sequences.csv(file.name, "bases").vocabulary.size
        4

        Reference: docs/training.md
        """
        options = {"held_out": held_out, "max_length": max_length, "seed": seed}
        return cls._of_texts(path, _cells(Path(path), column), vocabulary, **options)

    @classmethod
    def _of_texts(
        cls,
        path: str | os.PathLike[str],
        texts: Iterable[str],
        vocabulary: Vocabulary | None,
        **options: Any,
    ) -> Sequences:
        """The examples of a file, which errors about them name."""
        listed = list(texts)
        try:
            return cls(_parsed(listed, vocabulary), vocabulary, **options)
        except DataError as error:
            raise DataError(f"{os.fspath(path)}: {error}") from None

    @classmethod
    def pairs(
        cls,
        path: str | os.PathLike[str],
        vocabulary: Vocabulary | None = None,
        *,
        held_out: float = 0.05,
        max_length: int | None = None,
        seed: int = 0,
    ) -> Sequences:
        """Source and target per line of a UTF-8 file, with a tab between them, as one example.

        The tab is a token: with `training.frozen = "source"` all up to it is given, and the model
        learns to write the target.

        Args:
            path: The file.
            vocabulary: What spells them, the tab as one token; None: the characters that occur.
            held_out: The share of the different examples that is valid, and again that is test.
            max_length: Longer examples are left out; None: there is no limit.
            seed: Of the order in which training sees the examples.

        Returns:
            Data with the splits train, valid and test.

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        ...     written = file.write("ab\\tba\\nabc\\tcba\\ncab\\tbac\\n")
        ...     file.flush()
        ...     Sequences.pairs(file.name).vocabulary.size
        4

        Reference: docs/infilling.md
        """
        lines = list(_lines(Path(path)))
        for number, line in enumerate(lines, start=1):
            if line.count("\t") != 1:
                raise DataError(
                    f"{os.fspath(path)}: pair {number} must be a source, one tab and a target, got "
                    f"{line[:40]!r}"
                )
        options = {"held_out": held_out, "max_length": max_length, "seed": seed}
        return cls._of_texts(path, lines, vocabulary, **options)

    def size(self, split: Split) -> int:
        """The number of examples in a split."""
        return len(self._splits[split].lengths)

    def _examples(self, start: int, count: int, split: Split) -> Batch:
        rows, number = self._splits[split], np.arange(start, start + count)
        places = number % self.size(split)
        if split == "train":
            passes = number // self.size(split)
            for turn in np.unique(passes).tolist():
                places[passes == turn] = self._shuffled(turn)[places[passes == turn]]
        return rows.batch(places)

    def _shuffled(self, turn: int) -> NDArray[Any]:
        """The order of the training examples in one pass."""
        if self._order is None or self._order[0] != turn:
            noise = RowSeeds(seeds_for(self.seed, "train pass", turn, 1))
            order = noise.uniform(self.size("train"))[0].argsort(stable=True).numpy()
            self._order = turn, order
        return self._order[1]


def found_vocabulary(examples: Iterable[Example]) -> Vocabulary:
    """The characters that occur in texts, sorted, or the integers up to the largest one.

    >>> found_vocabulary([[0, 3], [2]])
    IntegerVocabulary(size=4)
    """
    characters: set[str] = set()
    largest = -1
    for example in examples:
        if isinstance(example, str):
            characters.update(example)
        else:
            largest = max([largest, *map(operator.index, example)])
    if characters and largest >= 0:
        raise DataError("examples must be texts or lists of integers, got both")
    if not characters and largest < 0:
        raise DataError("examples must hold at least one token, got none")
    if characters:
        return CharacterVocabulary("".join(sorted(characters)))
    return IntegerVocabulary(largest + 1)


class _Rows:
    """Sequences of different lengths in one array."""

    def __init__(self, rows: list[NDArray[Any]]) -> None:
        self.lengths = np.array([len(row) for row in rows])
        self._starts = np.cumsum(self.lengths) - self.lengths
        # At least one entry, for rows that are all empty.
        self._tokens = np.concatenate([*rows, np.zeros(1, np.int64)])

    @property
    def longest(self) -> int:
        return int(self.lengths.max())

    def batch(self, places: NDArray[Any]) -> Batch:
        lengths = self.lengths[places]
        at = self._starts[places][:, None] + np.arange(lengths.max())
        # What is behind the end of a row is padding, whatever is read there.
        tokens = self._tokens[np.minimum(at, len(self._tokens) - 1)]
        return Batch(torch.from_numpy(tokens), torch.from_numpy(lengths))


def _listed(name: str, examples: Iterable[Example] | None) -> list[Example]:
    if examples is None or isinstance(examples, str):
        raise DataError(f"{name} must be a list of texts or of lists of integers, got {examples!r}")
    return list(examples)


def _encoded(
    name: str, examples: list[Example], vocabulary: Vocabulary, longest: int | None
) -> list[NDArray[Any]]:
    rows = []
    for number, example in enumerate(examples):
        try:
            row = np.array(vocabulary.encode(example), dtype=np.int64)
        except (ValueError, TypeError) as error:
            which = "example" if name == "train" else f"{name} example"
            raise DataError(f"{which} {number}: {error}") from None
        if longest is None or len(row) <= longest:
            rows.append(row)
    return rows


def _split(rows: list[NDArray[Any]], held_out: float) -> dict[Split, list[NDArray[Any]]]:
    """Different sequences in the order of their hash: the first share is valid, the next test."""
    if not 0 < held_out < 0.5:
        raise DataError(f"held_out must lie between 0 and 0.5, got {held_out!r}")
    digests = [hashlib.sha256(row.tobytes()).digest() for row in rows]
    different = sorted(set(digests))
    if len(different) < 3:
        raise DataError(
            f"three splits need at least 3 different examples, got {len(different)}; "
            "give valid and test apart, or more data"
        )
    held = max(1, int(len(different) * held_out))
    split_of: dict[bytes, Split] = dict.fromkeys(different, "train")
    split_of |= dict.fromkeys(different[:held], "valid")
    split_of |= dict.fromkeys(different[held : 2 * held], "test")
    parts: dict[Split, list[NDArray[Any]]] = {split: [] for split in SPLITS}
    for row, digest in zip(rows, digests, strict=True):
        parts[split_of[digest]].append(row)
    return parts


def _parsed(examples: list[str], vocabulary: Vocabulary | None) -> Sequence[Example]:
    if not isinstance(vocabulary, IntegerVocabulary):
        return examples
    rows: list[Example] = []
    for number, text in enumerate(examples):
        try:
            rows.append([int(word) for word in text.split()])
        except ValueError:
            raise DataError(
                f"example {number}: expected integers with spaces between, got {text[:40]!r}"
            ) from None
    return rows


def _lines(path: Path) -> Iterator[str]:
    for line in _text(path).splitlines():
        if line.strip():
            yield line


def _cells(path: Path, column: str) -> Iterator[str]:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    table = csv.DictReader(_text(path).splitlines(keepends=True), delimiter=delimiter)
    try:
        if column not in (table.fieldnames or ()):
            known = ", ".join(table.fieldnames or ()) or "none"
            raise DataError(f"{path} has no column {column!r}; its columns are {known}")
        for row in table:
            if cell := row[column]:
                yield cell
    except csv.Error as error:
        raise DataError(f"{path} is not CSV: {error} in line {table.line_num}") from None


def _text(path: Path) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8: {error.reason} at byte {error.start:,}; convert it to UTF-8"
        ) from None
    except OSError as error:
        raise DataUnavailable(f"cannot read {path}: {error.strerror or error}") from None
