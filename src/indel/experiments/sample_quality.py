"""How good samples are, measured without a likelihood."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import torch

from indel.batch import Batch
from indel.data import ArithmeticData, BatchStream
from indel.data.chunks import ChunkStream
from indel.data.streams import Split
from indel.vocabularies import CharacterVocabulary, Vocabulary


def sample_quality(samples: Batch, data: BatchStream, split: Split) -> dict[str, list[float]]:
    """Means over samples with standard errors; nothing for data that has no measure.

    For arithmetic the error rate and the share of valid sequences; for text the share of words
    that stand in the training part, for the samples and for as many chunks of the split.
    """
    if isinstance(data, ArithmeticData):
        return {
            "error_rate": _mean(data.error_rates(samples).tolist()),
            "valid_rate": _mean(data.is_valid(samples).double().tolist()),
        }
    if isinstance(data, ChunkStream) and isinstance(data.vocabulary, CharacterVocabulary):
        known = set(data.text("train").split())
        real = data.examples(0, len(samples), split)
        return {
            "known_words": _mean(known_word_shares(_texts(samples, data.vocabulary), known)),
            "known_words_of_text": _mean(known_word_shares(_texts(real, data.vocabulary), known)),
        }
    return {}


def known_word_shares(texts: Iterable[str], known: Collection[str]) -> list[float]:
    """The share of known words in each text that has any, without its first and last word.

    Those may be cut off: a text is a chunk of a longer one.

    >>> known_word_shares(["ead the book she ha", "word"], {"the", "book"})
    [0.6666666666666666]
    """
    inner = [text.split(" ")[1:-1] for text in texts]
    words = [[word for word in each if word] for each in inner]
    return [sum(word in known for word in each) / len(each) for each in words if each]


def _texts(batch: Batch, vocabulary: Vocabulary) -> list[str]:
    return [str(vocabulary.decode(row)) for row in batch.to_lists()]


def _mean(values: list[Any]) -> list[float]:
    """The mean and its standard error, which takes two values."""
    each = torch.tensor(values, dtype=torch.float64)
    spread = float(each.std()) / len(each) ** 0.5 if len(each) > 1 else float("nan")
    return [float(each.mean()), spread]
