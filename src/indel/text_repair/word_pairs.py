"""How often two words follow each other in the text that a model was trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from indel.atomic_files import write_output
from indel.model.saving import WORD_PAIRS


@dataclass(frozen=True)
class WordPairs:
    """Counts of pairs of words: the first evidence of what fits between two others."""

    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, *, most: int, least: int = 2) -> WordPairs:
        """The most frequent pairs of a text.

        >>> WordPairs.of("to be or not to be", most=1).counts
        {('to', 'be'): 2}
        """
        words = text.split()
        counts = Counter(pairwise(words))
        return cls({pair: count for pair, count in counts.most_common(most) if count >= least})

    @classmethod
    def read(cls, folder: Path) -> WordPairs:
        """The pairs in the folder of a model; none if there is no such file."""
        path = folder / WORD_PAIRS
        counts: dict[tuple[str, str], int] = {}
        if not path.is_file():
            return cls(counts)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            first, *rest = line.split(" ")
            following, numbers = rest[::2], rest[1::2]
            if not rest or len(rest) % 2 or not all(count.isdecimal() for count in numbers):
                raise ValueError(
                    f"{path}, line {number}: expected a word, and then words that follow it with "
                    f"counts, got {line[:60]!r}"
                )
            counts |= {
                (first, second): int(count)
                for second, count in zip(following, numbers, strict=True)
            }
        return cls(counts)

    def write(self, folder: Path) -> None:
        """A line for each first word, with the words that follow it, so that `read` finds them."""
        lines: dict[str, list[str]] = {}
        for (first, second), count in self.counts.items():
            lines.setdefault(first, [first]).append(f"{second} {count}")
        text = "".join(" ".join(line) + "\n" for line in lines.values())
        write_output(folder / WORD_PAIRS, text.encode())
