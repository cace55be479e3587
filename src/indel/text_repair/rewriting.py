"""New letters back into the text that they were read from: only what changes is touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_lowercase
from typing import NamedTuple

from indel.text_repair.letters import Hold, Stretch

LARGEST_TABLE = 250_000
"""Two texts of 500 letters each. What is rewritten at more length is no correction."""

_SPACE = " "
_WRITABLE = frozenset(ascii_lowercase + _SPACE)
# Of alignments equally long take one that keeps spaces, and what is held. These must not count for
# more: edits would be pushed to places where they do not belong.
_LETTER_COST, _SPACE_COST, _HELD_COST = 8, 9, 1
# The places of the moves among the options; 0 is to keep or replace.
_REMOVE, _INSERT = 1, 2


class Edit(NamedTuple):
    """One column of an alignment: a place, and the letter that stands there now.

    No place: the letter is new. No letter: it was taken out.
    """

    place: int | None
    letter: str


def rewrite(text: str, stretch: Stretch, start: int, end: int, written: str) -> str:
    """The part of the text that letters[start:end] stand for, written with other letters.

    Word by word, that is between the spaces that stay: where a change would touch what is held,
    such as an apostrophe or a number, the word is left as it stood. Case follows `recase`.

    >>> from indel.text_repair.letters import stretches
    >>> (stretch,) = stretches("Teh caffé, isn't it 4 u?")
    >>> rewrite("Teh caffé, isn't it 4 u?", stretch, 0, 21, "the cafe isnt it for")
    "The café, isn't it 4"
    """
    place, last = stretch.span(start, end)
    before, written = stretch.letters[start:end], _SPACE.join(written.split())
    too_long = len(before) * len(written) > LARGEST_TABLE
    if not written or too_long or not _WRITABLE.issuperset(written):
        return text[place:last]
    pieces = []
    for word in _words(before, align(before, written, stretch.holds[start:end])):
        shifted = [Edit(None if at is None else at + start, letter) for at, letter in word]
        if _may_be_made(shifted, stretch):
            old = _places(shifted)
            first, stop = stretch.span(old[0], old[-1] + 1)
            pieces += [text[place:first], _respelled(text, shifted, stretch)]
            place = stop
    return "".join(pieces) + text[place:last]


def align(before: Sequence[str], after: Sequence[str], holds: Sequence[int]) -> list[Edit]:
    """The cheapest edits from one text to another, in letters or in words.

    What is held (has a value above 0) is the last to go.

    >>> [tuple(edit) for edit in align("ct", "cat", [0, 0])]
    [(0, 'c'), (None, 'a'), (1, 't')]
    """
    removal = [_cost(b) + _HELD_COST * (hold > 0) for b, hold in zip(before, holds, strict=True)]
    insertion = [_cost(a) for a in after]
    rows, columns = len(before), len(after)
    # below[j] is the cost of making after[j:] from before[i + 1:], and row[j] from before[i:].
    row = [sum(insertion[j:]) for j in range(columns + 1)]
    moves: list[list[int]] = []
    for letter, gone in zip(reversed(before), reversed(removal), strict=True):
        below, row = row, [row[columns] + gone] * (columns + 1)
        chosen = [0] * columns
        for j in reversed(range(columns)):
            replaced = 0 if letter == after[j] else max(gone, insertion[j])
            options = (replaced + below[j + 1], gone + below[j], insertion[j] + row[j + 1])
            row[j] = min(options)
            chosen[j] = options.index(row[j])
        moves.append(chosen)
    moves.reverse()
    edits = []
    i = j = 0
    while i < rows and j < columns:
        move = moves[i][j]
        edits.append(Edit(None if move == _INSERT else i, "" if move == _REMOVE else after[j]))
        i += move != _INSERT
        j += move != _REMOVE
    edits += [Edit(place, "") for place in range(i, rows)]
    return edits + [Edit(None, letter) for letter in after[j:]]


def recase(before: str, after: str, likes: Sequence[str]) -> str:
    """Small letters in the case of the word that they replace.

    CAPITALS stay capitals, and a Capitalised word has its capital first, whatever letter that is.
    In a word of MiXed case each letter follows the characters that it is like: the one it replaces,
    or those around it.

    >>> recase("Hte", "the", ["H", "t", "e"])
    'The'
    """
    old = [character for character in before if character.isalpha()]
    if len(old) > 1 and all(character.isupper() for character in old):
        return after.upper()
    if old[0].isupper() and not any(character.isupper() for character in old[1:]):
        return after[:1].upper() + after[1:]
    return "".join(
        letter.upper() if like.isupper() else letter
        for letter, like in zip(after, likes, strict=True)
    )


def _cost(letter: str) -> int:
    return _SPACE_COST if letter == _SPACE else _LETTER_COST


def _words(before: str, edits: Sequence[Edit]) -> Iterator[list[Edit]]:
    """The edits between spaces that stay."""
    word: list[Edit] = []
    for edit in edits:
        if edit.place is not None and before[edit.place] == _SPACE == edit.letter:
            yield word
            word = []
        else:
            word.append(edit)
    yield word


def _may_be_made(word: Sequence[Edit], stretch: Stretch) -> bool:
    """Whether a word changes, and nothing changes that is held."""
    old = _places(word)
    changed = [place for place, letter in word if place is None or letter != stretch.letters[place]]
    return bool(old and changed) and not (
        any(stretch.holds[place] == Hold.FIXED for place in old)
        or any(place is not None and stretch.holds[place] for place in changed)
    )


def _places(word: Sequence[Edit]) -> list[int]:
    return [place for place, _ in word if place is not None]


def _respelled(text: str, word: Sequence[Edit], stretch: Stretch) -> str:
    """A word as it is now: new letters in the case of the old, and those held as they stood."""
    old = _places(word)
    first, last = stretch.span(old[0], old[-1] + 1)
    likes, held = [], []
    left = ""
    unread = iter(old)
    right = text[stretch.starts[next(unread)]]
    for place, letter in word:
        if place is None:
            likes.append(left + right)
            held.append("")
            continue
        left, following = right, next(unread, None)
        right = "" if following is None else text[stretch.starts[following]]
        if letter:
            likes.append(left)
            kept = stretch.holds[place] == Hold.KEPT
            held.append(text[stretch.starts[place] : stretch.ends[place]] if kept else "")
    cased = recase(text[first:last], "".join(letter for _, letter in word), likes)
    return "".join(as_before or letter for as_before, letter in zip(held, cased, strict=True))
