"""The best denoiser there is for a few known sequences: Bayes' rule instead of a network."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from indel import Batch, IntegerVocabulary
from indel.model import Denoiser, DenoiserConfig, DenoiserOutput, TransformerConfig
from indel.process import Schedule, Step, edit_marginals, log_prob
from indel.process.length_distribution import length_distribution

Data = Mapping[tuple[int, ...], float]
# The network that a denoiser must have, where Bayes' rule stands in for it.
UNUSED = TransformerConfig(width=4, num_layers=1, num_heads=1, head_width=4, feedforward_width=4)


class IdealDenoiser(Denoiser):
    """p̃ is the exact law of each edit given x_t, and p_θ(|x_T|) the exact law of the length.

    What p_θ still gets wrong is what it assumes: that the edits of a step are independent.
    """

    def __init__(self, schedule: Schedule, data: Data, *, max_length: int) -> None:
        vocabulary = IntegerVocabulary(schedule.vocab_size)
        longest = max(map(len, data))
        super().__init__(
            DenoiserConfig(UNUSED, vocabulary, schedule, max_length, max_deletions=longest),
            generator=torch.Generator().manual_seed(0),
        )
        self.data = Batch.from_lists(data)
        self.prob = torch.tensor(list(data.values()), dtype=torch.float64)
        law = self.prob @ length_distribution(schedule, self.data.lengths, schedule.num_steps)
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
        """The marginals of the edits for each x_0, averaged by its probability given x_t."""
        schedule = self.seen_by_time[t - 1]
        number, x_0, weight = self._explanations(schedule, x_t, t)
        repeated = x_t.rows(number)
        law = edit_marginals(schedule, x_0, repeated, t)
        origin = x_0.tokens.clamp_min(0)[:, None, :].expand(law.prob_source.shape)
        value = law.prob_source.new_zeros(*repeated.tokens.shape, schedule.vocab_size)
        value = value.scatter_add(2, origin, law.prob_source)
        value = torch.cat([value, law.prob_inserted[..., None]], dim=-1)
        deleted = value.new_zeros(len(number), x_t.width + 1, self.max_deletions + 1)
        for n in range(x_0.width):
            deleted[:, :-1, n] = law.prob_source_deletions(n).sum(dim=-1)
        # Nothing is deleted right before an insert.
        deleted[:, :-1, 0] += law.prob_inserted
        deleted[torch.arange(len(number)), repeated.lengths] = law.prob_deletions_end
        tokens, deletions = (
            torch.zeros(len(x_t), *each.shape[1:], dtype=torch.float64).index_add(
                0, number, each * weight[:, None, None]
            )
            for each in (value, deleted)
        )
        # Rows at padding hold no law; any will do.
        deletions[deletions.sum(dim=-1) == 0] = 1.0
        tokens[tokens.sum(dim=-1) == 0] = 1.0
        return tokens.log(), deletions.log()

    def _explanations(self, schedule: Schedule, x_t: Batch, t: int) -> tuple[Tensor, Batch, Tensor]:
        """Every x_0 that q can make an x_t from: its row in x_t, itself, and q(x_0 | x_t)."""
        rows, sources = len(x_t), len(self.prob)
        number = torch.arange(rows).repeat_interleave(sources)
        x_0 = self.data.rows(torch.arange(sources).repeat(rows))
        logp = log_prob(schedule, x_0, x_t.rows(number), t).reshape(rows, sources)
        weight = (logp + self.prob.log()).softmax(dim=1).flatten()
        possible = (weight > 0).nonzero()[:, 0]
        return number[possible], x_0.rows(possible), weight[possible]


def _without_inserts(schedule: Schedule, t: int) -> Schedule:
    last = schedule.step(t)
    quiet = Step(0.0, last.delete, last.transition, last.inserted, last.delete_inserted)
    return Schedule([*(schedule.step(s) for s in range(1, t)), quiet])


def _unique_rows(batch: Batch) -> tuple[Batch, Tensor]:
    table = torch.cat([batch.lengths[:, None], batch.tokens], dim=1)
    rows, back = torch.unique(table, dim=0, return_inverse=True)
    return Batch(rows[:, 1:], rows[:, 0]), back
