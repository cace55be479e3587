"""Which time t each sequence of a batch is trained at."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.randomness import Randomness, index_at, uniform


class TimeDistribution:
    """P(t) for t = 1…T and the weight of a term drawn at t; draws are stratified over the batch.

    With the weights 1/P(t), the default, the mean over t is the bound, whatever P(t).

    >>> law = TimeDistribution.uniform(4)
    >>> t, weight = law.draw(4, generator=torch.Generator().manual_seed(0))
    >>> sorted(t.tolist()), weight.tolist()
    ([1, 2, 3, 4], [4.0, 4.0, 4.0, 4.0])
    """

    def __init__(
        self, prob: Float[Tensor, " times"], weight: Float[Tensor, " times"] | None = None
    ) -> None:
        if prob.dim() != 1 or not len(prob) or not bool(((prob > 0) & prob.isfinite()).all()):
            raise ValueError(f"every time needs a positive probability, got {prob.tolist()}")
        self.prob = prob / prob.sum()
        self.weight = 1.0 / self.prob if weight is None else weight

    @classmethod
    def uniform(cls, num_steps: int, *, device: torch.device | str = "cpu") -> TimeDistribution:
        """Every time alike."""
        return cls(torch.ones(num_steps, dtype=torch.float64, device=device))

    @classmethod
    def low_noise(cls, num_steps: int, *, device: torch.device | str = "cpu") -> TimeDistribution:
        """P(t) ∝ T + 1 − t, all terms alike: no bound, but more of what repair asks the model.

        >>> TimeDistribution.low_noise(3).prob.tolist()
        [0.5, 0.3333333333333333, 0.16666666666666666]
        """
        prob = torch.arange(num_steps, 0, -1, dtype=torch.float64, device=device)
        return cls(prob, torch.full_like(prob, num_steps))

    def draw(
        self, rows: int, *, generator: Randomness
    ) -> tuple[Int[Tensor, " {rows}"], Float[Tensor, " {rows}"]]:
        """A time for each row and its weight, by default 1/P(t): the mean over t is then a sum.

        Row π(i) takes its noise from the i-th of `rows` equal parts of [0, 1): over a batch the
        times are spread evenly, and each row alone has the law P(t).
        """
        noise = uniform(generator, rows, 2, dtype=self.prob.dtype)
        part = torch.argsort(noise[:, 1]).argsort()
        index = index_at(self.prob.cumsum(dim=0), (part + noise[:, 0]) / max(rows, 1))
        return index + 1, self.weight[index]


class TermSizes:
    """A running estimate of the size of each term, to draw t in proportion to it."""

    def __init__(self, num_steps: int, *, memory: float = 0.99, floor: float = 0.1) -> None:
        self.square = torch.ones(num_steps, dtype=torch.float64)
        self.memory = memory
        self.floor = floor

    @torch.no_grad()
    def update(self, t: Int[Tensor, " batch"], terms: Float[Tensor, " batch"]) -> None:
        """Take in the terms L_{t−1} seen at times t."""
        for time in torch.unique(t).tolist():
            seen = terms[t == time].double().square().mean()
            old = self.square[time - 1]
            self.square[time - 1] = self.memory * old + (1.0 - self.memory) * seen.cpu()

    def law(self) -> TimeDistribution:
        """P(t) ∝ √E[L_{t−1}²], mixed with the uniform law so that no time is forgotten."""
        size = self.square.sqrt()
        share = size / size.sum()
        return TimeDistribution((1.0 - self.floor) * share + self.floor / len(share))
