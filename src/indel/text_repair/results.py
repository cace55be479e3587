"""What a repair says: the mended text, and each correction with its probability."""

from __future__ import annotations

from dataclasses import dataclass

LEAST = 1e-3
"""Choices less likely than this are not listed."""


@dataclass(frozen=True)
class Choice:
    """One way to write a stretch of text, and how likely it is.

    Without known words that is the share of the draws that write it so.
    """

    text: str
    probability: float


@dataclass(frozen=True)
class Correction:
    """A stretch original[start:end] of whole words and how it may be written."""

    start: int
    end: int
    before: str
    choices: tuple[Choice, ...]
    """The likeliest first; the text as it stood is one of them if any draw kept it."""

    @property
    def after(self) -> str:
        """The likeliest way to write it."""
        return self.choices[0].text

    @property
    def probability(self) -> float:
        """How likely that is."""
        return self.choices[0].probability


@dataclass(frozen=True)
class Repair:
    """A text and what became of it.

    Outside the corrections, `text` is `original` to the letter.
    """

    original: str
    text: str
    """The best answer: the original with all corrections made."""
    corrections: tuple[Correction, ...]
    """Those that are likely enough, by place."""
    doubts: tuple[Correction, ...]
    """Places that may be wrong, but no correction is likely enough: left as they stood."""
    alternatives: tuple[Choice, ...]
    """Whole texts, the likeliest first: the best answer with one place written otherwise."""
    draws: tuple[str, ...]
    """The whole text as each draw has it."""
