"""Random chunks of one long text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int, Integer
from numpy.typing import NDArray

from indel.batch import Batch
from indel.checks import integer
from indel.data.errors import DataError
from indel.data.streams import SPLITS, BatchStream, Split, whole_number
from indel.randomness import RowSeeds, seeds_for
from indel.vocabularies import CharacterVocabulary, Vocabulary

_PIECE = 1 << 22  # numbers that are read at a time


@dataclass(frozen=True)
class MappedFile:
    """Numbers in a file, mapped into memory when they are first read."""

    path: Path
    dtype: str

    @cached_property
    def numbers(self) -> NDArray[Any]:
        """The file's content; the array that comes of indexing it is an ordinary one."""
        return np.asarray(np.memmap(self.path, dtype=self.dtype, mode="r"))

    def __getstate__(self) -> dict[str, Any]:
        # A process that receives this maps the file itself, instead of getting a copy of it.
        return {"path": self.path, "dtype": self.dtype}


@dataclass(frozen=True)
class Numbers:
    """Numbers in memory."""

    numbers: NDArray[Any]


class ChunkStream(BatchStream):
    """Chunks of ℓ tokens from random places of a text, with its splits at fixed positions.

    Chunk i of a split that has N tokens starts at ⌊u_i (N − ℓ + 1)⌋ and never leaves the split.
    """

    def __init__(
        self,
        text: MappedFile | Numbers,
        spans: Mapping[Split, tuple[int, int]],
        vocabulary: Vocabulary,
        *,
        chunk_length: int,
        seed: int,
        name: str,
        token_of: Int[np.ndarray, " codes"] | None = None,
    ) -> None:
        super().__init__(vocabulary, integer("chunk_length", chunk_length, least=1), seed)
        for split in SPLITS:
            start, stop = spans[split]
            if stop - start < chunk_length:
                raise DataError(
                    f"{name}: the split {split} has {stop - start:,} tokens, fewer than one chunk "
                    f"of {chunk_length:,}; give more text or a smaller chunk_length"
                )
        self._text = text
        self._spans = dict(spans)
        self._token_of = token_of

    def fingerprint(self) -> str:
        """A checksum of the whole text and of where its splits are."""
        checksum = hashlib.sha256(repr(sorted(self._spans.items())).encode())
        numbers = self._text.numbers
        for start in range(0, len(numbers), _PIECE):
            checksum.update(numbers[start : start + _PIECE].tobytes())
        return checksum.hexdigest()

    def size(self, split: Split) -> int:
        """The number of tokens in a split."""
        start, stop = self._spans[split]
        return stop - start

    def text(self, split: Split) -> str:
        """A whole split as text, for vocabularies of characters."""
        if not isinstance(self.vocabulary, CharacterVocabulary):
            raise ValueError(f"{type(self.vocabulary).__name__} does not spell characters")
        codes = np.array([ord(character) for character in self.vocabulary.characters], "<u4")
        text: str = codes[self.tokens(split)].tobytes().decode("utf-32-le")
        return text

    def tokens(self, split: Split) -> Integer[np.ndarray, " length"]:
        """A whole split."""
        start, stop = self._spans[split]
        numbers = self._text.numbers[start:stop]
        return numbers if self._token_of is None else self._token_of[numbers]

    def _examples(self, start: int, count: int, split: Split) -> Batch:
        length = self.max_length
        first, _ = self._spans[split]
        uniform = RowSeeds(seeds_for(self.seed, split, start, count)).uniform(1)[:, 0]
        starts = first + whole_number(uniform, self.size(split) - length + 1)
        tokens = self._text.numbers[starts.numpy()[:, None] + np.arange(length)]
        if self._token_of is not None:
            tokens = self._token_of[tokens]
        return Batch(
            torch.from_numpy(tokens.astype(np.int64)),
            torch.full((count,), length, dtype=torch.int64),
        )
