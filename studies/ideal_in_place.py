"""The best in-place denoiser for the paper's own arithmetic sequences, and what a network misses.

python studies/ideal_in_place.py [RUN …]    prints bounds, error rates and the terms of each step

In place nothing moves, so Bayes' rule over all 167,970 sequences is a count of matches.
"""

from __future__ import annotations

import math
import sys

import torch
from torch import Tensor

from ideal_arithmetic import by_length, mean_and_error, measured
from ideal_denoiser import UNUSED
from indel import Batch
from indel.data import ArithmeticData
from indel.model import Denoiser, DenoiserConfig, DenoiserOutput
from indel.process import Schedule
from indel.training import find_checkpoint

COUNT = 256
LEAST = 1e-12  # a probability that is not quite zero, so that all logits are finite


class IdealInPlace(Denoiser):
    """p̃ is the exact law of each token of x_0 given x_t; nothing was inserted or deleted."""

    def __init__(self, data: ArithmeticData, num_steps: int) -> None:
        schedule = Schedule.paper(data.vocabulary.size, num_steps, 0.0)
        config = DenoiserConfig(UNUSED, data.vocabulary, schedule, data.max_length, max_deletions=1)
        super().__init__(config, generator=torch.Generator().manual_seed(0))
        self.sequences = by_length(data)
        lengths = torch.zeros(data.max_length + 1, dtype=torch.float64)
        for length, (_, prob) in self.sequences.items():
            lengths[length] = prob.sum()
        self.length.fit(lengths, smoothing=0.0)

    def forward(self, x_t: Batch, t: Tensor | int) -> DenoiserOutput:
        times = torch.as_tensor(t).expand(len(x_t))
        size = self.schedule.vocab_size
        tokens = torch.full((len(x_t), x_t.width, size + 1), LEAST, dtype=torch.float64)
        for row, (length, time) in enumerate(
            zip(x_t.lengths.tolist(), times.tolist(), strict=True)
        ):
            known = self._posterior(x_t.tokens[row, :length], time)
            tokens[row, :length, :size] += known
        deletions = torch.tensor([1.0, LEAST], dtype=torch.float64)
        return DenoiserOutput(
            tokens.log(), deletions.log().expand(len(x_t), x_t.width + 1, 2).clone()
        )

    def _posterior(self, x_t: Tensor, t: int) -> Tensor:
        """P(x_0[i] = v | x_t): each sequence that has the length counts by what it explains."""
        rows, prior = self.sequences[len(x_t)]
        replace = self.schedule.jump(t).replace
        kept, other = (float(replace[0, column]) for column in (0, 1))
        logp = prior.log()
        if kept > 0:
            logp = logp + (rows == x_t).sum(dim=1) * math.log(kept / other)
        weight = logp.softmax(dim=0)
        known = torch.zeros(len(x_t), self.schedule.vocab_size, dtype=torch.float64)
        return known.scatter_add(1, rows.T, weight.expand(len(x_t), -1))


def main(runs: list[str]) -> None:
    data, num_steps = ArithmeticData(), 10
    models: dict[str, Denoiser] = {"ideal": IdealInPlace(data, num_steps).eval()}
    for run in runs:
        models[run] = Denoiser.from_pretrained(find_checkpoint(run) / "model").eval()
    best = None
    for name, model in models.items():
        found = measured(model, data, count=COUNT, at_once=COUNT)
        terms = found.by_time.mean(dim=0)
        best = terms if best is None else best
        bound, wrong = mean_and_error(found.nats), mean_and_error(100 * found.errors)
        print(f"{name}: {bound[0]:.2f} ± {bound[1]:.2f} nats, {wrong[0]:.1f} ± {wrong[1]:.1f} %")
        print("  over the ideal at t = 1…T:", *(f"{each:.2f}" for each in (terms - best).tolist()))


if __name__ == "__main__":
    main(sys.argv[1:])
