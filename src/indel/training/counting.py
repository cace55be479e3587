"""The counts of a denoiser's prior are taken from the data before the first step."""

from __future__ import annotations

import numpy as np

from indel.data import BatchStream, Sequences
from indel.model import Denoiser
from indel.model.context_trees import Memory
from indel.training.errors import TrainingError
from indel.vocabularies import Vocabulary
from indel.vocabularies.smiles import SmilesVocabulary
from indel.vocabularies.smiles_bonds import START, open_structure, remembered_after

TOKENS = 60_000_000
"""Of the training data: all molecules of MOSES, with which its counts are better by half a nat."""
_AT_ONCE = 10_000


def fit_counts(denoiser: Denoiser, data: BatchStream) -> None:
    """Count contexts of training data, unless the denoiser has no prior or brings its counts."""
    if denoiser.prior is None or denoiser.prior.fitted:
        return
    # Examples of a list are counted once each; a stream has no end.
    most = data.size("train") if isinstance(data, Sequences) else TOKENS
    rows, start, found = [], 0, 0
    # 60 million numbers of eight bytes are half a gigabyte.
    small = np.min_scalar_type(-data.vocabulary.size)
    while found < TOKENS and start < most:
        batch = data.examples(start, min(_AT_ONCE, most - start), "train")
        lengths = batch.lengths.tolist()
        tokens = batch.tokens.numpy()
        rows += [row[:n].astype(small) for row, n in zip(tokens, lengths, strict=True)]
        start, found = start + _AT_ONCE, found + sum(lengths)
    try:
        denoiser.prior.fit(rows, memory_of(data.vocabulary))
    except ValueError as error:
        raise TrainingError(f"model.contexts = {denoiser.prior.contexts}: {error}") from None


def memory_of(vocabulary: Vocabulary) -> Memory | None:
    """What a grammar of the sequences remembers, where we know one."""
    if not isinstance(vocabulary, SmilesVocabulary):
        return None
    tokens = vocabulary.tokens
    return Memory(
        START, lambda memory, token: remembered_after(memory, tokens[token]), open_structure
    )
