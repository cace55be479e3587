"""What the network itself says of a text in its context: two scores, from one call each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from indel.batch import Batch
from indel.model import Denoiser
from indel.text_repair.spelling import Place
from indel.text_repair.weights import Weights
from indel.text_repair.windows import AFTER, BEFORE

Progress = Callable[[int, int], None]

_LIKELY = 0.01
_MOST = 5
"""Texts of one place that the network is asked about: those at least so likely without it."""
_SURE = 0.99
_SEEN = 8  # letters on either side of a text whose edits count with it


@dataclass(frozen=True)
class ContextScore:
    """Scores texts by the denoiser's guess of the edits, all texts of all places in batches.

    kept:    the text is put in its place and taken for x_t; Σ log p̃(x_i) + log p̃(no deletion) over
             its letters and some around it: how likely it is that nothing there needs an edit.
    written: DELs stand in its place; Σ log p̃(x_i): how likely the letters are that were deleted.
    """

    denoiser: Denoiser
    weights: Weights
    t_kept: int = 2
    t_written: int = 12
    reach: int = 40
    """Letters of context on either side; plain words where there are fewer."""
    batch_size: int = 64

    def __call__(self, places: Sequence[Place], *, progress: Progress | None = None) -> list[Place]:
        """The places with the network's evidence; those that are clear without it as they are."""
        chosen = [self._asked(place) for place in places]
        rows = [
            (place, text)
            for place, kept in zip(places, chosen, strict=True)
            for text in (place.texts[row] for row in kept)
        ]
        kept_scores = self._batched(rows, progress, "kept") if self.weights.context_kept else None
        written = self._batched(rows, progress, "written") if self.weights.context_written else None
        zeros = [0.0] * len(rows)
        scores = iter(zip(kept_scores or zeros, written or zeros, strict=True))
        return [
            place.with_context(kept, [next(scores) for _ in kept]) if kept else place
            for place, kept in zip(places, chosen, strict=True)
        ]

    def _asked(self, place: Place) -> list[int]:
        """The texts that the network is asked about; none if one is all but certain."""
        shares = place.probabilities(self.weights)
        if shares.max() >= _SURE or not self.weights.asks_network:
            return []
        ranked = [int(row) for row in shares.argsort()[::-1][:_MOST] if shares[row] >= _LIKELY]
        return list(dict.fromkeys([0, *ranked]))

    def _batched(
        self, rows: Sequence[tuple[Place, str]], progress: Progress | None, kind: str
    ) -> list[float]:
        found: list[float] = []
        for first in range(0, len(rows), self.batch_size):
            found += self._scores(rows[first : first + self.batch_size], kind)
            if progress is not None:
                progress(len(found), len(rows))
        return found

    @torch.inference_mode()
    def _scores(self, rows: Sequence[tuple[Place, str]], kind: str) -> list[float]:
        """The scores of some texts, each in its own context, from one call of the network."""
        vocabulary, device = self.denoiser.vocabulary, self.denoiser.length.logits.device
        written = kind == "written"
        sequences, spans = [], []
        for place, text in rows:
            before, after = self._around(place, len(text))
            letters = vocabulary.encode(text)
            shown = [vocabulary.del_] * len(letters) if written else letters
            left = vocabulary.encode(before)
            sequences.append([*left, *shown, *vocabulary.encode(after)])
            spans.append((len(left), len(left) + len(letters), letters))
        output = self.denoiser(Batch.from_lists(sequences, device=device), self._time(kind))
        values = torch.log_softmax(output.logits_token.float(), dim=-1)
        none = torch.log_softmax(output.logits_deletions.float(), dim=-1)[..., 0]
        scores = []
        for row, (sequence, (start, end, letters)) in enumerate(zip(sequences, spans, strict=True)):
            if written:
                score = _chosen(values[row, start:end], letters)
            else:
                low, high = max(0, start - _SEEN), min(len(sequence), end + _SEEN)
                score = _chosen(values[row, low:high], sequence[low:high])
                score = score + none[row, low : high + 1].sum()
            scores.append(float(score))
        return scores

    def _time(self, kind: str) -> int:
        t = self.t_written if kind == "written" else self.t_kept
        return min(t, self.denoiser.schedule.num_steps)

    def _around(self, place: Place, length: int) -> tuple[str, str]:
        """The letters before and after a place, filled up with plain words."""
        reach = min(self.reach, max(0, (self.denoiser.config.max_length - length) // 2))
        start, end = place.correction.start, place.correction.end
        # Where the text begins or ends, the filling brings its own space.
        before = (BEFORE + place.letters[:start])[-reach:] if reach else ""
        after = (place.letters[end:] + AFTER)[:reach]
        return before, after


def _chosen(logp: Tensor, tokens: Sequence[int]) -> Tensor:
    """Σ_i logp[i, token i]."""
    return logp.gather(1, torch.tensor(tokens, device=logp.device)[:, None]).sum()
