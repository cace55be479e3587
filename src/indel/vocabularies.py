"""Vocabularies: text, integers or bytes to token ids and back, with the markers INS, DEL, EOS."""

from __future__ import annotations

import json
import operator
import os
import string
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from indel import extras

if TYPE_CHECKING:
    import tokenizers

_TEXT8_CHARACTERS = string.ascii_lowercase + " "


class Vocabulary(ABC):
    """Regular tokens 0…K−1, followed by the markers INS = K, DEL = K+1 and EOS = K+2.

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
        if not isinstance(kind, str) or kind not in _KINDS:
            known = ", ".join(map(repr, _KINDS))
            raise ValueError(f"unknown kind of vocabulary {kind!r}; known are {known}")
        construct, expected = _KINDS[kind]
        if fields.keys() != expected:
            raise ValueError(
                f"a vocabulary of kind {kind!r} has the fields {sorted(expected)}, "
                f"got {sorted(fields, key=str)}"
            )
        return construct(**fields)

    def _regular(self, ids: Iterable[SupportsIndex]) -> list[int]:
        """The ids as plain integers, all of them regular tokens."""
        regular = []
        for position, item in enumerate(ids):
            token = _integer(item, position)
            if not 0 <= token < self.size:
                reason = (
                    f"the marker {self.symbol(token)}, not a regular token"
                    if self.size <= token <= self.eos
                    else f"outside the vocabulary 0…{self.eos}"
                )
                raise ValueError(f"id {token} at position {position} is {reason}")
            regular.append(token)
        return regular


@dataclass(frozen=True)
class CharacterVocabulary(Vocabulary):
    """One token per character (code point), numbered in the order given.

    >>> CharacterVocabulary("ACGT").encode("GATTACA")
    [2, 0, 3, 3, 0, 1, 0]
    """

    characters: str

    def __post_init__(self) -> None:
        _require_text(self.characters)
        if not self.characters:
            raise ValueError("a character vocabulary needs at least one character")
        first: dict[str, int] = {}
        for position, character in enumerate(self.characters):
            if character in first:
                raise ValueError(
                    f"character {_named(character)} stands at positions {first[character]} "
                    f"and {position}; each may occur once"
                )
            first[character] = position
        _utf8(self.characters)  # JSON would fuse two halves of a surrogate pair into one character

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
        text = _require_text(text)
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
            f"character {_named(character)} at position {text.index(character)} is not in the "
            f"vocabulary; allowed are the {self.size} characters {allowed}{hint}"
        )

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """The text that regular tokens spell."""
        return "".join([self.characters[token] for token in self._regular(ids)])

    def to_dict(self) -> dict[str, Any]:
        """The kind and the characters."""
        return {"kind": "characters", "characters": self.characters}

    def _regular_symbol(self, token: int) -> str:
        return _visible(self.characters[token])


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
        ids = [_integer(item, position) for position, item in enumerate(integers)]
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
        return list(_utf8(_require_text(text)))

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
        return _visible(chr(token)) if token < 128 else f"\\x{token:02x}"


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
        return cls._from_serialized(Path(path).read_text(encoding="utf-8"))

    @classmethod
    def _from_serialized(cls, tokenizer: str) -> TokenizerVocabulary:
        library = _import_tokenizers()
        try:
            parsed = library.Tokenizer.from_str(_require_text(tokenizer))
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
        text = _require_text(text)
        _utf8(text)  # the library reports half a surrogate pair as "not a str"
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
        return "".join(map(_visible, self._tokenizer.id_to_token(token) or ""))


def _smiles(tokens: list[str]) -> Vocabulary:
    # That module is built on this one, so it is imported when it is needed.
    found: Vocabulary = import_module("indel.smiles").SmilesVocabulary(tokens)
    return found


_KINDS: dict[str, tuple[Callable[..., Vocabulary], set[str]]] = {
    "characters": (CharacterVocabulary, {"characters"}),
    "integers": (IntegerVocabulary, {"size"}),
    "bytes": (ByteVocabulary, set()),
    "tokenizer": (TokenizerVocabulary._from_serialized, {"tokenizer"}),
    "smiles": (_smiles, {"tokens"}),
}


def _import_tokenizers() -> Any:
    return extras.require("this vocabulary", "tokenizers", "tokenizers")


def _require_text(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"expected text (str), got {type(text).__name__}")
    return text


def _integer(item: SupportsIndex, position: int) -> int:
    try:
        return operator.index(item)
    except TypeError:
        raise TypeError(f"{item!r} at position {position} is not an integer") from None


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character {_named(text[error.start])} at position {error.start} is half of a "
            "surrogate pair, which UTF-8 cannot encode; allowed is every other character"
        ) from None


def _named(character: str) -> str:
    return f"{character!r} (U+{ord(character):04X})"


def _visible(character: str) -> str:
    if character == " ":
        return "␣"
    return character if character.isprintable() else repr(character)[1:-1]
