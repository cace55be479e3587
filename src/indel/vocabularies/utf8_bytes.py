"""A vocabulary of the bytes of UTF-8."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

from indel.vocabularies.base import Vocabulary
from indel.vocabularies.reading import require_text, utf8, visible


@dataclass(frozen=True)
class ByteVocabulary(Vocabulary):
    """The 256 bytes of UTF-8: any text, several tokens for a character outside ASCII.

    >>> ByteVocabulary().encode("né")
    [110, 195, 169]
    """

    @property
    def size(self) -> int:
        """256, the number of bytes."""
        return 256

    def encode(self, text: str | Iterable[SupportsIndex], /) -> list[int]:
        """The UTF-8 bytes of a text."""
        return list(utf8(require_text(text)))

    def decode(
        self, ids: Iterable[SupportsIndex], errors: Literal["strict", "replace"] = "strict"
    ) -> str:
        """The text whose UTF-8 bytes these are; invalid ones are an error, or become U+FFFD.

        >>> ByteVocabulary().decode([110, 195], errors="replace")
        'n\N{REPLACEMENT CHARACTER}'
        """
        content = bytes(self._regular(ids))
        try:
            return content.decode("utf-8", errors=errors)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"byte 0x{content[error.start]:02x} at position {error.start} is not valid UTF-8 "
                f"({error.reason}); decode with errors='replace' to show U+FFFD there"
            ) from None

    def _spelled(self, regular: list[int]) -> str:
        return self.decode(regular, errors="replace")

    def to_dict(self) -> dict[str, Any]:
        """The kind alone."""
        return {"kind": "bytes"}

    def _regular_symbol(self, token: int) -> str:
        return visible(chr(token)) if token < 128 else f"\\x{token:02x}"
