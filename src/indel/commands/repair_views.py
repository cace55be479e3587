"""Repairs on a terminal: a diff that can be read without colour too, and what the draws say."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from indel.text_repair.results import Choice, Correction, Repair

_DELETED, _INSERTED = "red strike", "green underline"
_MOST_CHOICES = 4
# Line breaks and tabs are laid out, and emoji are joined by U+200D.
_HARMLESS = "\n\t\u200d"


@dataclass(frozen=True)
class Answer:
    """What a model makes of a text."""

    model: str
    repair: Repair
    single_draws: list[str] | None
    """The paper's way beside it, where models are compared."""


def diff(repair: Repair, *, signs: bool) -> Text:
    """The text with each correction in place: what was taken out, then what was put in.

    With `signs` these stand in [-…-] and {+…+}, for where there is no colour.
    """
    marks = ("[-{}-]", "{{+{}+}}") if signs else ("{}", "{}")
    shown = Text()
    end = 0
    for correction in repair.corrections:
        shown.append(visible(repair.original[end : correction.start]))
        shown.append(marks[0].format(visible(correction.before)), _DELETED)
        shown.append(marks[1].format(visible(correction.after)), _INSERTED)
        end = correction.end
    shown.append(visible(repair.original[end:]))
    return shown


def summary(repair: Repair) -> RenderableType:
    """The corrections and the doubts, each with what the draws make of it."""
    parts: list[RenderableType] = []
    for title, rows in (
        ("Corrections", [_made(correction) for correction in repair.corrections]),
        ("Left as they stood", [_doubted(correction) for correction in repair.doubts]),
    ):
        if rows:
            table = Table(box=None, padding=(0, 2), show_header=False)
            for row in rows:
                table.add_row(*row)
            parts += [Text(f"\n{title}", "bold"), table]
    return Group(*parts) if parts else Text("\nNothing to correct.", "bold")


def comparison(answers: Sequence[Answer], *, signs: bool) -> Table:
    """Models side by side: single draws of each, and what all its draws agree on."""
    table = Table("", *(answer.model for answer in answers), box=None, padding=(0, 2))
    rows = zip(*(answer.single_draws or [] for answer in answers), strict=True)
    for number, drawn in enumerate(rows, start=1):
        table.add_row(Text(f"draw {number}", "dim"), *(Text(visible(text)) for text in drawn))
    table.add_row()
    together = (diff(answer.repair, signs=signs) for answer in answers)
    table.add_row(Text("together", "bold"), *together)
    return table


@contextmanager
def progress_bar(description: str, *, shown: bool = True) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, to be told how much is done and of how much."""
    console = Console(stderr=True)
    # Not the console's own opinion: FORCE_COLOR makes it take a pipe for a terminal.
    with Progress(
        console=console, transient=True, disable=not (shown and sys.stderr.isatty())
    ) as bar:
        task = bar.add_task(description, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance


def visible(text: str) -> str:
    """Text that is safe to print: control characters and halves of characters are spelled out.

    >>> visible("a\\x1b[31m\\udc80 b")
    'a\\\\x1b[31m\\\\udc80 b'
    """
    text = text.replace("\r\n", "\n")
    if text.isprintable():
        return text
    return "".join(map(_spelled, text))


def _spelled(character: str) -> str:
    if character.isprintable() or character in _HARMLESS:
        return character
    return repr(character)[1:-1]


def _made(correction: Correction) -> tuple[Text, ...]:
    first, *others = correction.choices
    return (
        Text(visible(correction.before)),
        Text(f"→ {visible(first.text)}", "bold"),
        Text(f"{first.probability:.0%}"),
        Text(_listed(others), "dim"),
    )


def _doubted(correction: Correction) -> tuple[Text, ...]:
    return Text(visible(correction.before)), Text(_listed(correction.choices), "dim")


def _listed(choices: Sequence[Choice]) -> str:
    shown = choices[:_MOST_CHOICES]
    return ", ".join(f"{visible(choice.text)} {choice.probability:.0%}" for choice in shown)
