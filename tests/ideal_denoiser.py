"""The best denoiser there is for a few known sequences: Bayes' rule instead of a network."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from indel import Batch, IntegerVocabulary
from indel.model import Denoiser, DenoiserConfig, DenoiserOutput, TransformerConfig
from indel.process import Schedule, Step, edit_marginals, log_prob
from indel.process.lengths import length_law

Data = Mapping[tuple[int, ...], float]


class IdealDenoiser(Denoiser):
    """p̃ is the exact law of each edit given x_t, and p_θ(|x_T|) the exact law of the length.

    What p_θ still gets wrong is what it assumes: that the edits of a step are independent.
    """

    def __init__(self, schedule: Schedule, data: Data, *, max_length: int) -> None:
        backbone = TransformerConfig(
            width=4, num_layers=1, num_heads=1, head_width=4, feedforward_width=4
        )
        vocabulary = IntegerVocabulary(schedule.vocab_size)
        longest = max(map(len, data))
        super().__init__(
            DenoiserConfig(backbone, vocabulary, schedule, max_length, max_deletions=longest),
            generator=torch.Generator().manual_seed(0),
        )
        self.data = Batch.from_lists(data)
        self.prob = torch.tensor(list(data.values()), dtype=torch.float64)
        law = self.prob @ length_law(schedule, self.data.lengths, schedule.num_steps)
        self.length.fit(law, smoothing=0.0)
        # The network does not see INS: as if the last step inserted nothing.
        self.seen_by_time = [
            _without_inserts(schedule, t) for t in range(1, schedule.num_steps + 1)
        ]

    def forward(self, x_t: Batch, t: Tensor | int) -> DenoiserOutput:
        time = int(torch.as_tensor(t).max())
        rows, back = _unique_rows(x_t)
        tokens, deletions = self._logits(rows, time)
        width = x_t.width
        return DenoiserOutput(tokens[back][:, :width], deletions[back][:, : width + 1])

    def _logits(self, x_t: Batch, t: int) -> tuple[Tensor, Tensor]:
        """The marginals of each x_0, averaged by its probability given x_t."""
        schedule, count, sources = self.seen_by_time[t - 1], len(x_t), len(self.prob)
        each = torch.arange(count).repeat_interleave(sources)
        x_0 = self.data.rows(torch.arange(sources).repeat(count))
        repeated = x_t.rows(each)
        weight = log_prob(schedule, x_0, repeated, t).reshape(count, sources) + self.prob.log()
        weight = weight.softmax(dim=1).nan_to_num(0.0).flatten()
        possible = weight > 0
        x_0, repeated, each = (
            x_0.rows(possible.nonzero()[:, 0]),
            repeated.rows(possible.nonzero()[:, 0]),
            each[possible],
        )
        weight = weight[possible]
        law = edit_marginals(schedule, x_0, repeated, t)
        size = schedule.vocab_size
        origin = x_0.tokens.clamp_min(0)[:, None, :].expand(law.prob_source.shape)
        value = torch.zeros(*law.prob_source.shape[:2], size, dtype=torch.float64)
        value = value.scatter_add(2, origin, law.prob_source)
        value = torch.cat([value, law.prob_inserted[..., None]], dim=-1)
        deleted = torch.zeros(len(each), x_t.width + 1, self.max_deletions + 1, dtype=torch.float64)
        for n in range(min(self.max_deletions, x_0.width - 1) + 1):
            deleted[:, :-1, n] = law.prob_source_deletions(n).sum(dim=-1)
        deleted[:, :-1, 0] += law.prob_inserted
        at_end = law.prob_deletions_end[:, : self.max_deletions + 1]
        deleted[torch.arange(len(each)), repeated.lengths, : at_end.shape[1]] = at_end

        def mean(values: Tensor) -> Tensor:
            total = torch.zeros(count, *values.shape[1:], dtype=torch.float64)
            return total.index_add(0, each, values * weight[:, None, None])

        # Rows at padding hold no law; any will do.
        return tuple(
            torch.where(law.sum(dim=-1, keepdim=True) > 0, law, 1.0).log()
            for law in (mean(value), mean(deleted))
        )


def _without_inserts(schedule: Schedule, t: int) -> Schedule:
    last = schedule.step(t)
    quiet = Step(0.0, last.delete, last.transition, delete_inserted=last.delete_inserted)
    quiet.inserted = last.inserted
    return Schedule([*(schedule.step(s) for s in range(1, t)), quiet])


def _unique_rows(batch: Batch) -> tuple[Batch, Tensor]:
    table = torch.cat([batch.lengths[:, None], batch.tokens], dim=1)
    rows, back = torch.unique(table, dim=0, return_inverse=True)
    return Batch(rows[:, 1:], rows[:, 0]), back
