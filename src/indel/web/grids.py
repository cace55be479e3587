"""Sequences in time as a grid: a row for each step, a column for each token that ever lives."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from indel.drawing.colors import number_colors
from indel.drawing.terminal import Fate, column_order, step_name
from indel.process.edits import INSERTED
from indel.sampling.trajectories import Trajectory
from indel.vocabularies import Vocabulary

OPENING, LEAVING = "+", "−"


class Ink(NamedTuple):
    """How a regular token is written; a token with a colour is a square of that colour."""

    symbol: str
    background: str = ""
    colour: str = ""


class Cell(NamedTuple):
    """One token in one step, and what this step did to it."""

    column: int
    ink: Ink
    fate: Fate
    is_marker: bool


class Row(NamedTuple):
    """One sequence."""

    name: str
    text: str
    """What its regular tokens spell."""
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Look:
    """How the tokens of a vocabulary are shown, one by one and as a text."""

    vocabulary: Vocabulary
    ink: Callable[[int], Ink]
    text: Callable[[Sequence[int]], str]
    noun: str = "letter"
    """What a token is called."""
    width: int = 1
    """The most characters of a token."""


@dataclass(frozen=True)
class Grid:
    """Rows in the order in which they are read; a token stays in its column as long as it lives.

    A place that opens is marked one row before its letter is there, and a letter that goes is
    marked one row before its place is empty: these are DEL and INS where the model takes noise
    away, INS and DEL where the process adds it.
    """

    columns: int
    rows: tuple[Row, ...]
    noun: str = "letter"
    width: int = 1
    """Of a column, in characters."""

    @classmethod
    def backwards(cls, trajectory: Trajectory, look: Look) -> Grid:
        """From x_t to x_0, as the model goes."""
        vocabulary = look.vocabulary
        return cls._of(trajectory, look, 1, opens=vocabulary.del_, leaves=vocabulary.ins)

    @classmethod
    def forwards(cls, trajectory: Trajectory, look: Look) -> Grid:
        """From x_0 to x_t, as the noise goes.

        >>> from indel import CharacterVocabulary
        >>> letters = CharacterVocabulary("ab")
        >>> chain = Trajectory.of([2, 1, 0], [[0, 0], [2, 0, 3], [0, 1]], vocab_size=2)
        >>> grid = Grid.forwards(chain, letter_look(letters))
        >>> grid.columns, [row.text for row in grid.rows]
        (3, ['ab', 'a', 'aa'])
        """
        vocabulary = look.vocabulary
        return cls._of(trajectory, look, -1, opens=vocabulary.ins, leaves=vocabulary.del_)

    @classmethod
    def _of(
        cls, trajectory: Trajectory, look: Look, stride: int, *, opens: int, leaves: int
    ) -> Grid:
        names = trajectory.identities[::stride]
        order = {name: column for column, name in enumerate(column_order(names))}
        rows: list[Row] = []
        before: dict[int, int] = {}
        for time, state, living in zip(
            trajectory.times[::stride], trajectory.states[::stride], names, strict=True
        ):
            cells = []
            for name, token in zip(living, state, strict=True):
                last = before.get(name, INSERTED)
                was_letter = 0 <= last < look.vocabulary.size
                if token == opens:
                    cell = Cell(order[name], Ink(OPENING), Fate.INSERTED, is_marker=True)
                elif token == leaves:
                    ink = look.ink(last) if was_letter else Ink(LEAVING)
                    cell = Cell(order[name], ink, Fate.DELETED, is_marker=True)
                else:
                    new = Fate.INSERTED if rows else Fate.KEPT
                    changed = Fate.KEPT if token == last else Fate.REPLACED
                    fate = changed if was_letter else new
                    cell = Cell(order[name], look.ink(token), fate, is_marker=False)
                cells.append(cell)
            regular = [token for token in state if token < look.vocabulary.size]
            rows.append(Row(step_name(time), look.text(regular), tuple(cells)))
            before = dict(zip(living, state, strict=True))
        return cls(len(order), tuple(rows), look.noun, look.width)

    def to_json(self) -> str:
        """For the player: a cell is [column, symbol, fate, is_marker, background, colour]."""
        rows = [
            {
                "name": row.name,
                "text": row.text,
                "cells": [
                    [cell.column, cell.ink.symbol, cell.fate.name.lower(), int(cell.is_marker)]
                    + ([cell.ink.background, cell.ink.colour] if cell.ink.background else [])
                    for cell in row.cells
                ],
            }
            for row in self.rows
        ]
        grid = {"noun": self.noun, "width": self.width, "rows": rows}
        return json.dumps(grid, ensure_ascii=False)


def letter_look(vocabulary: Vocabulary) -> Look:
    """Letters as they are; a space is a dot, to be seen."""
    return Look(
        vocabulary,
        lambda token: Ink(vocabulary.symbol(token).replace("␣", "·")),
        lambda tokens: str(vocabulary.decode(tokens)),
    )


def number_look(vocabulary: Vocabulary) -> Look:
    """Numbers as they are, in the paper's colour for x mod 100.

    Paper: Fig. 1
    """

    def ink(token: int) -> Ink:
        face, letters = number_colors(token)
        return Ink(str(token), face, letters)

    return Look(
        vocabulary,
        ink,
        lambda tokens: " ".join(map(str, tokens)),
        noun="number",
        width=len(str(vocabulary.size - 1)),
    )
