"""Several draws of one text become votes on how to write each word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from indel.process.edits import INSERTED
from indel.text_repair.results import Choice

SPACE = " "


@dataclass(frozen=True)
class LetterCorrection:
    """A stretch letters[start:end] of whole words and what the draws make of it."""

    start: int
    end: int
    choices: tuple[Choice, ...]
    """The likeliest first; the letters as they stood are one of them if any draw kept them."""
    votes: tuple[str, ...]
    """What each draw writes."""


@dataclass(frozen=True)
class AlignedDraw:
    """One way to write a text, aligned with it letter by letter.

    pieces[2i+1] is what became of letter i, nothing if it was taken out; pieces[2i] is what was
    put in before letter i, or at the end.
    """

    pieces: tuple[str, ...]

    @classmethod
    def of(cls, length: int, drawn: str, origins: Sequence[int]) -> AlignedDraw:
        """Sort the letters of a draw by where they come from; what is new follows the last old one.

        >>> AlignedDraw.of(3, "that", [0, -1, 1, 2]).pieces
        ('', 't', 'h', 'a', '', 't', '')
        """
        pieces = [""] * (2 * length + 1)
        last = -1
        for letter, origin in zip(drawn, origins, strict=True):
            if origin == INSERTED:
                pieces[2 * last + 2] += letter
            else:
                pieces[2 * origin + 1] = letter
                last = origin
        return cls(tuple(pieces))

    def part(self, start: int, end: int) -> AlignedDraw:
        """The same of the letters start…end−1 alone."""
        return AlignedDraw(self.pieces[2 * start : 2 * end + 1])

    def keeps_space(self, place: int) -> bool:
        """Whether the space at a place is still one."""
        return self.pieces[2 * place + 1] == SPACE

    def written(self, start: int, end: int) -> str:
        """What letters start…end−1 have become, with what was put in around them."""
        return SPACE.join("".join(self.part(start, end).pieces).split())


def kept_spaces(letters: str, draws: Sequence[AlignedDraw]) -> list[int]:
    """Where the words of most draws end: the spaces that more than half of them keep."""
    return [
        place
        for place, letter in enumerate(letters)
        if letter == SPACE and 2 * sum(draw.keeps_space(place) for draw in draws) > len(draws)
    ]


def vote(
    letters: str,
    draws: Sequence[AlignedDraw],
    ends: Sequence[int],
    also: Callable[[int, int], bool] = lambda start, end: False,
) -> list[LetterCorrection]:
    """Count how the draws write each stretch between spaces that most of them keep.

    Only stretches that some draw changes are listed, and those that `also` asks for. A draw that
    leaves nothing of a stretch does not count against it: words are mended, not dropped.

    >>> draws = [AlignedDraw.of(7, word, range(7)) for word in ("the cat", "the bat", "the cat")]
    >>> vote("tie cat", draws, ends=[3])[0].choices
    (Choice(text='the', probability=1.0),)
    """
    found = []
    start = 0
    for end in [*ends, len(letters)]:
        before = letters[start:end]
        votes = tuple(draw.written(start, end) or before for draw in draws)
        if any(written != before for written in votes) or (before and also(start, end)):
            # Equally frequent: the first in the alphabet, so that nothing depends on the order.
            counts = sorted(Counter(votes).items(), key=lambda item: (-item[1], item[0]))
            choices = tuple(Choice(text, count / len(votes)) for text, count in counts)
            found.append(LetterCorrection(start, end, choices, votes))
        start = end + 1
    return found
