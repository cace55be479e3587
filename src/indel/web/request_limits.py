"""What a request may ask for: every bound of the page, each with its message."""

from __future__ import annotations

from dataclasses import dataclass

from indel.vocabularies.text8_alphabet import normalize_text8

SEEDS = 2**32 - 1


@dataclass(frozen=True)
class Limits:
    """Chosen so that no single request takes more than about half a minute on two cores."""

    repair_letters: int = 2_000
    repair_draws: int = 32
    repair_work: int = 125_000
    """Letters times draws times strength: what the model has to read."""
    sequence_letters: int = 118
    """Of a text that is watched or taken apart: as long as the text that the models know."""
    steps: int = 64
    """T of a chain of one's own."""
    fill_samples: int = 4
    fill_particles: int = 8
    molecule_letters: int = 200
    molecules: int = 8
    molecule_particles: int = 8
    molecule_draws: int = 16
    scored_letters: int = 590
    chains: int = 8
    running: int = 2
    """Requests that are worked on at once; the others wait."""
    waiting: int = 32
    """Requests that may wait; a further one is told to try again."""
    sessions: int = 64
    """Visitors, and calls of the API, of which the server remembers the state of the page."""
    body_bytes: int = 4 * 2**20
    """Of any request."""
    of_client: int = 4
    """Requests that one address on another machine may have waiting and running together."""
    connections: int = 512
    connections_of_client: int = 64
    """Of one address on another machine."""
    request_seconds: float = 20.0
    """For a request to arrive; what is half said then is dropped."""


LIMITS = Limits()


def text(name: str, value: object, most: int) -> str:
    """A text of a length that is allowed.

    >>> text("the text", "hello", 4)
    Traceback (most recent call last):
        ...
    ValueError: the text has 5 characters; at most 4 are taken here
    """
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, got {type(value).__name__}")
    if len(value) > most:
        raise ValueError(f"{name} has {len(value):,} characters; at most {most:,} are taken here")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} holds half of a surrogate pair at position {error.start}; allowed is every "
            "whole character"
        ) from None
    return value


def letters(name: str, value: object, most: int) -> str:
    """A text in the alphabet of the models, a–z and spaces, of at least one letter.

    >>> letters("the text", "Hello, world!", 20)
    'hello world'
    """
    # Digits become words: what is too long afterwards is refused as well.
    found = text(name, normalize_text8(text(name, value, most)), most)
    if not found:
        raise ValueError(f"{name} holds no letter a–z and no digit; type some words")
    return found


def whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number in a range, as sliders (and JSON) give it.

    >>> whole("strength", 3.0, 1, 32)
    3
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise ValueError(f"{name} must be a whole number in {low}…{high}, got {value!r:.40}")
    if not low <= value <= high:
        raise ValueError(f"{name} must lie in {low}…{high}, got {_short(value)}")
    return int(value)


def _short(value: int | float) -> str:
    # A number of a thousand digits has no float, and perhaps no decimal form either.
    return f"{value:g}" if -1e300 < value < 1e300 else "a number far from it"


def share(name: str, value: object) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{name} must lie in 0…1, got {value!r:.40}")
    return float(value)


def flag(name: str, value: object) -> bool:
    """Yes or no."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {value!r:.40}")
    return value


def numbers(name: str, value: object, below: int, most: int) -> list[int]:
    """Numbers in 0…below−1 with spaces or commas between them.

    >>> numbers("the sequence", "3, 5 7", 512, 64)
    [3, 5, 7]
    """
    words = text(name, value, 8 * most).replace(",", " ").split()
    if not words or len(words) > most:
        raise ValueError(f"{name} must hold 1…{most} numbers, got {len(words)}")
    for word in words:
        # isdecimal alone also takes digits of other scripts, which int reads just as well.
        if not word.isdecimal() or int(word) >= below:
            raise ValueError(f"{name} must hold whole numbers in 0…{below - 1}, got {word!r:.40}")
    return [int(word) for word in words]
