"""Sequences with gaps: which tokens are frozen, and how long what goes between them may be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from indel.vocabularies import IntegerVocabulary, Vocabulary

_GAP = re.compile(r"\{\s*(\d{0,9})\s*(,?)\s*(\d{0,9})\s*\}")
_ALLOWED = "{} for any length, {3} for 3 tokens, {2,8} for 2 to 8; a brace itself is {{ or }}"


@dataclass(frozen=True)
class Gap:
    """A place for tokens that the model writes: at least `least` of them, at most `most`."""

    least: int = 0
    most: int | None = None
    """None: any number."""

    def __post_init__(self) -> None:
        if self.least < 0:
            raise ValueError(f"a gap must hold at least 0 tokens, got {self.least}")
        if self.most is not None and self.most < self.least:
            raise ValueError(
                f"a gap must hold at most as many tokens as it may, least first: got "
                f"{{{self.least},{self.most}}}"
            )

    @property
    def is_free(self) -> bool:
        """Whether any length will do."""
        return self.least == 0 and self.most is None

    def allows(self, length: int) -> bool:
        """Whether this many tokens fill the gap."""
        return self.least <= length and (self.most is None or length <= self.most)


@dataclass(frozen=True)
class Pattern:
    """Frozen tokens, and a gap or none before each of them and at the end.

    >>> from indel import CharacterVocabulary
    >>> pattern = Pattern.parse("a{2,8}b{}", CharacterVocabulary("ab"))
    >>> pattern.tokens, pattern.gaps
    ((0, 1), (None, Gap(least=2, most=8), Gap(least=0, most=None)))
    """

    tokens: tuple[int, ...]
    """The frozen tokens, in order."""
    gaps: tuple[Gap | None, ...]
    """gaps[j] lies right before frozen token j, the last one at the end; None: nothing may."""

    def __post_init__(self) -> None:
        if len(self.gaps) != len(self.tokens) + 1:
            raise ValueError(
                f"there must be one more entry in gaps than frozen tokens, got {len(self.gaps)} "
                f"and {len(self.tokens)}"
            )

    @classmethod
    def of(cls, parts: Iterable[Gap | Sequence[int]]) -> Pattern:
        """Tokens and gaps, one after the other; two gaps need a token between them.

        >>> Pattern.of([[3, 1], Gap(2, 2), [0]]).gaps
        (None, None, Gap(least=2, most=2), None)
        """
        tokens: list[int] = []
        gaps: list[Gap | None] = [None]
        for part in parts:
            if isinstance(part, Gap):
                if gaps[-1] is not None:
                    raise ValueError(
                        f"two gaps stand side by side after {len(tokens)} frozen tokens: make "
                        "one of them"
                    )
                gaps[-1] = part
            else:
                tokens.extend(part)
                gaps.extend([None] * len(part))
        return cls(tuple(tokens), tuple(gaps))

    @classmethod
    def parse(cls, text: str, vocabulary: Vocabulary) -> Pattern:
        """The pattern that a text spells: `{}`, `{3}` and `{2,8}` are gaps, `{{` is a brace.

        The texts between the gaps are encoded one by one; for integers, spaces separate them.
        """
        if not isinstance(text, str):
            raise TypeError(f"expected a text with gaps, got {type(text).__name__}")
        parts: list[Gap | list[int]] = []
        for part in _split(text):
            if isinstance(part, Gap):
                parts.append(part)
                continue
            literal, start = part
            try:
                parts.append(encoded(literal, vocabulary))
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"{literal[:40]!r} (from position {start} of the pattern on): {error}"
                ) from None
        return cls.of(parts)

    def check(self, limit: int) -> None:
        """Refuse a pattern that no sequence within the limit can match."""
        if not any(gap is not None for gap in self.gaps):
            raise ValueError("there is no gap to fill: " + _ALLOWED)
        least = len(self.tokens) + sum(gap.least for gap in self.gaps if gap is not None)
        if least > limit:
            raise ValueError(
                f"the pattern takes at least {least} tokens, {len(self.tokens)} frozen ones and "
                f"{least - len(self.tokens)} in gaps; the model's sequences have at most {limit}"
            )

    def fits(self, lengths: Sequence[int]) -> bool:
        """Whether gaps of these lengths, in the order of the gaps that there are, are allowed."""
        there = [gap for gap in self.gaps if gap is not None]
        return all(gap.allows(length) for gap, length in zip(there, lengths, strict=True))


EVERYTHING = Pattern((), (Gap(),))
"""One gap and nothing else: what the free process writes."""


def encoded(text: str, vocabulary: Vocabulary) -> list[int]:
    """The tokens of a text; integers are written with spaces between them."""
    if not isinstance(vocabulary, IntegerVocabulary):
        return vocabulary.encode(text)
    for word in text.split():
        if not re.fullmatch(r"\d{1,18}", word):
            raise ValueError(f"expected integers with spaces between them, got {word[:20]!r}")
    return vocabulary.encode([int(word) for word in text.split()])


def escaped(text: str) -> str:
    """A text as a pattern without gaps: its braces are doubled."""
    return text.replace("{", "{{").replace("}", "}}")


def _split(text: str) -> Iterable[Gap | tuple[str, int]]:
    """The gaps, and the texts between them with their places."""
    literal, start, place = "", 0, 0
    while place < len(text):
        if text[place : place + 2] in ("{{", "}}"):
            literal += text[place]
            place += 2
        elif text[place] in "{}":
            found = _GAP.match(text, place)
            if found is None:
                raise ValueError(
                    f"position {place} of the pattern: {text[place : place + 20]!r} is no gap; "
                    f"there are {_ALLOWED}"
                )
            if literal:
                yield literal, start
            yield _gap(*found.groups())
            literal, place = "", found.end()
            start = place
        else:
            literal += text[place]
            place += 1
    if literal:
        yield literal, start


def _gap(least: str, comma: str, most: str) -> Gap:
    if not comma:
        # Digits are greedy: without a comma all of them are in the first group.
        return Gap(int(least), int(least)) if least else Gap()
    return Gap(int(least) if least else 0, int(most) if most else None)
