"""Measures and transitions of all times, stacked so that a batch looks them up at once.

Two forms with the same methods: mixtures, O(parts) numbers a time, and dense, K or K² numbers.
Times, tokens and noise broadcast against each other; `t` picks the time of each entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.process.measures import Given, Measure, Part, Point, Uniform
from indel.process.transitions import MixtureTransition, Transition

# (times × K × K) float64 numbers beyond this are refused.
MAX_STACK_BYTES = 4 * 1024**3


@runtime_checkable
class Measures(Protocol):
    """A measure on the regular tokens for each time."""

    @property
    def mass(self) -> Float[Tensor, " times"]:
        """The sum of all weights."""

    def prob(self, t: Int[Tensor, "..."], token: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The weight of a token."""

    def vectors(self, t: Int[Tensor, "..."]) -> Float[Tensor, "... tokens"]:
        """All weights."""

    def sample(self, t: Int[Tensor, "..."], noise: Float[Tensor, "..."]) -> Int[Tensor, "..."]:
        """A token drawn in proportion to its weight, from noise in [0, 1)."""

    def to(self, device: torch.device, dtype: torch.dtype) -> Measures:
        """The same on a device."""


@runtime_checkable
class Kernels(Protocol):
    """A transition matrix for each time."""

    def prob(
        self, t: Int[Tensor, "..."], x: Int[Tensor, "..."], y: Int[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        """P(x becomes y)."""

    def apply(
        self, t: Int[Tensor, " batch"], weights: Float[Tensor, "batch length tokens"]
    ) -> Float[Tensor, "batch length tokens"]:
        """Weights on x to weights on y, with one time a sequence."""

    def columns(self, t: Int[Tensor, "..."], y: Int[Tensor, "..."]) -> Float[Tensor, "... tokens"]:
        """P(x becomes y) for every x."""

    def sample(
        self, t: Int[Tensor, "..."], x: Int[Tensor, "..."], noise: Float[Tensor, "..."]
    ) -> Int[Tensor, "..."]:
        """What x becomes, from noise in [0, 1)."""

    def to(self, device: torch.device, dtype: torch.dtype) -> Kernels:
        """The same on a device."""


def stack_measures(measures: Sequence[Measure], *, dense: bool) -> Measures:
    """The measures of times 0, 1, …"""
    if dense:
        return DenseMeasures.of(torch.stack([measure.dense() for measure in measures]))
    return MixtureMeasures.of(measures)


def stack_transitions(transitions: Sequence[Transition], *, dense: bool) -> Kernels:
    """The transitions of times 0, 1, …"""
    if dense:
        size = len(transitions) * transitions[0].vocab_size ** 2 * 8
        if size > MAX_STACK_BYTES:
            raise ValueError(
                f"{len(transitions)} dense transitions over {transitions[0].vocab_size} tokens "
                f"need {size / 1024**3:.1f} GiB, more than the {MAX_STACK_BYTES / 1024**3:.0f} GiB "
                f"allowed: use fewer steps or tokens, or uniform or absorbing transitions"
            )
        return DenseKernels.of(torch.stack([each.matrix() for each in transitions]))
    mixtures = [each for each in transitions if isinstance(each, MixtureTransition)]
    keep = torch.tensor([each.prob_keep for each in mixtures], dtype=torch.float64)
    return MixtureKernels(keep, MixtureMeasures.of([each.drawn for each in mixtures]))


@dataclass(frozen=True)
class MixtureMeasures:
    """Σ_part weight[t, part] · part, with the parts in the order uniform, points, given."""

    vocab_size: int
    weights: Float[Tensor, "times parts"]
    points: tuple[int, ...]
    given: tuple[Float[Tensor, " tokens"], ...]

    @classmethod
    def of(cls, measures: Sequence[Measure]) -> MixtureMeasures:
        """Collect the parts that occur, and the weight of each at each time."""
        parts: dict[Part, int] = {Uniform(): 0}
        every = {part for measure in measures for part in measure.weights}
        points = sorted(part.token for part in every if isinstance(part, Point))
        given = [part for part in every if isinstance(part, Given)]
        listed: list[Part] = [*map(Point, points), *given]
        parts |= {part: number for number, part in enumerate(listed, start=1)}
        weights = torch.zeros(len(measures), len(parts), dtype=torch.float64)
        for time, measure in enumerate(measures):
            for part, weight in measure.weights.items():
                weights[time, parts[part]] = weight
        size = measures[0].vocab_size
        return cls(size, weights, tuple(points), tuple(part.prob for part in given))

    @property
    def mass(self) -> Float[Tensor, " times"]:
        return self.weights.sum(dim=-1)

    def prob(self, t: Int[Tensor, "..."], token: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        weight = self.weights[t]
        total = weight[..., 0] / self.vocab_size + torch.zeros_like(token, dtype=weight.dtype)
        for part, point in enumerate(self.points, start=1):
            total = total + weight[..., part] * (token == point)
        for part, prob in enumerate(self.given, start=1 + len(self.points)):
            total = total + weight[..., part] * prob[token]
        return total

    def vectors(self, t: Int[Tensor, "..."]) -> Float[Tensor, "... tokens"]:
        every = torch.arange(self.vocab_size, device=t.device)
        return self.prob(t[..., None], every)

    def sample(self, t: Int[Tensor, "..."], noise: Float[Tensor, "..."]) -> Int[Tensor, "..."]:
        if not self.points and not self.given:
            return _index_below(noise, self.vocab_size)
        # One noise number serves twice: it picks the part, and where it fell within that part's
        # stretch is uniform again.
        share = (self.weights / self.mass[:, None]).nan_to_num(0.0)
        upper = share.cumsum(dim=-1)
        part = (noise[..., None] >= upper[t]).sum(dim=-1).clamp_max(self.weights.shape[1] - 1)
        width = torch.take_along_dim(share[t], part[..., None], dim=-1)[..., 0]
        lower = torch.take_along_dim(upper[t], part[..., None], dim=-1)[..., 0] - width
        rest = ((noise - lower) / width).nan_to_num(0.0).clamp(0.0, 1.0)
        token = _index_below(rest, self.vocab_size)
        for number, point in enumerate(self.points, start=1):
            token = torch.where(part == number, point, token)
        for number, prob in enumerate(self.given, start=1 + len(self.points)):
            drawn = _inverse_cumulative(prob.cumsum(dim=-1), rest)
            token = torch.where(part == number, drawn, token)
        return token

    def to(self, device: torch.device, dtype: torch.dtype) -> MixtureMeasures:
        given = tuple(prob.to(dtype).to(device) for prob in self.given)
        return MixtureMeasures(
            self.vocab_size, self.weights.to(dtype).to(device), self.points, given
        )


@dataclass(frozen=True)
class DenseMeasures:
    """One vector of K weights for each time."""

    weights: Float[Tensor, "times tokens"]
    cumulative: Float[Tensor, "times tokens"]
    mass: Float[Tensor, " times"]

    @classmethod
    def of(cls, weights: Float[Tensor, "times tokens"]) -> DenseMeasures:
        """Prepare the running sums that sampling searches."""
        return cls(weights, weights.cumsum(dim=-1), weights.sum(dim=-1))

    def prob(self, t: Int[Tensor, "..."], token: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        return self.weights[t, token]

    def vectors(self, t: Int[Tensor, "..."]) -> Float[Tensor, "... tokens"]:
        return self.weights[t]

    def sample(self, t: Int[Tensor, "..."], noise: Float[Tensor, "..."]) -> Int[Tensor, "..."]:
        return _inverse_cumulative(self.cumulative[t], noise)

    def to(self, device: torch.device, dtype: torch.dtype) -> DenseMeasures:
        return DenseMeasures(
            *(each.to(dtype).to(device) for each in (self.weights, self.cumulative, self.mass))
        )


@dataclass(frozen=True)
class MixtureKernels:
    """keep[t]·I + 1·drawn[t]ᵀ."""

    keep: Float[Tensor, " times"]
    drawn: MixtureMeasures

    def prob(
        self, t: Int[Tensor, "..."], x: Int[Tensor, "..."], y: Int[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        return self.keep[t] * (x == y) + self.drawn.prob(t, y)

    def apply(
        self, t: Int[Tensor, " batch"], weights: Float[Tensor, "batch length tokens"]
    ) -> Float[Tensor, "batch length tokens"]:
        kept = self.keep[t][:, None, None] * weights
        return kept + weights.sum(dim=-1, keepdim=True) * self.drawn.vectors(t)[:, None, :]

    def columns(self, t: Int[Tensor, "..."], y: Int[Tensor, "..."]) -> Float[Tensor, "... tokens"]:
        every = torch.arange(self.drawn.vocab_size, device=t.device)
        return self.prob(t[..., None], every, y[..., None])

    def sample(
        self, t: Int[Tensor, "..."], x: Int[Tensor, "..."], noise: Float[Tensor, "..."]
    ) -> Int[Tensor, "..."]:
        keep = self.keep[t]
        # Where the token is kept the division may be 0/0; that entry is not used.
        rest = ((noise - keep) / (1.0 - keep)).nan_to_num(0.0).clamp(0.0, 1.0)
        return torch.where(noise < keep, x, self.drawn.sample(t, rest))

    def to(self, device: torch.device, dtype: torch.dtype) -> MixtureKernels:
        return MixtureKernels(self.keep.to(dtype).to(device), self.drawn.to(device, dtype))


@dataclass(frozen=True)
class DenseKernels:
    """One K×K matrix for each time."""

    matrices: Float[Tensor, "times tokens tokens"]
    cumulative: Float[Tensor, "times tokens tokens"]

    @classmethod
    def of(cls, matrices: Float[Tensor, "times tokens tokens"]) -> DenseKernels:
        """Prepare the running sums that sampling searches."""
        return cls(matrices, matrices.cumsum(dim=-1))

    def prob(
        self, t: Int[Tensor, "..."], x: Int[Tensor, "..."], y: Int[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        return self.matrices[t, x, y]

    def apply(
        self, t: Int[Tensor, " batch"], weights: Float[Tensor, "batch length tokens"]
    ) -> Float[Tensor, "batch length tokens"]:
        return weights @ self.matrices[t]

    def columns(self, t: Int[Tensor, "..."], y: Int[Tensor, "..."]) -> Float[Tensor, "... tokens"]:
        every = torch.arange(self.matrices.shape[1], device=t.device)
        return self.matrices[t[..., None], every, y[..., None]]

    def sample(
        self, t: Int[Tensor, "..."], x: Int[Tensor, "..."], noise: Float[Tensor, "..."]
    ) -> Int[Tensor, "..."]:
        return _inverse_cumulative(self.cumulative[t, x], noise)

    def to(self, device: torch.device, dtype: torch.dtype) -> DenseKernels:
        return DenseKernels(
            self.matrices.to(dtype).to(device), self.cumulative.to(dtype).to(device)
        )


def _index_below(noise: Float[Tensor, "..."], size: int) -> Int[Tensor, "..."]:
    """A number in 0…size−1, all alike."""
    return (noise * size).long().clamp_max(size - 1)


def _inverse_cumulative(
    cumulative: Float[Tensor, "... tokens"], noise: Float[Tensor, "..."]
) -> Int[Tensor, "..."]:
    """The token at which the running sum passes noise · total; never one of weight 0."""
    total = cumulative[..., -1]
    # Rounding may lift the product to the total itself, past the last token that has weight.
    target = torch.minimum(noise * total, torch.nextafter(total, torch.zeros_like(total)))
    shape = (*target.shape, cumulative.shape[-1])
    found = torch.searchsorted(
        cumulative.expand(shape).contiguous(), target[..., None].contiguous(), right=True
    )
    return found[..., 0].clamp_max(cumulative.shape[-1] - 1)
