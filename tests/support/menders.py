"""Stand-ins for the model: what draws write is scripted, or random."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from indel.text_repair.lines import LetterRepair
from indel.text_repair.results import Choice
from indel.text_repair.votes import LetterCorrection


def counted(start: int, end: int, votes: Sequence[str]) -> LetterCorrection:
    ranked = Counter(votes).most_common()
    choices = tuple(Choice(text, count / len(votes)) for text, count in ranked)
    return LetterCorrection(start, end, choices, tuple(votes))


@dataclass
class ScriptedMender:
    """Draw k writes the words `before` as script[before][k]."""

    script: Mapping[str, Sequence[str]]
    draws: int
    calls: list[Sequence[str]] = field(default_factory=list)

    def __call__(
        self, lines: Sequence[str], *, progress: Callable[[int, int], None] | None = None
    ) -> list[LetterRepair]:
        self.calls.append(lines)
        if progress is not None:
            progress(len(lines), len(lines))
        # The longest first, so that several words come before one of them.
        words = "|".join(sorted(self.script, key=len, reverse=True))
        pattern = re.compile(rf"\b(?:{words})\b" if words else r"(?!)")
        return [
            LetterRepair(
                line,
                tuple(
                    counted(found.start(), found.end(), self.script[found[0]])
                    for found in pattern.finditer(line)
                ),
            )
            for line in lines
        ]


@dataclass
class RandomMender:
    """Each draw writes anything for one, two or three words, also nothing and what is no letter."""

    seed: int
    draws: int = 3

    def __call__(self, lines: Sequence[str], *, progress: object = None) -> list[LetterRepair]:
        chance = random.Random(self.seed)
        return [LetterRepair(line, tuple(self._corrections(line, chance))) for line in lines]

    def _corrections(self, line: str, chance: random.Random) -> list[LetterCorrection]:
        ends = [found.start() for found in re.finditer(" ", line)] + [len(line)]
        found, start = [], 0
        while ends:
            taken = min(chance.randint(1, 3), len(ends))
            end = ends[taken - 1]
            del ends[:taken]
            if chance.random() < 0.8:
                votes = [self._written(line[start:end], chance) for _ in range(self.draws)]
                found.append(counted(start, end, votes))
            start = end + 1
        return found

    def _written(self, before: str, chance: random.Random) -> str:
        letters = list(before)
        for _ in range(chance.randint(0, 4)):
            place = chance.randint(0, len(letters))
            letters[place : place + chance.randint(0, 2)] = chance.choices("abtz -", k=1)
        return "".join(letters)
