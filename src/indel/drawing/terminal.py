"""Chains and edit summaries as text for the terminal: in colour, and readable without.

Every drawing is made of columns, one a token; a column says what stands on each line. Columns that
do not fit the width continue in a further block of lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import islice, pairwise
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from indel.batch import Batch
from indel.process.edits import INSERTED, Edits, step_parents
from indel.vocabularies import Vocabulary


class Fate(Enum):
    """How a token relates to x_0; the value is the sign for it, which also shows INS and DEL."""

    KEPT = "|"
    REPLACED = "~"
    INSERTED = "+"
    DELETED = "×"


# These hues differ for all kinds of colour-blindness (ΔE > 30) and contrast with black and with
# white (> 4:1); the attributes tell the fates apart where there is no colour.
_COLOURS = {
    Fate.KEPT: "default",
    Fate.REPLACED: "#a0700a",
    Fate.INSERTED: "#1f78c8",
    Fate.DELETED: "#d6307a",
}
_ATTRIBUTES = {
    Fate.KEPT: "",
    Fate.REPLACED: "underline",
    Fate.INSERTED: "bold",
    Fate.DELETED: "strike",
}
# As editors show a space: to be seen, but read past.
_SPACE = "·"
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_INDENT = "  "


class Piece(NamedTuple):
    """Some characters in one style."""

    text: str
    style: str = ""


_BLANK = Piece("")


class Token(NamedTuple):
    """A token as it is shown, and how it relates to x_0."""

    symbol: str
    fate: Fate
    is_marker: bool = False

    @classmethod
    def of(cls, token: int, fate: Fate, vocabulary: Vocabulary) -> Token:
        """A regular token of this fate, or a marker, which tells its own."""
        if token == vocabulary.ins:
            return cls(Fate.INSERTED.value, Fate.INSERTED, is_marker=True)
        if token == vocabulary.del_:
            return cls(Fate.DELETED.value, Fate.DELETED, is_marker=True)
        return cls(vocabulary.symbol(token).replace("␣", _SPACE), fate)

    @property
    def piece(self) -> Piece:
        """The token in the style of its fate."""
        if self.symbol == _SPACE and self.fate is Fate.KEPT:
            return Piece(self.symbol, "dim")
        attribute = "bold reverse" if self.is_marker else _ATTRIBUTES[self.fate]
        return Piece(self.symbol, f"{attribute} {_COLOURS[self.fate]}")

    @property
    def mark(self) -> Piece:
        """The sign that goes below a letter that is not as in x_0; a marker is a sign itself."""
        return _BLANK if self.is_marker or self.fate is Fate.KEPT else _sign(self.fate)


class EditColumn(NamedTuple):
    """One edit: a token of x_0 over what it became, or over nothing, or nothing over a token."""

    above: Token | None
    below: Token | None
    fate: Fate


def trace(chain: Sequence[Batch], vocabulary: Vocabulary) -> list[dict[int, Token]]:
    """The tokens of each x_t in a chain of one sequence, in order, by line of descent.

    Lines 0…|x_0|−1 start at the tokens of x_0, each further one at an INS.
    """
    first = _only_row(chain[0])
    table = [{line: Token.of(token, Fate.KEPT, vocabulary) for line, token in enumerate(first)}]
    lines, next_line = list(table[0]), len(first)
    for before, after in pairwise(chain):
        tokens = _only_row(after)
        parents = step_parents(before, after, vocabulary.size)[0].tolist()[: len(tokens)]
        inherited = []
        for parent in parents:
            inherited.append(next_line if parent == INSERTED else lines[parent])
            next_line += parent == INSERTED
        lines = inherited
        table.append(
            {
                line: Token.of(token, _fate(token, line, first), vocabulary)
                for token, line in zip(tokens, lines, strict=True)
            }
        )
    return table


def column_order(rows: Sequence[Iterable[int]]) -> list[int]:
    """All lines of descent in an order that agrees with every row."""
    order = list(rows[0])
    for row in rows[1:]:
        # New lines go right after their left neighbour; what vanished there stays to their right.
        known, left = set(order), -1
        new: dict[int, list[int]] = {}
        for line in row:
            if line in known:
                left = line
            else:
                new.setdefault(left, []).append(line)
        order = [line for old in (-1, *order) for line in (old, *new.get(old, ()))][1:]
    return order


def edit_columns(x_0: Batch, x_t: Batch, edits: Edits, vocabulary: Vocabulary) -> list[EditColumn]:
    """The edits that make x_t from x_0 (one sequence each), from left to right.

    Paper: Fig. 2
    """
    unread = iter(_only_row(x_0))
    written = _only_row(x_t)
    (sources,), (deletions,) = edits.source.tolist(), edits.deletions.tolist()

    def deleted(count: int) -> Iterator[EditColumn]:
        for token in islice(unread, count):
            yield EditColumn(Token.of(token, Fate.DELETED, vocabulary), None, Fate.DELETED)

    columns: list[EditColumn] = []
    for position, token in enumerate(written):
        columns += deleted(deletions[position])
        if sources[position] == INSERTED:
            below = Token.of(token, Fate.INSERTED, vocabulary)
            columns.append(EditColumn(None, below, Fate.INSERTED))
        else:
            original = next(unread)
            changed = Fate.KEPT if token == original else Fate.REPLACED
            # A DEL in x_t is a token that is being deleted.
            below = Token.of(token, changed, vocabulary)
            above = Token.of(original, below.fate, vocabulary)
            columns.append(EditColumn(above, below, below.fate))
    columns += deleted(deletions[len(written)])
    return columns


def render_chain(
    chain: Sequence[Batch],
    vocabulary: Vocabulary,
    *,
    width: int,
    aligned: bool = False,
    marks: bool = False,
) -> Text:
    """A chain x_0, …, x_T of one sequence, one row per step.

    `aligned` gives each token a column of its own, from its insertion to its deletion; `marks`
    puts a sign below each letter that is not as in x_0, for output without colour.
    """

    def stack(token: Token | None) -> list[Piece]:
        return ([token.piece, token.mark] if token else [_BLANK, _BLANK])[: 1 + marks]

    table = trace(chain, vocabulary)
    gap = _gap(token for row in table for token in row.values())
    last = len(table) - 1
    labels = [[_label(t, last), _label(None, last)][: 1 + marks] for t in range(len(table))]
    if aligned:
        columns = [
            [piece for row in table for piece in stack(row.get(line))]
            for line in column_order(table)
        ]
        lines = _draw([label for pair in labels for label in pair], columns, width, gap)
        return Text("\n").join(lines)
    drawings = (
        _draw(pair, [stack(token) for token in row.values()], width, gap, continued=True)
        for pair, row in zip(labels, table, strict=True)
    )
    return Text("\n").join(line for lines in drawings for line in lines)


def render_summary(
    x_0: Batch, x_t: Batch, edits: Edits, vocabulary: Vocabulary, *, t: int, width: int
) -> Text:
    """An edit summary a_{0→t} of one sequence: x_0 above, x_t below, and how often each edit.

    Paper: Fig. 2
    """
    columns = edit_columns(x_0, x_t, edits, vocabulary)
    labels = [_label(0, t), _label(None, t), _label(t, t)]
    pieces = [
        [
            column.above.piece if column.above else _BLANK,
            _sign(column.fate),
            column.below.piece if column.below else _BLANK,
        ]
        for column in columns
    ]
    numbers = Counter(column.fate for column in columns)
    counts = Text("   ").join(
        Text.assemble(_sign(fate), f" {numbers[fate]} {fate.name.lower()}") for fate in Fate
    )
    gap = _gap(token for column in columns for token in (column.above, column.below) if token)
    lines = _draw(labels, pieces, width, gap)
    return Text("\n").join([*lines, Text(), Text(labels[1]) + counts])


def render_legend() -> Text:
    """What colours and signs mean."""
    letters = [
        (Token("a", Fate.KEPT), f"as in {step_name(0)}"),
        (Token("a", Fate.REPLACED), "replaced"),
        (Token("a", Fate.INSERTED), "inserted"),
        (Token("a", Fate.DELETED), "deleted"),
    ]
    markers = [
        (Token("+", Fate.INSERTED, is_marker=True), "INS, a letter in the next step"),
        (Token("×", Fate.DELETED, is_marker=True), "DEL, gone in the next step"),
    ]
    lines = []
    for name, items in (("letters", letters), ("markers", markers)):
        samples = [
            Text(" ").join(
                Text(*piece) for piece in (token.piece, token.mark, Piece(meaning)) if piece.text
            )
            for token, meaning in items
        ]
        lines.append(Text(f"{_INDENT}{name}  ") + Text("   ").join(samples))
    return Text("\n").join(lines)


def step_name(t: int) -> str:
    """x_t, with t as a subscript."""
    return f"x{t}".translate(_SUBSCRIPTS)


def _draw(
    labels: Sequence[str],
    columns: Sequence[Sequence[Piece]],
    width: int,
    gap: int,
    *,
    continued: bool = False,
) -> Iterator[Text]:
    """The lines of all blocks; `continued` ones follow without a gap and without labels."""
    if not columns:
        columns = [[Piece("(empty)", "dim") if label.strip() else _BLANK for label in labels]]
    blocks = _blocks(columns, width - cell_len(labels[0]), gap)
    for number, block in enumerate(blocks):
        if number and not continued:
            yield Text()
        for row, label in enumerate(labels):
            pieces = [column[row] for column, _ in block]
            if not label.strip() and not any(piece.text for piece in pieces):
                continue
            line = Text(" " * cell_len(label) if number and continued else label)
            for piece, (_, room) in zip(pieces, block, strict=True):
                line.append(*piece)
                line.append(" " * (room - cell_len(piece.text)))
            line.rstrip()
            yield line


def _blocks(
    columns: Sequence[Sequence[Piece]], width: int, gap: int
) -> Iterator[list[tuple[Sequence[Piece], int]]]:
    """As many columns as fit side by side, each with the room that it takes, then the next."""
    block: list[tuple[Sequence[Piece], int]] = []
    used = 0
    for column in columns:
        size = max(cell_len(piece.text) for piece in column)
        if block and used + size > width:
            yield block
            block, used = [], 0
        block.append((column, size + gap))
        used += size + gap
    yield block


def _gap(tokens: Iterable[Token]) -> int:
    """The space between columns: symbols of more than one character would run together."""
    return int(any(cell_len(token.symbol) > 1 for token in tokens))


def _label(t: int | None, last: int) -> str:
    """The name of x_t, or blank, as wide as the names up to `last`."""
    name = "" if t is None else step_name(t)
    return f"{_INDENT}{name:>{len(step_name(last))}}  "


def _sign(fate: Fate) -> Piece:
    return Piece(fate.value, "dim" if fate is Fate.KEPT else f"bold {_COLOURS[fate]}")


def _fate(token: int, line: int, first: Sequence[int]) -> Fate:
    if line >= len(first):
        return Fate.INSERTED
    return Fate.KEPT if token == first[line] else Fate.REPLACED


def _only_row(batch: Batch) -> list[int]:
    if len(batch) != 1:
        raise ValueError(f"one sequence can be drawn at a time, got a batch of {len(batch)}")
    return batch.to_lists()[0]
