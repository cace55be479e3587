"""Gaps cut out of sentences of text8 and filled again: are they as long, and of words that exist?

From each of the first chunks of text8's test part a gap of 3 to 20 letters is cut out. It is filled
by the free model without look-ahead, by the same with particles, by the same told the length, and
by the in-place model, which must be told it; and, if one is given, by a model that was trained with
frozen spans (`indel train text8 --start text8 --set training.frozen=spans`). For each are printed:
the share of gaps that have the right length and the right letters, the mean error of the length in
letters, and the share of words that touch the gap and stand in the training text; last, the latter
for the sentences themselves.

    python studies/infilling.py --sentences 200 --particles 16 --trained runs/spans
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable
from typing import NamedTuple

import indel
from indel.data import open_data
from indel.pretrained import pretrained_folder
from indel.sampling.patterns import escaped

LEAST, MOST, MARGIN = 3, 20, 10


class Cut(NamedTuple):
    """A sentence and the part that is taken out of it."""

    before: str
    gap: str
    after: str

    def with_gap(self, inside: str) -> str:
        """The pattern, or the sentence, with this in place of what is taken out."""
        return escaped(self.before) + inside + escaped(self.after)


def cuts(count: int, seed: int) -> list[Cut]:
    """The first chunks of the test part, each with a gap at a random place."""
    data, chance = open_data("text8-sample"), random.Random(seed)
    texts = [data.vocabulary.text(row) for row in data.examples(0, count, "test").to_lists()]
    found = []
    for text in texts:
        length = chance.randint(LEAST, MOST)
        start = chance.randint(MARGIN, len(text) - MARGIN - length)
        found.append(Cut(text[:start], text[start : start + length], text[start + length :]))
    return found


def touched_words(cut: Cut, inside: str) -> list[str]:
    """The words that have a letter in the gap or next to it; those cut off at an end are left out.

    >>> touched_words(Cut("a red ho", "use", " stands here"), "rse")
    ['horse']
    """
    text, first = cut.before + inside + cut.after, len(cut.before)
    start = text.rfind(" ", 0, first) + 1
    end = text.find(" ", first + len(inside))
    return [word for word in text[start : len(text) if end < 0 else end].split(" ") if word]


def measured(cut_texts: list[Cut], fills: Iterable[str], known: set[str]) -> list[float]:
    """Shares of right lengths and right letters, mean error of the length, share of known words."""
    pairs = list(zip(cut_texts, fills, strict=True))
    words = [word for cut, fill in pairs for word in touched_words(cut, fill)]
    return [
        sum(len(fill) == len(cut.gap) for cut, fill in pairs) / len(pairs),
        sum(fill == cut.gap for cut, fill in pairs) / len(pairs),
        sum(abs(len(fill) - len(cut.gap)) for cut, fill in pairs) / len(pairs),
        sum(word in known for word in words) / len(words) if words else 0.0,
    ]


def filled(model: indel.Denoiser, cut: Cut, number: int, particles: int, told: bool) -> str:
    """What the model writes into one gap."""
    pattern = cut.with_gap(f"{{{len(cut.gap)}}}" if told else "{}")
    return indel.infill(model, pattern, seed=number, particles=particles).gaps[0][0]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--particles", type=int, default=16)
    parser.add_argument("--trained", help="a model trained with training.frozen = 'spans'")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    free, in_place = indel.load("text8"), indel.load("in-place")
    words = (pretrained_folder("text8") / "words.txt").read_text(encoding="utf-8")
    known = {line.split()[0] for line in words.splitlines() if line.strip()}
    chosen = cuts(arguments.sentences, arguments.seed)
    ways: dict[str, Callable[[Cut, int], str]] = {
        "free model": lambda cut, n: filled(free, cut, n, 1, False),
        f"free model, {arguments.particles} particles": lambda cut, n: filled(
            free, cut, n, arguments.particles, False
        ),
        "free model, told the length": lambda cut, n: filled(free, cut, n, 1, True),
        "in-place model, told the length": lambda cut, n: filled(in_place, cut, n, 1, True),
    }
    if arguments.trained is not None:
        spans = indel.load(arguments.trained)
        ways["trained with spans"] = lambda cut, n: filled(spans, cut, n, 1, False)
        ways["trained with spans, told the length"] = lambda cut, n: filled(spans, cut, n, 1, True)
    ways["the sentences themselves"] = lambda cut, _: cut.gap
    print(f"{len(chosen)} gaps of {LEAST} to {MOST} letters, seed {arguments.seed}")
    print(f"{'':36}{'length':>8}{'letters':>9}{'error':>7}{'words':>7}")
    for name, fill in ways.items():
        numbers = measured(chosen, [fill(cut, n) for n, cut in enumerate(chosen)], known)
        print(
            f"{name:36}{numbers[0]:8.3f}{numbers[1]:9.3f}{numbers[2]:7.2f}{numbers[3]:7.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
