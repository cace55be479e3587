"""A vocabulary of the pieces of a Hugging Face tokenizer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from indel import extras
from indel.vocabularies.base import Vocabulary
from indel.vocabularies.reading import require_text, utf8, visible

if TYPE_CHECKING:
    import tokenizers


@dataclass(frozen=True, init=False, repr=False)
class TokenizerVocabulary(Vocabulary):
    """The tokens of a Hugging Face tokenizer, with the ids that it gives them.

    The tokenizer is copied, without truncation and padding; special tokens are neither added to a
    text nor hidden from it. What its model does not know is an error, where BPE would drop it.
    """

    serialized: str

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        library = _import_tokenizers()
        if not isinstance(tokenizer, library.Tokenizer):
            raise TypeError(
                f"expected a tokenizers.Tokenizer, got {type(tokenizer).__name__} (a fast "
                "tokenizer of transformers has one as its `backend_tokenizer`)"
            )
        copy = library.Tokenizer.from_str(tokenizer.to_str())
        copy.no_truncation()
        copy.no_padding()
        ids = copy.get_vocab().values()
        if not ids or sorted(ids) != list(range(len(ids))):
            raise ValueError(
                f"the ids of the tokenizer's {len(ids)} tokens must be 0…K−1, each used once"
            )
        object.__setattr__(self, "serialized", copy.to_str())

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> TokenizerVocabulary:
        """The vocabulary of a `tokenizer.json`."""
        return cls.from_serialized(Path(path).read_text(encoding="utf-8"))

    @classmethod
    def from_serialized(cls, tokenizer: str) -> TokenizerVocabulary:
        """The vocabulary of the JSON text that a tokenizer is written as."""
        library = _import_tokenizers()
        try:
            parsed = library.Tokenizer.from_str(require_text(tokenizer))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"not the JSON of a tokenizer: {error}") from error
        return cls(parsed)

    def __repr__(self) -> str:
        return f"TokenizerVocabulary({type(self._tokenizer.model).__name__}, size={self.size})"

    @cached_property
    def _tokenizer(self) -> tokenizers.Tokenizer:
        tokenizer: tokenizers.Tokenizer = _import_tokenizers().Tokenizer.from_str(self.serialized)
        return tokenizer

    @cached_property
    def _encoder(self) -> tuple[tokenizers.Tokenizer, int | None]:
        """The tokenizer that encodes, and the id that it gives to unknown text."""
        data = json.loads(self.serialized)
        model = data["model"]
        if model["type"] == "Unigram":
            return self._tokenizer, model["unk_id"]
        if model["unk_token"] in model["vocab"]:
            return self._tokenizer, model["vocab"][model["unk_token"]]
        # Without an unknown token BPE drops characters silently, and other models refuse the text
        # without naming a place. So this copy gets one: K, under a name longer than all others.
        # Added tokens join the model's vocabulary, or that extra token would shift their ids.
        model["unk_token"] = max(self._tokenizer.get_vocab(), key=len) + "?"
        model["vocab"] |= {added["content"]: added["id"] for added in data["added_tokens"]}
        model["vocab"][model["unk_token"]] = self.size
        return _import_tokenizers().Tokenizer.from_str(json.dumps(data)), self.size

    @cached_property
    def size(self) -> int:
        """The number of the tokenizer's tokens, added ones included."""
        return self._tokenizer.get_vocab_size()

    def encode(self, text: str | Iterable[SupportsIndex], /) -> list[int]:
        """The tokenizer's ids for a text; a piece that it does not know is an error."""
        text = require_text(text)
        utf8(text)  # the library reports half a surrogate pair as "not a str"
        encoder, unknown = self._encoder
        try:
            encoding = encoder.encode(text, add_special_tokens=False)
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"the tokenizer cannot encode the text: {error}") from error
        ids = encoding.ids
        if unknown in ids:
            start, end = encoding.offsets[ids.index(unknown)]
            raise ValueError(
                f"piece {text[start:end]!r} at position {start} is unknown to the tokenizer"
            )
        return ids

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """The text that the tokenizer makes of regular tokens."""
        return self._tokenizer.decode(self._regular(ids), skip_special_tokens=False)

    def to_dict(self) -> dict[str, Any]:
        """The kind and the tokenizer's own JSON, as a string."""
        return {"kind": "tokenizer", "tokenizer": self.serialized}

    def _regular_symbol(self, token: int) -> str:
        return "".join(map(visible, self._tokenizer.id_to_token(token) or ""))


def _import_tokenizers() -> Any:
    return extras.require("this vocabulary", "tokenizers", "tokenizers")
