"""Mending text in the model's own alphabet: windows, draws, votes, and one line again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch

from indel.batch import Batch
from indel.model import Denoiser
from indel.randomness import RowSeeds, seeds_for
from indel.text_repair import defaults
from indel.text_repair.context import ContextScore
from indel.text_repair.draws import draw_origins
from indel.text_repair.proposals import Proposals
from indel.text_repair.spelling import Place, Spelling
from indel.text_repair.votes import AlignedDraw, LetterCorrection, kept_spaces, vote
from indel.text_repair.windows import Window, cut_windows

Progress = Callable[[int, int], None]
"""Is given how many windows are done, and of how many; what it raises ends the work."""


@dataclass(frozen=True)
class LetterRepair:
    """A line of letters and every place that may be written otherwise."""

    letters: str
    corrections: tuple[LetterCorrection, ...]
    """By place, apart from each other."""


@dataclass(frozen=True)
class _Votes:
    """What the draws make of one window, in places of the line."""

    window: Window
    ends: tuple[int, ...]
    """The spaces that most draws keep."""
    corrections: tuple[LetterCorrection, ...]


@dataclass(frozen=True)
class Mender:
    """Finds the places of a line that may be wrong, and how likely each correction is.

    Each line is drawn from p_θ(x_0 | x_t = the line) several times, or not at all: then known words
    say what to look at, and where there are none the network's guess of the edits does. `spelling`
    weighs all there is to know of each place.
    """

    denoiser: Denoiser
    strength: int = defaults.STRENGTH
    """t, the time at which the text is taken to be: how noisy it is believed to be."""
    draws: int = defaults.DRAWS
    seed: int = 0
    batch_size: int = defaults.BATCH_SIZE
    width: int = 118
    """Letters in a window: those of the sequences that the model was trained on."""
    overlap: int = 48
    spelling: Spelling | None = None
    """Weighs what is known of each place; None: the draws alone decide, or the network's odds."""

    def __post_init__(self) -> None:
        last = self.denoiser.schedule.num_steps
        # Of x_T, which has nothing but DEL, no text can come.
        if not 1 <= self.strength < last:
            raise ValueError(f"strength must lie in 1…{last - 1}, got {self.strength}")
        for name, least in (("draws", 0), ("batch_size", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        longest = self.denoiser.config.max_length
        if not 0 <= self.overlap < self.width <= longest:
            raise ValueError(
                f"overlap < width ≤ {longest} (the model's max_length) must hold, "
                f"got {self.overlap} and {self.width}"
            )

    def __call__(
        self, lines: Sequence[str], *, progress: Progress | None = None
    ) -> list[LetterRepair]:
        """What is made of each line, whatever its length; the lines do not matter to each other."""
        if self.spelling is None:
            return self._from_windows(lines, progress)
        places = self.places(lines, progress=progress)
        flat = [place for found in places for place in found]
        scorer = ContextScore(self.denoiser, self.spelling.weights, batch_size=self.batch_size)
        weighed = iter(scorer(flat, progress=progress))
        weights = self.spelling.weights
        return [
            LetterRepair(line, tuple(next(weighed).corrected(weights) for _ in found))
            for line, found in zip(lines, places, strict=True)
        ]

    def places(
        self, lines: Sequence[str], *, progress: Progress | None = None
    ) -> list[list[Place]]:
        """All that is looked at in each line, with the evidence of words, typing and draws."""
        assert self.spelling is not None
        spelling = self.spelling
        if self.draws or spelling.words is None:
            found = [repair.corrections for repair in self._from_windows(lines, progress)]
        else:
            found = [tuple(self._asked(line, spelling)) for line in lines]
        return [
            spelling.with_neighbors([spelling.place(line, each) for each in corrections])
            for line, corrections in zip(lines, found, strict=True)
        ]

    @staticmethod
    def _asked(line: str, spelling: Spelling) -> Iterator[LetterCorrection]:
        """What known words alone ask about: no network, and no windows."""
        loose = spelling.loose_spaces(line)
        start = 0
        spaces = (at for at, letter in enumerate(line) if letter == " " and at not in loose)
        for end in [*spaces, len(line)]:
            if spelling.asks(line, start, end):
                yield LetterCorrection(start, end, (), ())
            start = end + 1

    def _from_windows(self, lines: Sequence[str], progress: Progress | None) -> list[LetterRepair]:
        """The places that some draw, or the network's guess, changes, and what known words ask."""
        windows = [cut_windows(line, self.width, self.overlap) if line else [] for line in lines]
        every = [window for cut in windows for window in cut]
        votes = iter((self._votes if self.draws else self._proposed)(every, progress))
        return [
            LetterRepair(line, _joined(line, [next(votes) for _ in cut]) if cut else ())
            for line, cut in zip(lines, windows, strict=True)
        ]

    def _proposed(self, windows: Sequence[Window], progress: Progress | None) -> list[_Votes]:
        """What the network would edit in each window."""
        propose = Proposals(self.denoiser, self.strength, batch_size=self.batch_size)
        found = propose([window.text for window in windows], progress=progress)
        return [
            _inside(window, corrections) for window, corrections in zip(windows, found, strict=True)
        ]

    def _votes(self, windows: Sequence[Window], progress: Progress | None) -> list[_Votes]:
        """The draws of all windows, many at a time, counted window by window."""
        rows = [(window, number) for window in windows for number in range(self.draws)]
        waiting: list[AlignedDraw] = []
        counted: list[_Votes] = []
        for first in range(0, len(rows), self.batch_size):
            waiting += self._aligned(rows[first : first + self.batch_size])
            while len(waiting) >= self.draws:
                counted.append(self._count(windows[len(counted)], waiting[: self.draws]))
                del waiting[: self.draws]
            if progress is not None:
                progress(len(counted), len(windows))
        return counted

    def _aligned(self, rows: Sequence[tuple[Window, int]]) -> list[AlignedDraw]:
        """One draw for each row, cut to the part of the window that is not filling."""
        vocabulary, device = self.denoiser.vocabulary, self.denoiser.length.logits.device
        x_t = Batch.from_lists(
            (vocabulary.encode(window.text) for window, _ in rows), device=device
        )
        # By place in the line and number of the draw: the same alone and in any batch.
        seeds = [
            seeds_for(self.seed, f"repair at {window.start}", number, 1) for window, number in rows
        ]
        drawn = draw_origins(
            self.denoiser, x_t, self.strength, generator=RowSeeds(torch.cat(seeds).to(device))
        )
        found = []
        sequences = zip(rows, drawn.x_0.to_lists(), drawn.origins.tolist(), strict=True)
        for (window, _), tokens, origins in sequences:
            text = str(vocabulary.decode(tokens))
            whole = AlignedDraw.of(len(window.text), text, origins[: len(tokens)])
            found.append(whole.part(window.offset, window.offset + window.end - window.start))
        return found

    def _count(self, window: Window, draws: Sequence[AlignedDraw]) -> _Votes:
        """The votes on one window."""
        start, spelling = window.start, self.spelling
        letters = window.text[window.offset :][: window.end - start]
        ends = kept_spaces(letters, draws)
        if spelling is None:
            found = vote(letters, draws, ends)
        else:
            loose = spelling.loose_spaces(letters)
            ends = [end for end in ends if end not in loose]
            found = vote(letters, draws, ends, lambda low, high: spelling.asks(letters, low, high))
        moved = (replace(each, start=each.start + start, end=each.end + start) for each in found)
        return _Votes(window, tuple(end + start for end in ends), tuple(moved))


def _inside(window: Window, corrections: Sequence[LetterCorrection]) -> _Votes:
    """The corrections of what a window shows of the line, in places of the line."""
    moved = window.start - window.offset
    found = tuple(
        replace(each, start=each.start + moved, end=each.end + moved)
        for each in corrections
        if window.start <= each.start + moved and each.end + moved <= window.end
    )
    inner = {place for each in found for place in range(each.start, each.end)}
    shown = window.text[window.offset :][: window.end - window.start]
    spaces = (place for place, letter in enumerate(shown, window.start) if letter == " ")
    return _Votes(window, tuple(place for place in spaces if place not in inner), found)


def _joined(line: str, parts: Sequence[_Votes]) -> tuple[LetterCorrection, ...]:
    """Follow the first window, and pass to the next where both agree that a word ends.

    That is the agreed place that is nearest to the middle of what they share, where both see
    enough around it. A word that fills all they share is left as it stands.
    """
    borders = [-1]
    for left, right in pairwise(parts):
        middle = (right.window.start + left.window.end) // 2
        agreed = set(left.ends) & set(right.ends)
        borders.append(min(agreed, key=lambda place: abs(place - middle), default=middle))
    borders.append(len(line))
    return tuple(
        each
        for part, (low, high) in zip(parts, pairwise(borders), strict=True)
        for each in part.corrections
        if low < each.start and each.end <= high
    )
