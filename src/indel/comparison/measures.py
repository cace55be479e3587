"""What is measured of a method, by one interface: likelihood, samples, gaps, repair, cost."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from indel.batch import Batch
from indel.bound.estimates import Moments
from indel.comparison.interface import Method
from indel.comparison.tasks import Gaps, Tokens, cut_gaps, with_typing_errors
from indel.comparison.training import noise
from indel.data import ArithmeticData, BatchStream, ChunkStream, Sequences, Split
from indel.experiments.sample_quality import known_word_shares
from indel.levenshtein import edit_distance
from indel.vocabularies import CharacterVocabulary

Value = list[float | None]
"""A mean and its standard error; None where a number is none."""
Values = dict[str, Value]

ERRORS = 0.1
"""The share of tokens that are typed wrong before repair."""
_GROUP = 4
"""Tokens of the groups that diversity counts."""
_KNOWN_EXAMPLES = 20_000
_LENGTHS = 4096
"""Training sequences whose lengths are compared with those of samples."""
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    likelihood: int
    samples: int
    gaps: int
    """Sequences with a gap; ours are filled one by one."""
    repairs: int
    """Corrupted sequences."""
    batch_size: int = 64


class Measures:
    """The measures on one data set; data, gaps and errors are the same for every method."""

    def __init__(self, data: BatchStream, sizes: Sizes, *, seed: int = 0) -> None:
        self.data, self.sizes, self.seed = data, sizes, seed
        self.lengths = Counter(self.examples(_LENGTHS, "train").lengths.tolist())
        self._words: set[str] | None = None
        whole = self.examples(sizes.gaps, "test").to_lists()
        self.gaps = cut_gaps(whole, generator=noise(seed, "comparison cuts", 0))
        clean = self.examples(sizes.repairs, "test").to_lists()
        generator = noise(seed, "comparison errors", 0)
        typed = with_typing_errors(clean, data.vocabulary.size, rate=ERRORS, generator=generator)
        # An empty sequence has no error rate.
        pairs = [pair for pair in zip(clean, typed, strict=True) if pair[0]]
        self.clean, self.typed = [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    def examples(self, count: int, split: Split) -> Batch:
        """The first sequences of a split, each once: data of one's own may have fewer."""
        if isinstance(self.data, Sequences):
            count = min(count, self.data.size(split))
        return self.data.examples(0, count, split)

    def all(self, method: Method) -> dict[str, Any]:
        """Everything, as JSON data: None where the method cannot do it."""
        return {
            "likelihood": self.likelihood(method, self.sizes.likelihood, "test"),
            "samples": self.samples(method, self.sizes.samples),
            "infill_known_length": self.infill(method, known=True),
            "infill_unknown_length": self.infill(method, known=False),
            "repair": self.repair(method),
        }

    def during_training(self, method: Method) -> dict[str, Any]:
        """A point of the learning curves, on other data and in small."""
        found = {"likelihood": self.likelihood(method, self.sizes.likelihood // 4, "valid")}
        found["samples"] = self.samples(method, self.sizes.samples // 4)
        return {
            name: value[0]
            for part in found.values()
            for name, value in (part or {}).items()
            if isinstance(value, list) and name != "texts"
        }

    # --- each of them --------------------------------------------------------------------------

    def likelihood(self, method: Method, count: int, split: Split) -> dict[str, Any] | None:
        """Nats of a sequence and bits of a token, exact or as a bound; None: there is none."""
        if method.likelihood_kind == "none":
            return None
        nats, lengths = [], []
        every = self.examples(count, split)
        size = self.sizes.batch_size
        for number, start in enumerate(range(0, len(every), size)):
            x_0 = every.rows(torch.arange(start, min(start + size, len(every))))
            found = method.negative_log_likelihood(
                x_0.trimmed(), generator=noise(self.seed, "comparison likelihood", number)
            )
            if found is None:
                return None
            nats.append(found.double())
            lengths.append(x_0.lengths)
        each, tokens = torch.cat(nats), torch.cat(lengths).double()
        ratio = each.sum() / tokens.sum()
        rest = _mean((each - ratio * tokens).tolist())[1]
        scale = math.log(2.0)
        error = None if rest is None else rest / float(tokens.mean()) / scale
        return {
            "kind": method.likelihood_kind,
            "nats_per_sequence": _mean(each.tolist()),
            "bits_per_token": [_finite(float(ratio) / scale), error],
        }

    def samples(self, method: Method, count: int) -> dict[str, Any]:
        """How good samples are, and what they cost."""
        start = time.process_time()
        drawn = method.generate(count, generator=noise(self.seed, "comparison samples", 0))
        seconds = time.process_time() - start
        return {
            **self.quality(drawn.sequences),
            "calls": drawn.calls,
            "cpu_seconds": seconds / count,
            "texts": [self.data.vocabulary.text(row) for row in drawn.sequences[:4]],
        }

    def quality(self, sequences: Sequence[Tokens]) -> Values:
        """Of any sequences, also of the data's own."""
        return {
            **self._validity(sequences),
            "length_distance": [self._length_distance(sequences), None],
            "unique": [len(set(map(tuple, sequences))) / len(sequences), None],
            "distinct_groups": [distinct_groups(sequences, _GROUP), None],
        }

    def infill(self, method: Method, *, known: bool) -> Values | None:
        """Gaps filled: the share that is as it was, of the right length, and how good the whole is.

        None: the method cannot do it.
        """
        gaps = self.gaps
        if not gaps.left:
            return None
        lengths = [len(part) for part in gaps.taken] if known else None
        start = time.process_time()
        drawn = method.infill(
            gaps.left, gaps.right, lengths, generator=noise(self.seed, "comparison gaps", known)
        )
        if drawn is None:
            return None
        seconds = time.process_time() - start
        whole = [a + b + c for a, b, c in zip(gaps.left, gaps.taken, gaps.right, strict=True)]
        _check_kept(gaps, drawn.sequences, method.name)
        pairs = list(zip(drawn.sequences, whole, strict=True))
        return {
            "exact": _mean([float(found == meant) for found, meant in pairs]),
            "right_length": _mean([float(len(found) == len(meant)) for found, meant in pairs]),
            **self._validity(drawn.sequences),
            "calls": [drawn.calls, None],
            "cpu_seconds": [seconds / len(whole), None],
        }

    def repair(self, method: Method) -> Values | None:
        """Wrong tokens (edit distance) over true tokens before and after; None: it cannot."""
        if not self.typed:
            return None
        start = time.process_time()
        drawn = method.repair(
            Batch.from_lists(self.typed), generator=noise(self.seed, "comparison repair", 0)
        )
        if drawn is None:
            return None
        seconds = time.process_time() - start
        before = error_rate(self.typed, self.clean)
        after = error_rate(drawn.sequences, self.clean)
        return {
            "before": before,
            "after": after,
            "calls": [drawn.calls, None],
            "cpu_seconds": [seconds / len(self.typed), None],
        }

    # --- what there is to measure ----------------------------------------------------------------

    def _validity(self, sequences: Sequence[Tokens]) -> Values:
        """Wrong steps and valid sequences of arithmetic, existing words of text."""
        if isinstance(self.data, ArithmeticData):
            batch = Batch.from_lists(sequences)
            return {
                "error_rate": _mean(self.data.error_rates(batch).tolist()),
                "valid": _mean(self.data.is_valid(batch).double().tolist()),
            }
        shares = self._known_words(sequences)
        return {} if shares is None else {"known_words": _mean(shares)}

    def _known_words(self, sequences: Sequence[Tokens]) -> list[float] | None:
        """The share of words of each text that occur in the training data."""
        vocabulary = self.data.vocabulary
        if not isinstance(vocabulary, CharacterVocabulary):
            return None
        texts = [vocabulary.decode(row) for row in sequences]
        if isinstance(self.data, ChunkStream):
            if self._words is None:
                # One by one: a list of the words of text8 takes a gigabyte.
                self._words = {word[0] for word in _WORD.finditer(self.data.text("train"))}
            return known_word_shares(texts, self._words)
        if not isinstance(self.data, Sequences):
            return None
        if self._words is None:
            lines = self.examples(_KNOWN_EXAMPLES, "train").to_lists()
            self._words = {word for row in lines for word in vocabulary.decode(row).split()}
        # Whole lines: their first and last words are whole too, for which the function asks.
        return known_word_shares((f" {text} " for text in texts), self._words)

    def _length_distance(self, sequences: Sequence[Tokens]) -> float:
        return total_variation(Counter(map(len, sequences)), self.lengths)


def of_data(measures: Measures, count: int) -> dict[str, Any]:
    """The same measures of as many sequences of the data itself: what can be reached."""
    rows = measures.examples(count, "test").to_lists()
    before = error_rate(measures.typed, measures.clean) if measures.typed else None
    return {"samples": measures.quality(rows), "repair_before": before}


def total_variation(first: Counter[int], second: Counter[int]) -> float:
    """½ Σ |p − q| of two counts: 0 for the same distribution, 1 for disjoint ones.

    >>> total_variation(Counter({3: 1, 4: 1}), Counter({4: 5}))
    0.5
    """
    return 0.5 * math.fsum(
        abs(first[key] / first.total() - second[key] / second.total()) for key in {*first, *second}
    )


def distinct_groups(sequences: Iterable[Tokens], size: int) -> float:
    """Different groups of so many neighboring tokens over all of them; 0 where there are none.

    >>> distinct_groups([[1, 2, 1, 2]], 2)
    0.6666666666666666
    """
    groups = [tuple(row[i : i + size]) for row in sequences for i in range(len(row) - size + 1)]
    return len(set(groups)) / len(groups) if groups else 0.0


def error_rate(found: Sequence[Tokens], meant: Sequence[Tokens]) -> Value:
    """Edit distance over true tokens, of all sequences together, and its standard error.

    The error is that of a ratio of means (delta method).

    >>> [round(value, 3) for value in error_rate([[1, 2], [3]], [[1, 2], [4]])]
    [0.333, 0.444]
    """
    wrong = torch.tensor([edit_distance(*pair) for pair in zip(found, meant, strict=True)]).double()
    tokens = torch.tensor([len(row) for row in meant]).double()
    rate = float(wrong.sum() / tokens.sum())
    error = _mean((wrong - rate * tokens).tolist())[1]
    return [rate, None if error is None else error / float(tokens.mean())]


def _check_kept(gaps: Gaps, found: Sequence[Tokens], name: str) -> None:
    """An answer that changes what was given is no answer."""
    for before, after, row in zip(gaps.left, gaps.right, found, strict=True):
        if len(row) < len(before) + len(after) or row[: len(before)] != before:
            raise ValueError(f"{name} changed what stands before a gap: {row}")
        if row[len(row) - len(after) :] != after:
            raise ValueError(f"{name} changed what stands behind a gap: {row}")


def _mean(values: Sequence[float]) -> Value:
    """The mean and its standard error, which takes two values."""
    if not values:
        return [None, None]
    column = torch.tensor(values, dtype=torch.float64)[:, None]
    ((mean, error),) = Moments.of(column, torch.ones_like(column, dtype=torch.bool)).estimates()
    return [_finite(mean), _finite(error)]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
