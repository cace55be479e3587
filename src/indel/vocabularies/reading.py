"""What vocabularies ask of the items they are given, and how they name them in messages."""

from __future__ import annotations

import operator
from typing import SupportsIndex


def require_text(text: object) -> str:
    """The text, if it is one."""
    if not isinstance(text, str):
        raise TypeError(f"expected text (str), got {type(text).__name__}")
    return text


def integer_at(item: SupportsIndex, position: int) -> int:
    """The integer at a position of a sequence."""
    try:
        return operator.index(item)
    except TypeError:
        raise TypeError(f"{item!r} at position {position} is not an integer") from None


def utf8(text: str) -> bytes:
    """The UTF-8 bytes of a text; half of a surrogate pair has none."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character {named(text[error.start])} at position {error.start} is half of a "
            "surrogate pair, which UTF-8 cannot encode; allowed is every other character"
        ) from None


def named(character: str) -> str:
    """A character with its code point, for messages."""
    return f"{character!r} (U+{ord(character):04X})"


def visible(character: str) -> str:
    """A sign that shows a character, spaces and controls included."""
    if character == " ":
        return "␣"
    return character if character.isprintable() else repr(character)[1:-1]
