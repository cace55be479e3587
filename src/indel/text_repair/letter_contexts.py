"""How well letters fit between others, by the contexts that a model has counted; no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from indel.model import Denoiser
from indel.model.context_trees import LONGEST_CONTEXT

_SEEN = LONGEST_CONTEXT + 4
"""Letters on either side: a context and a little more, so that it is found again after a word."""


@dataclass(frozen=True)
class LetterContexts:
    """log p(letters | those before), the next letter depending on the longest context known."""

    denoiser: Denoiser

    @classmethod
    def of(cls, denoiser: Denoiser) -> LetterContexts | None:
        """Those of a denoiser; None if it has no counts."""
        return cls(denoiser) if denoiser.prior is not None and denoiser.prior.fitted else None

    def log_probs(self, before: str, texts: Sequence[str], after: str) -> NDArray[np.float64]:
        """log p(text and what is after it | what is before), for each text."""
        encode = self.denoiser.vocabulary.encode
        follow, log_prob = self._transitions
        state = np.zeros(len(texts), dtype=np.int32)
        for token in encode(before[-_SEEN:]):
            state = follow[state, token]
        rows = [encode(text + after[:_SEEN]) for text in texts]
        lengths = np.array([len(row) for row in rows])
        tokens = np.zeros((len(rows), lengths.max(initial=0)), dtype=np.int64)
        for row, found in zip(tokens, rows, strict=True):
            row[: len(found)] = found
        total = np.zeros(len(rows))
        for i in range(tokens.shape[1]):
            read = tokens[:, i]
            total += np.where(i < lengths, log_prob[state, read], 0.0)
            state = follow[state, read]
        return total

    @cached_property
    def _transitions(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The state after each token in each state, and log p(token | state)."""
        assert self.denoiser.prior is not None
        counts = self.denoiser.prior.automaton()
        states, size = len(counts.end), len(counts.common)
        rows = counts.transposed
        target = rows.col_indices().cpu().numpy()
        source = np.repeat(np.arange(states), np.diff(rows.crow_indices().cpu().numpy()))
        token = counts.last.cpu().numpy()[target]
        # A token that does not follow often is read in the state of that token alone.
        follow = np.tile(np.arange(1, size + 1, dtype=np.int32), (states, 1))
        follow[source, token] = target
        rest, common = counts.rest.cpu().numpy(), counts.common.cpu().numpy()
        prob = rest[:, None] * common[None]
        np.add.at(prob, (source, token), rows.values().cpu().numpy())
        with np.errstate(divide="ignore"):  # a letter that the training text does not have
            return follow, np.log(prob, dtype=np.float32)
