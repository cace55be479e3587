"""A guess of the edits by counts and Bayes' rule, which the network corrects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from indel.batch import Batch
from indel.model import native_passes
from indel.model.automata import LEAST_REST, Automaton
from indel.model.context_trees import ContextTree, Memory
from indel.model.edit_posterior import HeldPlaces, edit_posterior, gap_posterior
from indel.model.edit_weights import EditWeights
from indel.model.whole_lengths import length_weights, weighed_gaps
from indel.process import Schedule
from indel.process.length_distribution import last_length_distributions
from indel.process.tables import Tables

TRANSITIONS = 8
"""Frequent transitions that are kept per context, on average."""
INITIAL_SHARE = 0.1
"""What the network adds starts out small."""
_ROWS = 32
"""Rows done at once."""
_WEIGHTS = 2**20
"""At so many states of rows at once: for each token of a row torch keeps the weights of all."""
_LEAST = 1e-9
"""Counts are never so sure that the network could not overrule them."""
_TOLD = 4
"""The network is told P(n) of the first so many numbers of deletions."""


class Guess(NamedTuple):
    """The edits as the counts have them, at each token and at EOS."""

    source: Float[Tensor, "batch slots values"]
    """log p̃ of where a token comes from, or that it was inserted; in the place of EOS stands what
    would follow if the sequence went on, and a frozen token is guessed from all others."""
    deletions: Float[Tensor, "batch slots counts"]
    """log p̃ of n = 0…most."""


class CountPrior(nn.Module):
    """p̃(x̃_0, ã | x_t) by Bayes' rule: x_0 from counts of contexts, x_t from the exact q.

    The logits of the denoiser are trust_t · log p̃ + share_t · (the network's). The counts are
    fitted before training (`fit`), not trained; before that all tokens are alike.
    """

    source: Tensor
    target: Tensor
    prob: Tensor
    last: Tensor
    shorter: Tensor
    end: Tensor
    log_rest: Tensor
    """log p of all transitions of a context that are not kept; 0 where that is not known."""
    common: Tensor
    lengths: Tensor
    """How many sequences of the data have each length; all 0 where that is not known."""

    def __init__(
        self,
        vocab_size: int,
        contexts: int,
        num_steps: int,
        width: int,
        *,
        remembered: int,
        max_length: int,
    ) -> None:
        super().__init__()
        self.vocab_size, self.contexts, self.remembered = vocab_size, contexts, remembered
        places = torch.zeros(TRANSITIONS * contexts, dtype=torch.int32)
        self.register_buffer("source", places)
        self.register_buffer("target", places.clone())
        self.register_buffer("prob", torch.zeros(len(places)))
        self.register_buffer("last", torch.full((contexts,), -1, dtype=torch.int32))
        self.register_buffer("shorter", torch.arange(contexts, dtype=torch.int32))
        self.register_buffer("end", torch.zeros(contexts))
        self.register_buffer("log_rest", torch.zeros(contexts))
        self.register_buffer("common", torch.full((vocab_size,), 1.0 / vocab_size))
        self.register_buffer("lengths", torch.zeros(max_length + 1))
        self.last[0] = vocab_size
        self.last[1 : vocab_size + 1] = torch.arange(vocab_size)
        self.end[: vocab_size + 1] = 1.0 / (vocab_size + 1)
        self.inputs = nn.Linear(2 * (vocab_size + 1 + _TOLD), width, bias=False)
        self.trust = nn.Parameter(torch.ones(num_steps, 2))
        self.share = nn.Parameter(torch.full((num_steps, 2), INITIAL_SHARE))
        self._automaton: Automaton | None = None
        self._weights: Tensor | None = None

    @property
    def fitted(self) -> bool:
        """Whether it has counts."""
        return bool((self.prob > 0).any())

    @torch.no_grad()
    def fit(self, rows: Sequence[Int[np.ndarray, " _"]], memory: Memory | None = None) -> None:
        """Count the contexts of some sequences."""
        tree = ContextTree.fit(rows, self.vocab_size, self.contexts, memory)
        state, token, prob = tree.frequent(len(self.prob))
        symbols = np.bincount(np.concatenate(rows), minlength=self.vocab_size) + 1.0
        kept = np.bincount(state, prob, len(tree.prob))
        rest = np.maximum(1.0 - tree.prob[:, -1] - kept, LEAST_REST)
        for buffer, values in (
            (self.source, state),
            (self.target, tree.follow[state, token]),
            (self.prob, prob),
            (self.last, tree.last),
            (self.shorter, tree.shorter),
            (self.end, tree.prob[:, -1]),
            (self.log_rest, np.log(rest)),
            (self.common, symbols / symbols.sum()),
        ):
            buffer.fill_(-1 if buffer is self.last else 0)
            buffer[: len(values)] = torch.from_numpy(values).to(buffer)
        self._automaton = self._weights = None

    @torch.no_grad()
    def fit_lengths(self, lengths: Int[Tensor, " sequences"]) -> None:
        """Take in how long the sequences of the data are."""
        most = len(self.lengths) - 1
        self.lengths.copy_(torch.bincount(lengths.clamp_max(most), minlength=most + 1))
        self._weights = None

    def forward(
        self,
        tables: Tables,
        weights: EditWeights,
        seen: Batch,
        t: Int[Tensor, " batch"],
        most: int,
        held: HeldPlaces | None = None,
    ) -> Guess:
        """The guess from x_t without INS, of which some tokens may be frozen."""

        def of_rows(some: Batch, rows: Tensor, places: HeldPlaces | None) -> Guess:
            return self._logits(tables, weights, some, t[rows], most, places)

        return _by_parts(of_rows, seen, held, self._rows_at_once())

    def start(self, schedule: Schedule, frozen: Batch, held: HeldPlaces, most: int) -> Guess:
        """The guess from the frozen tokens alone; in the place of n stands how many DELs of x_T
        lie in each gap.
        """
        lengths = torch.arange(most + 1, device=frozen.device)
        law = last_length_distributions(schedule, lengths)[0].float()[:, : most + 1]
        law = functional.pad(law, (0, most + 1 - law.shape[1]))
        weights = self._length_weights() if self.lengths.any() else None

        def of_rows(some: Batch, _: Tensor, places: HeldPlaces | None) -> Guess:
            assert places is not None
            found = gap_posterior(
                self.automaton(), some, places, counts=most, remembered=self.remembered
            )
            source = (found.kept / found.kept.sum(dim=-1, keepdim=True)).nan_to_num()
            gaps = found.deletions[:, :-1]
            if weights is not None:
                gaps = weighed_gaps(gaps, places.open_slots[:, :-1], some.lengths, weights)
            deletions = (gaps @ law + 1e-2 * _LEAST).log()
            return Guess(
                (functional.pad(source, (0, 1)) + _LEAST).log(),
                torch.log_softmax(deletions, dim=-1),
            )

        return _by_parts(of_rows, frozen, held, self._rows_at_once())

    def features(self, guess: Guess) -> Float[Tensor, "batch slots width"]:
        """What the network is told of the guess, at each token and at EOS."""
        first = guess.deletions[..., :_TOLD]
        first = functional.pad(first, (0, _TOLD - first.shape[-1]))
        told = torch.cat([guess.source, first], dim=-1)
        embedded: Tensor = self.inputs(torch.cat([0.25 * told, told.exp()], dim=-1))
        return embedded

    def combined(
        self, head: int, t: Int[Tensor, " batch"], counted: Tensor, learned: Tensor
    ) -> Float[Tensor, "batch slots values"]:
        """The logits of a head: those of the counts, corrected by the network's."""
        trust, share = self.trust[t - 1, head], self.share[t - 1, head]
        return trust[:, None, None] * counted + share[:, None, None] * learned

    def _logits(
        self,
        tables: Tables,
        weights: EditWeights,
        seen: Batch,
        t: Int[Tensor, " batch"],
        most: int,
        held: HeldPlaces | None,
    ) -> Guess:
        jump, before = tables.jump, t - 1
        found = edit_posterior(
            self.automaton(), jump, seen, t, counts=most, remembered=self.remembered, held=held
        )
        # p_θ multiplies p̃ by its own weights and by what q does up to t − 1: see `ReverseStep`.
        keep = (jump.keep[before] / weights.keep[t]).nan_to_num(posinf=0.0)
        insert = (1.0 - jump.insert_ins[t]) * jump.loops[before] / weights.insert[t]
        kept = found.kept * keep.float()[:, None, None]
        inserted = found.inserted * insert.nan_to_num(posinf=0.0).float()[:, None]
        values = torch.cat([kept, inserted[..., None]], dim=-1)
        values = (values / values.sum(dim=-1, keepdim=True)).nan_to_num()
        numbers = torch.arange(most + 1, device=seen.device)
        each = weights.log_delete[t].nan_to_num(neginf=0.0).float()[:, None, None]
        deletions = (found.deletions[:, :-1] + 1e-2 * _LEAST).log() - numbers * each
        return Guess((values + _LEAST).log(), torch.log_softmax(deletions, dim=-1))

    def automaton(self) -> Automaton:
        """The counts in the form that the passes need, made once."""
        if self._automaton is None or self._automaton.end.device != self.end.device:
            used = self.last >= 0
            there = self.prob > 0
            self._automaton = Automaton.of(
                self.source[there].long(),
                self.target[there].long(),
                self.prob[there].float(),
                self.end[used].float(),
                self.last[used].long(),
                self.common.float(),
                self.log_rest[used].float().exp() if self.log_rest.any() else None,
                self.shorter[used].long(),
            )
        return self._automaton

    def _rows_at_once(self) -> int:
        if native_passes.available(self.end.device):
            return _ROWS
        return min(_ROWS, max(1, _WEIGHTS // self.contexts))

    def _length_weights(self) -> Float[Tensor, " lengths"]:
        """How much likelier each length is in the data than by the counts, computed once."""
        if self._weights is None or self._weights.device != self.lengths.device:
            self._weights = length_weights(self.lengths, self.automaton())
        return self._weights

    def __getstate__(self) -> dict[str, object]:
        """What a copy takes along: not the sparse matrices, which torch cannot copy."""
        return {**self.__dict__, "_automaton": None}

    def _load_from_state_dict(
        self, state_dict: dict[str, Tensor], prefix: str, *args: object, **kwargs: object
    ) -> None:
        # Older counts do not know how long sequences are, nor what they left out, nor which context
        # is which without its oldest token: then all contexts are followed.
        for name in ("lengths", "log_rest"):
            state_dict.setdefault(f"{prefix}{name}", torch.zeros_like(getattr(self, name)))
        state_dict.setdefault(f"{prefix}shorter", torch.arange(self.contexts, dtype=torch.int32))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        self._automaton = self._weights = None


@torch.no_grad()
def _by_parts(
    of_rows: Callable[[Batch, Tensor, HeldPlaces | None], Guess],
    seen: Batch,
    held: HeldPlaces | None,
    at_once: int,
) -> Guess:
    """The guess for some rows at a time, with a place for what follows the end of the longest."""
    seen = seen.widened(seen.width + 1)
    if held is not None:
        held = HeldPlaces(*(functional.pad(mask, (0, 1)) for mask in held))
    with torch.autocast(seen.device.type, enabled=False):
        parts = [
            of_rows(
                seen.rows(rows),
                rows,
                None if held is None else HeldPlaces(*(mask[rows] for mask in held)),
            )
            for rows in torch.split(torch.arange(len(seen), device=seen.device), at_once)
        ]
    return Guess(*map(torch.cat, zip(*parts, strict=True)))
