"""Gaps cut out of sentences of text8 and filled again: are they as long, and of words that exist?

From each of the first chunks of text8's test part a gap of 3 to 20 letters is cut out and filled:
by the bundled free model, each step of which is conditioned on what is frozen; by the same with its
counts told what is frozen; by the bundled in-place model, which must be told the length of the gap;
and, if one is given, by a model that was trained with frozen spans. Sentences are filled 32 at a
time. With particles the free model takes them one by one, so it may be given fewer.

For each are printed: the share of gaps that have the right length and the right letters, the mean
error of the length in letters, the share of words touching the gap that stand in the training text
(with its standard error over the sentences), and a bound on −log p(gap | rest) in bits per letter
of the gap; for the in-place model that is the bound given the length as well. Last, the words of
the sentences themselves. What was measured is kept in a file: a run that was stopped goes on.

    python studies/infilling.py --sentences 200 --trained runs/spans --out runs/infilling.json
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

import indel
from indel import Batch, Denoiser, RowSeeds
from indel.atomic_files import write_output
from indel.bound.likelihood import chain_terms, draw_times
from indel.data import open_data
from indel.model.gap_network import GapNetwork, MarkedDenoise, UnmarkedNetwork
from indel.pretrained import pretrained_folder
from indel.process.gaps import Gaps
from indel.randomness import index_at, seeds_for, split, uniform
from indel.sampling.gap_chains import fill_gaps
from indel.sampling.generation import SamplingOptions
from indel.sampling.particles import sample_held
from indel.sampling.patterns import Gap, Pattern

LEAST, MOST, MARGIN, AT_ONCE = 3, 20, 10, 32


class Cut(NamedTuple):
    """A sentence and the part that is taken out of it."""

    before: str
    gap: str
    after: str


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
    """The words that have a letter in the gap or next to it.

    >>> touched_words(Cut("a red ho", "use", " stands here"), "rse")
    ['horse']
    """
    text, first = cut.before + inside + cut.after, len(cut.before)
    start = text.rfind(" ", 0, first) + 1
    end = text.find(" ", first + len(inside))
    return [word for word in text[start : len(text) if end < 0 else end].split(" ") if word]


@dataclass(frozen=True)
class Way:
    """One way of filling gaps."""

    name: str
    model: Denoiser
    told_counts: bool = True
    told_length: bool = False
    particles: int = 1

    @property
    def network(self) -> MarkedDenoise:
        """The network that takes frozen tokens as given, whether it has learned to or not."""
        if self.model.marks is not None:
            return self.model
        return UnmarkedNetwork(self.model, self.told_counts)

    def results(self, some: list[Cut], first: int, num_times: int) -> Iterator[dict[str, Any]]:
        """What is written into each gap, and the bound on what was there, in nats."""
        if self.particles > 1:
            for number, cut in enumerate(some, start=first):
                yield {"fill": self._by_particles(cut, number), "nats": None}
            return
        gaps, contents = self._divided(some)
        seeds = seeds_for(0, "infilling study", first, len(some))
        with torch.inference_mode():
            fills = self._filled(gaps, contents, RowSeeds(seeds))
            nats = self._bound(gaps, contents, RowSeeds(seeds), num_times)
        for row, value in zip(fills.to_lists(), nats.tolist(), strict=True):
            yield {"fill": self.model.vocabulary.text(row), "nats": value}

    def _divided(self, some: list[Cut]) -> tuple[Gaps, Batch]:
        encode = self.model.vocabulary.encode
        x = Batch.from_lists([encode("".join(cut)) for cut in some])
        frozen = torch.ones_like(x.tokens, dtype=torch.bool)
        for row, cut in enumerate(some):
            frozen[row, len(cut.before) : len(cut.before) + len(cut.gap)] = False
        return Gaps.split(x, frozen)

    def _log_start(self, gaps: Gaps, contents: Batch) -> Tensor:
        """log p(n DELs of x_T lie in the gap), n = 0, 1, …"""
        model, most = self.model, self.model.config.max_length
        if self.told_length:
            # Where nothing is inserted or deleted there are as many as letters.
            lengths = contents.lengths[:, None] == torch.arange(most + 1)
            return lengths.double().log()
        if model.marks is not None:
            network = GapNetwork(model, gaps)
            return network.log_start(model.length, model.schedule.num_steps, most).double()
        # One gap: p(n) ∝ p(|x_T| = n + frozen), whose tail is geometric.
        total = gaps.frozen.lengths[:, None] + torch.arange(2 * most + 1)
        return torch.log_softmax(model.length.log_prob(total).double(), dim=-1)

    def _filled(self, gaps: Gaps, contents: Batch, noise: RowSeeds) -> Batch:
        model = self.model
        start = self._log_start(gaps, contents).exp().cumsum(dim=-1)
        counts = index_at(start, uniform(noise, len(start), 1, dtype=torch.float64)[:, 0])
        weights = model.edit_weights(model.schedule.tables(model.device).jump)
        return fill_gaps(
            self.network, model.schedule, weights, gaps, counts, generator=split(noise)
        )

    def _bound(self, gaps: Gaps, contents: Batch, noise: RowSeeds, num_times: int) -> Tensor:
        schedule, model = self.model.schedule, self.model
        times = draw_times(schedule, contents, num_times, noise)
        weights = model.edit_weights(schedule.tables(model.device).jump)
        network = GapNetwork(self.network, gaps)
        terms, logp_last, last = chain_terms(
            network, schedule, contents, times, None, weights, generator=split(noise)
        )
        scale = schedule.num_steps / len(times)
        steps = scale * sum(torch.stack(tuple(term)).sum(dim=0) for term in terms)
        start = self._log_start(gaps, contents)
        # Longer than that: by a tail of halves.
        beyond = (last - start.shape[1] + 1).clamp_min(0) * math.log(2.0)
        at_end = start.gather(1, last.clamp_max(start.shape[1] - 1)[:, None])[:, 0] - beyond
        found: Tensor = steps + logp_last - at_end
        return found

    def _by_particles(self, cut: Cut, number: int) -> str:
        encode = self.model.vocabulary.encode
        pattern = Pattern.of([encode(cut.before), Gap(), encode(cut.after)])
        samples = sample_held(
            self.model,
            pattern,
            1,
            generator=RowSeeds(seeds_for(0, "infilling study", number, 1)),
            particles=self.particles,
            options=SamplingOptions(look_ahead=self.told_counts),
        )
        return samples.gaps[0][0]


def row_of(name: str, some: list[Cut], results: list[dict[str, Any]], known: set[str]) -> str:
    """One line of the table."""
    fills = [str(result["fill"]) for result in results]
    shares = []
    for cut, fill in zip(some, fills, strict=True):
        words = touched_words(cut, fill)
        shares.append((sum(word in known for word in words), len(words)))
    right, words = (sum(column) for column in zip(*shares, strict=True))
    ratio = right / max(words, 1)
    # Of a ratio of sums over sentences.
    spread = sum((one - ratio * many) ** 2 for one, many in shares) ** 0.5 / max(words, 1)
    same = sum(len(fill) == len(cut.gap) for cut, fill in zip(some, fills, strict=True))
    exact = sum(fill == cut.gap for cut, fill in zip(some, fills, strict=True))
    error = sum(abs(len(fill) - len(cut.gap)) for cut, fill in zip(some, fills, strict=True))
    count, letters = len(some), sum(len(cut.gap) for cut in some)
    bits = "–"
    if all(result["nats"] is not None for result in results):
        bits = f"{sum(result['nats'] for result in results) / letters / math.log(2.0):.2f}"
    return (
        f"| {name} | {count} | {same / count:.3f} | {exact / count:.3f} | {error / count:.2f} | "
        f"{ratio:.3f} ± {spread:.3f} | {bits} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--particles", type=int, default=4)
    parser.add_argument("--with-particles", type=int, default=20, help="sentences; 0: none")
    parser.add_argument("--times", type=int, default=8, help="random t per bound")
    parser.add_argument("--trained", help="a model trained with training.frozen = 'spans'")
    parser.add_argument("--only", default="", help="the ways whose name begins so")
    parser.add_argument("--out", type=Path, default=Path("runs/infilling.json"))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    free, in_place = indel.load("text8"), indel.load("in-place")
    ways = [
        Way("free model, conditioned", free, told_counts=False),
        Way("free model, its counts told", free),
        Way("in-place model, told the length", in_place, told_counts=False, told_length=True),
        Way("in-place model, told the length, its counts told", in_place, told_length=True),
    ]
    if arguments.trained is not None:
        ways.insert(2, Way("trained with spans", indel.load(arguments.trained)))
    if arguments.with_particles:
        name = f"free model, conditioned, {arguments.particles} particles"
        ways.append(Way(name, free, told_counts=False, particles=arguments.particles))
    ways = [way for way in ways if way.name.startswith(arguments.only)]
    words = (pretrained_folder("text8") / "words.txt").read_text(encoding="utf-8")
    known = {line.split()[0] for line in words.splitlines() if line.strip()}
    chosen = cuts(arguments.sentences, arguments.seed)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    kept: dict[str, list[dict[str, Any]]] = {}
    if arguments.out.exists():
        kept = json.loads(arguments.out.read_text(encoding="utf-8"))
    print(f"gaps of {LEAST} to {MOST} letters, seed {arguments.seed}\n")
    print("| | gaps | length | letters | error | words | bits per letter |")
    print("|---|---|---|---|---|---|---|")
    for way in ways:
        key = f"{way.name}, seed {arguments.seed}, {arguments.times} times"
        if way.model.marks is not None:
            key += f", {arguments.trained}"
        found = kept.setdefault(key, [])
        many = arguments.with_particles if way.particles > 1 else len(chosen)
        many, at_once = min(many, len(chosen)), 1 if way.particles > 1 else AT_ONCE
        began = time.process_time()
        while len(found) < many:
            first = len(found)
            some = chosen[first : min(first + at_once, many)]
            found.extend(way.results(some, first, arguments.times))
            write_output(arguments.out, json.dumps(kept).encode())
        line = row_of(way.name, chosen[:many], found[:many], known)
        print(line, f" <!-- {time.process_time() - began:.0f} CPU-s -->", flush=True)
    itself = [{"fill": cut.gap, "nats": None} for cut in chosen]
    print(row_of("the sentences themselves", chosen, itself, known))


if __name__ == "__main__":
    main()
