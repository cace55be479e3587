"""What every vocabulary has: ids of regular tokens, and the markers INS, DEL and EOS."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from importlib import import_module
from itertools import groupby
from typing import Any, SupportsIndex

from indel.vocabularies.reading import integer_at


class Vocabulary(ABC):
    """Regular tokens 0…K−1, followed by the markers INS = K, DEL = K+1 and EOS = K+2.

    >>> from indel import CharacterVocabulary
    >>> text8 = CharacterVocabulary.text8()
    >>> text8.size, text8.ins, text8.del_, text8.eos, text8.augmented_size
    (28, 28, 29, 30, 31)
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """The number K of regular tokens."""

    @property
    def ins(self) -> int:
        """The id K of the marker of a token to be inserted."""
        return self.size

    @property
    def del_(self) -> int:
        """The id K+1 of the marker of a deleted token."""
        return self.size + 1

    @property
    def eos(self) -> int:
        """The id K+2 of the end of a sequence."""
        return self.size + 2

    @property
    def augmented_size(self) -> int:
        """The number K+3 of regular tokens and markers."""
        return self.size + 3

    @abstractmethod
    def encode(self, items: str | Iterable[SupportsIndex], /) -> list[int]:
        """The ids of the regular tokens that spell a text (or a sequence of integers)."""

    @abstractmethod
    def decode(self, ids: Iterable[SupportsIndex]) -> str | list[int]:
        """What regular tokens spell; a marker or an id outside the vocabulary is an error."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data from which `Vocabulary.from_dict` makes an equal vocabulary."""

    @abstractmethod
    def _regular_symbol(self, token: int) -> str:
        """The sign that shows a regular token."""

    def symbol(self, token: SupportsIndex) -> str:
        """The visible sign of any id of the augmented vocabulary.

        >>> from indel import CharacterVocabulary
        >>> text8 = CharacterVocabulary.text8()
        >>> [text8.symbol(token) for token in (0, 26, text8.ins, text8.del_, text8.eos)]
        ['a', '␣', '⟨INS⟩', '⟨DEL⟩', '⟨EOS⟩']
        """
        token = operator.index(token)
        if not 0 <= token < self.augmented_size:
            raise ValueError(f"id {token} is outside the vocabulary 0…{self.eos}")
        if token < self.size:
            return self._regular_symbol(token)
        return ("⟨INS⟩", "⟨DEL⟩", "⟨EOS⟩")[token - self.size]

    def text(self, ids: Iterable[SupportsIndex]) -> str:
        """Any ids of the augmented vocabulary as text to read: markers are shown by their symbols.

        Unlike `decode` it never fails on what a model may make up: integers get spaces between
        them, and bytes that are not UTF-8 become U+FFFD.

        >>> from indel import ByteVocabulary, IntegerVocabulary
        >>> IntegerVocabulary(512).text([3, 10, 512]), ByteVocabulary().text([104, 105, 195])
        ('3 10 ⟨INS⟩', 'hi\N{REPLACEMENT CHARACTER}')
        """
        runs = groupby(map(operator.index, ids), key=lambda token: 0 <= token < self.size)
        return "".join(
            self._spelled(list(run)) if regular else "".join(map(self.symbol, run))
            for regular, run in runs
        )

    def _spelled(self, regular: list[int]) -> str:
        return str(self.decode(regular))

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Vocabulary:
        """The vocabulary that `to_dict` described.

        >>> Vocabulary.from_dict({"kind": "integers", "size": 512})
        IntegerVocabulary(size=512)
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"expected a dict, got {type(data).__name__}")
        fields = dict(data)
        kind = fields.pop("kind", None)
        # The kinds are built on this class, so their table is imported when it is needed.
        kinds = import_module("indel.vocabularies.kinds").KINDS
        if not isinstance(kind, str) or kind not in kinds:
            known = ", ".join(map(repr, kinds))
            raise ValueError(f"unknown kind of vocabulary {kind!r}; known are {known}")
        construct, expected = kinds[kind]
        if fields.keys() != expected:
            raise ValueError(
                f"a vocabulary of kind {kind!r} has the fields {sorted(expected)}, "
                f"got {sorted(fields, key=str)}"
            )
        found: Vocabulary = construct(**fields)
        return found

    def _regular(self, ids: Iterable[SupportsIndex]) -> list[int]:
        """The ids as plain integers, all of them regular tokens."""
        regular = []
        for position, item in enumerate(ids):
            token = integer_at(item, position)
            if not 0 <= token < self.size:
                reason = (
                    f"the marker {self.symbol(token)}, not a regular token"
                    if self.size <= token <= self.eos
                    else f"outside the vocabulary 0…{self.eos}"
                )
                raise ValueError(f"id {token} at position {position} is {reason}")
            regular.append(token)
        return regular
