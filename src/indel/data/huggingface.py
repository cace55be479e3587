"""Texts of a Hugging Face dataset, from the hub or from a local copy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from indel.batch import PADDING, Batch
from indel.checks import integer
from indel.data.errors import DataError
from indel.data.hub_records import DataFiles, open_records
from indel.data.streams import BatchStream, Split
from indel.randomness import RowSeeds, seeds_for
from indel.vocabularies import ByteVocabulary, Vocabulary
from indel.vocabularies.text8_alphabet import normalize_text8

TokenRow = Int[Tensor, " _"]


class HuggingFaceText(BatchStream):
    """One example a record: its text, or a random part of `max_length` tokens if it is longer.

    `name` is a dataset of the hub, a folder that `save_to_disk` made, a folder of data files, one
    data file (JSON lines, text with a record a line, CSV, Parquet), or a reader such as "json"
    together with `data_files`. Without a vocabulary the tokens are bytes. `column` holds the text.
    `splits` tells which of the dataset's own splits serve as train, valid and test, where they do
    not have the usual names. For a split that the dataset does not have, one record in 20 of the
    training split is held out.

    Records are read in blocks of `block` and shuffled inside a block, anew in each pass over the
    data. Records without a token are left out, and others of their block stand in for them: so
    example i comes from the block of record i (modulo their number), wherever reading begins.

    What resuming costs: nothing for a copy made by `save_to_disk`, which is read at any place.
    Everything else is streamed: to reach example i, the records before it in the same pass are
    downloaded or parsed again (not encoded), and beyond the first pass the whole stream is read
    once to count it. Going back costs the same. Each process of a run reads the whole stream.
    """

    def __init__(
        self,
        name: str | os.PathLike[str],
        vocabulary: Vocabulary | None = None,
        max_length: int = 118,
        *,
        seed: int = 0,
        column: str = "text",
        config: str | None = None,
        revision: str | None = None,
        data_files: DataFiles | None = None,
        splits: Mapping[Split, str] | None = None,
        normalize: bool = False,
        block: int = 1024,
    ) -> None:
        super().__init__(ByteVocabulary() if vocabulary is None else vocabulary, max_length, seed)
        self._name = os.fspath(name)
        self._column = column
        self._normalize = normalize
        self._block_size = integer("block", block, least=1)
        self._records = open_records(
            self._name,
            column=column,
            config=config,
            revision=revision,
            data_files=data_files,
            splits=splits or {},
        )
        # A block serves many batches, so the last one of each split is kept.
        self._kept: dict[Split, tuple[tuple[int, int], list[TokenRow]]] = {}

    def _examples(self, start: int, count: int, split: Split) -> Batch:
        rows: list[TokenRow] = []
        while len(rows) < count:
            rows += self._rest_of_block(start + len(rows), split)[: count - len(rows)]
        tokens = pad_sequence(rows, batch_first=True, padding_value=PADDING)
        return Batch(tokens, torch.tensor([len(row) for row in rows]))

    def _rest_of_block(self, number: int, split: Split) -> list[TokenRow]:
        """The example of that number and those after it in its block."""
        records = self._records[split]
        for _ in range(2):  # the first time may only find out where the stream ends
            if records.count == 0:
                raise DataError(f"{self._name!r} has no records for the split {split}")
            turn, place = divmod(number, records.count) if records.count else (0, number)
            block, place = divmod(place, self._block_size)
            if rest := self._block(turn, block, split)[place:]:
                return rest
        raise DataError(f"{self._name!r} has become shorter while it was read")

    def _block(self, turn: int, number: int, split: Split) -> list[TokenRow]:
        """A block of the records in the order of one pass, as many as there are records."""
        if split not in self._kept or self._kept[split][0] != (turn, number):
            self._kept[split] = (turn, number), self._shuffled(turn, number, split)
        return self._kept[split][1]

    def _shuffled(self, turn: int, number: int, split: Split) -> list[TokenRow]:
        first = number * self._block_size
        records = self._records[split].read(first, self._block_size)
        if not records:
            return []
        purpose = f"{split} pass {turn}"
        where = RowSeeds(seeds_for(self.seed, purpose, first, len(records))).uniform(1)
        encoded = [
            self._part(self._encode(record, first + n), float(where[n]))
            for n, record in enumerate(records)
        ]
        full = [row for row in encoded if len(row)]
        if not full:
            raise DataError(
                f"{self._name!r}: records {first:,} to {first + len(records) - 1:,} of the split "
                f"{split} have no text in the column {self._column!r}"
            )
        order = RowSeeds(seeds_for(self.seed, f"{purpose} order", number, 1))
        shuffled = order.uniform(len(full))[0].argsort(stable=True).tolist()
        return [full[shuffled[n % len(full)]] for n in range(len(records))]

    def _encode(self, record: Mapping[str, Any], number: int) -> list[int]:
        text = record.get(self._column)
        place = f"{self._name!r}, record {number:,}"
        if not isinstance(text, str):
            raise DataError(
                f"{place}: the column {self._column!r} must hold text, but holds "
                f"{type(text).__name__}; the columns are {', '.join(record)}"
            )
        try:
            return self.vocabulary.encode(normalize_text8(text) if self._normalize else text)
        except ValueError as error:
            raise DataError(f"{place}: {error}") from error

    def _part(self, tokens: list[int], where: float) -> TokenRow:
        start = int(where * max(1, len(tokens) - self.max_length + 1))
        return torch.tensor(tokens[start : start + self.max_length], dtype=torch.int64)
