"""A vocabulary of integers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, SupportsIndex

from indel.vocabularies.base import Vocabulary
from indel.vocabularies.reading import integer_at


# The slot of the field `size` replaces the abstract property of the base class.
@dataclass(frozen=True, slots=True)
class IntegerVocabulary(Vocabulary):
    """The integers 0…size−1, each its own id.

    >>> IntegerVocabulary(512).augmented_size
    515
    """

    size: int

    def __post_init__(self) -> None:
        if not isinstance(self.size, int):
            raise TypeError(f"size must be an int, got {self.size!r}")
        if self.size < 1:
            raise ValueError(f"size must be at least 1, got {self.size}")

    def encode(self, integers: str | Iterable[SupportsIndex], /) -> list[int]:
        """The integers themselves; one outside 0…size−1 is an error."""
        if isinstance(integers, str):
            raise TypeError(f"expected a sequence of integers, got the text {integers[:20]!r}")
        ids = [integer_at(item, position) for position, item in enumerate(integers)]
        for position, token in enumerate(ids):
            if not 0 <= token < self.size:
                raise ValueError(
                    f"integer {token} at position {position} is outside 0…{self.size - 1}"
                )
        return ids

    def decode(self, ids: Iterable[SupportsIndex]) -> list[int]:
        """The integers that regular tokens stand for."""
        return self._regular(ids)

    def text(self, ids: Iterable[SupportsIndex]) -> str:
        """The integers with spaces between them, markers by their symbols."""
        return " ".join(map(self.symbol, ids))

    def to_dict(self) -> dict[str, Any]:
        """The kind and the size."""
        return {"kind": "integers", "size": self.size}

    def _regular_symbol(self, token: int) -> str:
        return str(token)
