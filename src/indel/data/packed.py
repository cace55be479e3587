"""Many short sequences in one array, as data with splits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from indel.batch import Batch
from indel.data.streams import BatchStream, Split
from indel.randomness import RowSeeds, seeds_for
from indel.vocabularies import Vocabulary


@dataclass(frozen=True)
class PackedRows:
    """Sequence i is numbers[starts[i] : ends[i]]; the numbers may be mapped from a file."""

    numbers: NDArray[Any]
    starts: NDArray[Any]
    ends: NDArray[Any]

    @classmethod
    def of(cls, rows: Iterable[list[int]]) -> PackedRows:
        """Rows one after the other."""
        listed = [np.array(row, dtype=np.int64) for row in rows]
        ends = np.cumsum([len(row) for row in listed])
        return cls(np.concatenate(listed), np.concatenate([[0], ends[:-1]]), ends)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def longest(self) -> int:
        """The length of the longest sequence."""
        return int((self.ends - self.starts).max())

    def row(self, place: int) -> list[int]:
        """One sequence."""
        found: list[int] = self.numbers[self.starts[place] : self.ends[place]].tolist()
        return found

    def batch(self, places: NDArray[Any]) -> Batch:
        """Some of the sequences, padded."""
        lengths = self.ends[places] - self.starts[places]
        at = self.starts[places][:, None] + np.arange(max(1, lengths.max()))
        # What is behind the end of a row is padding, whatever is read there.
        tokens = self.numbers[np.minimum(at, len(self.numbers) - 1)]
        return Batch(torch.from_numpy(tokens.astype(np.int64)), torch.from_numpy(lengths))


class PackedSequences(BatchStream):
    """Whole examples of different lengths, given by split, in a vocabulary of pieces of text.

    Training takes them in passes over the split, each shuffled anew: example i is a pure function
    of (seed, i). valid and test are read in one shuffled order, whatever the seed, again and again:
    tables are often sorted, and their first rows are like each other.
    """

    def __init__(self, rows: Mapping[Split, PackedRows], vocabulary: Vocabulary, seed: int) -> None:
        super().__init__(vocabulary, max(part.longest for part in rows.values()), seed)
        self._rows = dict(rows)
        # The order of the pass of each split that is being read.
        self._orders: dict[Split, tuple[int, NDArray[Any]]] = {}

    def size(self, split: Split) -> int:
        """The number of examples in a split."""
        return len(self._rows[split])

    def texts(self, split: Split, count: int | None = None) -> list[str]:
        """All examples of a split as text, in their own order; or so many, drawn from all of it."""
        rows = self._rows[split]
        places = range(len(rows)) if count is None else self._order(split, 0)[:count].tolist()
        # Millions of short rows: what a token spells does not depend on its neighbors here.
        pieces = [self.vocabulary.text([token]) for token in range(self.vocabulary.size)]
        return ["".join([pieces[token] for token in rows.row(place)]) for place in places]

    def fingerprint(self) -> str:
        """A checksum of all examples."""
        checksum = hashlib.sha256()
        for split, rows in sorted(self._rows.items()):
            checksum.update(f"{split} {len(rows)} ".encode())
            checksum.update(np.ascontiguousarray(rows.ends - rows.starts).tobytes())
            checksum.update(np.ascontiguousarray(rows.numbers).tobytes())
        return checksum.hexdigest()

    def _examples(self, start: int, count: int, split: Split) -> Batch:
        number = np.arange(start, start + count)
        places, passes = number % self.size(split), number // self.size(split)
        for turn in np.unique(passes).tolist():
            places[passes == turn] = self._order(split, turn)[places[passes == turn]]
        return self._rows[split].batch(places)

    def _order(self, split: Split, turn: int) -> NDArray[Any]:
        """The order of the examples of a split in one pass: always the same but for training."""
        turn, seed = (turn, self.seed) if split == "train" else (0, 0)
        if split not in self._orders or self._orders[split][0] != turn:
            noise = RowSeeds(seeds_for(seed, f"{split} pass", turn, 1))
            order = noise.uniform(self.size(split))[0].argsort(stable=True).numpy()
            self._orders[split] = turn, order
        return self._orders[split][1]
