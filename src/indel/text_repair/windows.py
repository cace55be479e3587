"""Texts of any length as windows of the length that the model has learned."""

from __future__ import annotations

from dataclasses import dataclass

BEFORE = (
    "it was one of the first books of its kind and many of the people who read it at the time were "
    "of the opinion that nothing better had been written about the history of the country "
)
AFTER = (
    " and it is still in use today in many parts of the world where it is known as one of the most "
    "important works of the nineteenth century and has been the subject of several other books"
)
"""Plain words around a text that is shorter than a window: the model has only seen full ones."""


@dataclass(frozen=True)
class Window:
    """The stretch line[start:end], with filling around it where the line is too short."""

    text: str
    start: int
    end: int
    offset: int
    """Where the stretch begins in `text`."""


def cut_windows(line: str, width: int, overlap: int) -> list[Window]:
    """Cover a line with windows of one width; neighbours share at least `overlap` letters.

    >>> [(window.start, window.end) for window in cut_windows("a" * 250, 100, 20)]
    [(0, 100), (75, 175), (150, 250)]
    >>> window, = cut_windows("short", 20, 4)
    >>> window.text, window.text[window.offset:][:5]
    ('ountry short and it ', 'short')
    """
    if len(line) <= width:
        left = (width - len(line)) // 2
        right = width - len(line) - left
        before, after = _repeated(BEFORE, left), _repeated(AFTER, right)
        return [Window(before[len(before) - left :] + line + after[:right], 0, len(line), left)]
    count = -(-(len(line) - overlap) // (width - overlap))
    starts = [round(number * (len(line) - width) / (count - 1)) for number in range(count)]
    return [Window(line[start : start + width], start, start + width, 0) for start in starts]


def _repeated(filling: str, length: int) -> str:
    return filling * -(-length // len(filling))
