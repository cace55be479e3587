"""Text on its way to x_0 as rows of letters, each with a look; as plain text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from html import escape
from itertools import groupby
from typing import NamedTuple

from indel.drawing import colors
from indel.sampling.trajectories import Trajectory
from indel.vocabularies import Vocabulary


class Look(Enum):
    """What a letter means in its row; the value is its CSS class."""

    SETTLED = "settled"
    """As in x_0, or as it was typed."""
    PASSING = "passing"
    """Something else stands in its place in x_0, or nothing."""
    INSERTED = "inserted"
    REPLACED = "replaced"
    DELETED = "deleted"


INS_SIGN, DEL_SIGN = "+", "×"
STYLES = {
    Look.SETTLED: "",
    Look.PASSING: f"color:{colors.FAINT}",
    Look.INSERTED: f"color:{colors.INSERT};background:#d6ebf8;text-decoration:underline",
    Look.REPLACED: f"color:{colors.REPLACE};background:#e8def5",
    Look.DELETED: f"color:{colors.DELETE};font-weight:bold",
}


class Letter(NamedTuple):
    """One character and how it looks."""

    symbol: str
    look: Look


class LetterRow(NamedTuple):
    """A line of text with its name."""

    name: str
    letters: tuple[Letter, ...]

    @property
    def text(self) -> str:
        """The letters alone."""
        return "".join(letter.symbol for letter in self.letters)

    def runs(self) -> Iterator[tuple[int, str, Look]]:
        """Stretches of one look: where each starts, and its text."""
        start = 0
        for look, group in groupby(self.letters, key=lambda letter: letter.look):
            text = "".join(letter.symbol for letter in group)
            yield start, text, look
            start += len(text)


def generation_rows(
    trajectory: Trajectory, vocabulary: Vocabulary, times: Sequence[int]
) -> list[LetterRow]:
    """x_t at the times asked for; what is not yet as in x_0 is faint, markers are signs.

    Paper: Fig. 4 (left)
    """
    final = dict(zip(trajectory.identities[-1], trajectory.states[-1], strict=True))
    signs = {
        vocabulary.ins: Letter(INS_SIGN, Look.INSERTED),
        vocabulary.del_: Letter(DEL_SIGN, Look.DELETED),
    }
    rows = []
    for time, state, names in zip(
        trajectory.times, trajectory.states, trajectory.identities, strict=True
    ):
        if time in times:
            letters = (
                signs.get(token)
                or Letter(
                    _character(vocabulary, token),
                    Look.SETTLED if final.get(name) == token else Look.PASSING,
                )
                for token, name in zip(state, names, strict=True)
            )
            rows.append(LetterRow(str(time), tuple(letters)))
    return rows


def repair_row(trajectory: Trajectory, vocabulary: Vocabulary, length: int) -> LetterRow:
    """What became of the first `length` tokens of x_t in x_0; × where one was taken out.

    Followed by identity, up to the first token that came after them in x_t.

    Paper: Fig. 4 (right)
    """
    before = dict(zip(trajectory.identities[0], trajectory.states[0], strict=True))
    typed, names = trajectory.identities[0][:length], trajectory.identities[-1]
    end = trajectory.end_of(length)
    kept = set(names[:end])
    letters, unread = list[Letter](), iter(typed)
    for name, token in zip(names[:end], trajectory.states[-1][:end], strict=True):
        if name in before:
            for passed in unread:
                if passed == name:
                    break
                letters.append(Letter(DEL_SIGN, Look.DELETED))
        look = Look.SETTLED if before.get(name) == token else Look.REPLACED
        look = look if name in before else Look.INSERTED
        letters.append(Letter(_character(vocabulary, token), look))
    letters += [Letter(DEL_SIGN, Look.DELETED) for name in unread if name not in kept]
    return LetterRow("", tuple(letters))


def rows_as_text(rows: Sequence[LetterRow]) -> str:
    """One line a row; looks are lost, but markers and deletions stay visible as signs."""
    width = max((len(row.name) for row in rows), default=0)
    return "".join(f"{row.name:>{width}}  {row.text}".rstrip() + "\n" for row in rows)


def rows_as_html(rows: Sequence[LetterRow]) -> str:
    """A `pre` element in which each stretch of one look is a `span` of that class."""
    width = max((len(row.name) for row in rows), default=0)
    lines = (
        f"<b>{escape(f'{row.name:>{width}}')}</b>  "
        + "".join(
            escape(text)
            if look is Look.SETTLED
            else f'<span class="{look.value}">{escape(text)}</span>'
            for _, text, look in row.runs()
        )
        for row in rows
    )
    return "<pre>" + "\n".join(lines) + "</pre>\n"


def html_page(title: str, sections: Sequence[tuple[str, Sequence[LetterRow]]]) -> str:
    """A whole page that needs nothing from elsewhere: headings with rows below them."""
    styles = "\n".join(f".{look.value} {{ {style} }}" for look, style in STYLES.items() if style)
    body = "".join(f"<h2>{escape(name)}</h2>\n{rows_as_html(rows)}" for name, rows in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n"
        "body { font-family: sans-serif; margin: 2rem; color: #000; background: #fff }\n"
        "pre { overflow-x: auto; line-height: 1.5; font-size: 0.85rem }\n"
        f"{styles}\n</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n{body}</body>\n</html>\n"
    )


def _character(vocabulary: Vocabulary, token: int) -> str:
    return str(vocabulary.decode([token]))
