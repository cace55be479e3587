"""A vocabulary of characters."""

from __future__ import annotations

import string
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex

from indel.vocabularies.base import Vocabulary
from indel.vocabularies.reading import named, require_text, utf8, visible

_TEXT8_CHARACTERS = string.ascii_lowercase + " "


@dataclass(frozen=True)
class CharacterVocabulary(Vocabulary):
    """One token per character (code point), numbered in the order given.

    >>> CharacterVocabulary("ACGT").encode("GATTACA")
    [2, 0, 3, 3, 0, 1, 0]
    """

    characters: str

    def __post_init__(self) -> None:
        require_text(self.characters)
        if not self.characters:
            raise ValueError("a character vocabulary needs at least one character")
        first: dict[str, int] = {}
        for position, character in enumerate(self.characters):
            if character in first:
                raise ValueError(
                    f"character {named(character)} stands at positions {first[character]} "
                    f"and {position}; each may occur once"
                )
            first[character] = position
        utf8(self.characters)  # JSON would fuse two halves of a surrogate pair into one character

    @classmethod
    def text8(cls) -> CharacterVocabulary:
        """'a' = 0 … 'z' = 25, ' ' = 26 and '-' = 27, which text8 never uses.

        Paper: App. C.3 (28 tokens; it gives no order).
        """
        return cls(_TEXT8_CHARACTERS + "-")

    @property
    def size(self) -> int:
        """The number of characters."""
        return len(self.characters)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {character: token for token, character in enumerate(self.characters)}

    def encode(self, text: str | Iterable[SupportsIndex], /) -> list[int]:
        """The id of each character; one that is not in the vocabulary is an error."""
        text = require_text(text)
        try:
            return [self._ids[character] for character in text]
        except KeyError as error:
            (character,) = error.args
        allowed = repr(self.characters[:64]) + (" …" if self.size > 64 else "")
        hint = (
            "; indel.normalize_text8 rewrites any text in text8's alphabet"
            if self._ids.keys() >= set(_TEXT8_CHARACTERS)
            else ""
        )
        raise ValueError(
            f"character {named(character)} at position {text.index(character)} is not in the "
            f"vocabulary; allowed are the {self.size} characters {allowed}{hint}"
        )

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """The text that regular tokens spell."""
        return "".join([self.characters[token] for token in self._regular(ids)])

    def to_dict(self) -> dict[str, Any]:
        """The kind and the characters."""
        return {"kind": "characters", "characters": self.characters}

    def _regular_symbol(self, token: int) -> str:
        return visible(self.characters[token])
