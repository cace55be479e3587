"""Measures and transitions of all times, stacked so that a batch looks them up at once.

Two forms with the same methods: mixtures, O(parts) numbers per time, and dense, K or K² numbers.
Times, tokens and noise broadcast against each other; `t` picks the time of each entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.log_space import finite, logaddexp, logsumexp, safe_log
from indel.process.measures import Given, Measure, Part, Point, Uniform
from indel.process.transitions import MixtureTransition, Transition
from indel.randomness import index_at

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

    def mixture(self) -> MixtureMeasures | None:
        """Itself as a mixture of a few parts; None for dense vectors."""

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

    def log_apply(
        self, t: Int[Tensor, " batch"], logp: Float[Tensor, "batch length tokens"]
    ) -> Float[Tensor, "batch length tokens"]:
        """`apply` for logarithms, safe where weights are tiny; differentiable."""

    def columns(self, t: Int[Tensor, "..."], y: Int[Tensor, "..."]) -> Float[Tensor, "... tokens"]:
        """P(x becomes y) for every x."""

    def sample(
        self, t: Int[Tensor, "..."], x: Int[Tensor, "..."], noise: Float[Tensor, "..."]
    ) -> Int[Tensor, "..."]:
        """What x becomes, from noise in [0, 1)."""

    def spike_and_background(self) -> SpikeAndBackground | None:
        """Itself as spike·I + 1·backgroundᵀ; None for dense matrices."""

    def to(self, device: torch.device, dtype: torch.dtype) -> Kernels:
        """The same on a device."""


def stack_measures(measures: Sequence[Measure], basis: Basis | None) -> Measures:
    """The measures of times 0, 1, …: as mixtures over a basis, or dense without one."""
    if basis is None:
        return DenseMeasures.of(torch.stack([measure.dense() for measure in measures]))
    return MixtureMeasures.of(measures, basis)


def stack_transitions(transitions: Sequence[Transition], basis: Basis | None) -> Kernels:
    """The transitions of times 0, 1, …: as mixtures over a basis, or dense without one."""
    if basis is None:
        check_dense_stack(len(transitions), transitions[0].vocab_size)
        return DenseKernels.of(torch.stack([each.matrix() for each in transitions]))
    mixtures = [each for each in transitions if isinstance(each, MixtureTransition)]
    keep = torch.tensor([each.prob_keep for each in mixtures], dtype=torch.float64)
    return MixtureKernels(keep, MixtureMeasures.of([each.drawn for each in mixtures], basis))


def check_dense_stack(count: int, vocab_size: int) -> None:
    """Refuse so many K×K matrices if they would not fit."""
    size = count * vocab_size**2 * 8
    if size > MAX_STACK_BYTES:
        raise ValueError(
            f"{count} dense transitions over {vocab_size} tokens need {size / 1024**3:.1f} GiB, "
            f"more than the {MAX_STACK_BYTES / 1024**3:.0f} GiB allowed: use fewer steps or "
            f"tokens, or uniform or absorbing transitions"
        )


@dataclass(frozen=True)
class Basis:
    """The parts that the measures of a schedule are mixtures of: uniform, points, given."""

    vocab_size: int
    points: tuple[int, ...]
    given: tuple[Float[Tensor, " tokens"], ...]
    dtype: torch.dtype = torch.float64

    @classmethod
    def of(cls, measures: Iterable[Measure], vocab_size: int) -> Basis:
        """Every part that occurs."""
        every = dict.fromkeys(part for measure in measures for part in measure.weights)
        points = sorted(part.token for part in every if isinstance(part, Point))
        given = tuple(part.prob for part in every if isinstance(part, Given))
        return cls(vocab_size, tuple(points), given)

    @property
    def parts(self) -> list[Part]:
        """The parts in the order of the weights."""
        return [Uniform(), *map(Point, self.points), *map(Given, self.given)]

    def densities(self, token: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape parts"]:
        """The probability of a token under each part."""
        columns = [torch.full_like(token, 1.0 / self.vocab_size, dtype=self.dtype)]
        columns += [(token == point).to(self.dtype) for point in self.points]
        columns += [prob[token] for prob in self.given]
        return torch.stack(columns, dim=-1)

    def to(self, device: torch.device, dtype: torch.dtype) -> Basis:
        """The same on a device."""
        given = tuple(prob.to(dtype).to(device) for prob in self.given)
        return Basis(self.vocab_size, self.points, given, dtype)


@dataclass(frozen=True)
class MixtureMeasures:
    """Σ_part weights[t, part] · part."""

    basis: Basis
    weights: Float[Tensor, "times parts"]

    @classmethod
    def of(cls, measures: Sequence[Measure], basis: Basis) -> MixtureMeasures:
        """The weight of each part at each time."""
        number = {part: number for number, part in enumerate(basis.parts)}
        weights = torch.zeros(len(measures), len(number), dtype=torch.float64)
        for time, measure in enumerate(measures):
            for part, weight in measure.weights.items():
                weights[time, number[part]] = weight
        return cls(basis, weights)

    @property
    def mass(self) -> Float[Tensor, " times"]:
        return self.weights.sum(dim=-1)

    def prob(self, t: Int[Tensor, "..."], token: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        # Part by part, so that the uniform one costs a look-up by time and nothing by token.
        weight, basis = self.weights[t], self.basis
        total = weight[..., 0] / basis.vocab_size
        for part, point in enumerate(basis.points, start=1):
            total = total + weight[..., part] * (token == point)
        for part, prob in enumerate(basis.given, start=1 + len(basis.points)):
            total = total + weight[..., part] * prob[token]
        return total + torch.zeros_like(token, dtype=total.dtype)

    def vectors(self, t: Int[Tensor, "..."]) -> Float[Tensor, "... tokens"]:
        every = torch.arange(self.basis.vocab_size, device=t.device)
        return self.prob(t[..., None], every)

    def sample(self, t: Int[Tensor, "..."], noise: Float[Tensor, "..."]) -> Int[Tensor, "..."]:
        basis = self.basis
        if not basis.points and not basis.given:
            return _index_below(noise, basis.vocab_size)
        # One noise number serves twice: it picks the part, and where it fell within that part's
        # stretch is uniform again.
        share = (self.weights / self.mass[:, None]).nan_to_num(0.0)
        upper = share.cumsum(dim=-1)
        # Rounding may leave the last sum just below 1: noise above it belongs to the last part
        # that has weight.
        upper = upper.masked_fill(upper >= upper[:, -1:], 1.0)
        part = (noise[..., None] >= upper[t]).sum(dim=-1).clamp_max(self.weights.shape[1] - 1)
        width = torch.take_along_dim(share[t], part[..., None], dim=-1)[..., 0]
        lower = torch.take_along_dim(upper[t], part[..., None], dim=-1)[..., 0] - width
        rest = ((noise - lower) / width).nan_to_num(0.0).clamp(0.0, 1.0)
        token = _index_below(rest, basis.vocab_size)
        for number, point in enumerate(basis.points, start=1):
            token = torch.where(part == number, point, token)
        for number, prob in enumerate(basis.given, start=1 + len(basis.points)):
            drawn = index_at(prob.cumsum(dim=-1), rest)
            token = torch.where(part == number, drawn, token)
        return token

    def mixture(self) -> MixtureMeasures | None:
        return self

    def to(self, device: torch.device, dtype: torch.dtype) -> MixtureMeasures:
        return MixtureMeasures(self.basis.to(device, dtype), self.weights.to(dtype).to(device))


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
        return index_at(self.cumulative[t], noise)

    def mixture(self) -> MixtureMeasures | None:
        return None

    def to(self, device: torch.device, dtype: torch.dtype) -> DenseMeasures:
        return DenseMeasures(
            *(each.to(dtype).to(device) for each in (self.weights, self.cumulative, self.mass))
        )


class SpikeAndBackground(NamedTuple):
    """A_t[x, y] = spike_t·[x = y] + background_t(y)."""

    spike: Float[Tensor, " times"]
    background: MixtureMeasures


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

    def log_apply(
        self, t: Int[Tensor, " batch"], logp: Float[Tensor, "batch length tokens"]
    ) -> Float[Tensor, "batch length tokens"]:
        keep = self.keep[t].to(logp.dtype).log()[:, None, None]
        drawn = self.drawn.vectors(t).to(logp.dtype).log()[:, None, :]
        return logaddexp(logp + keep, logsumexp(logp, dim=-1, keepdim=True) + drawn)

    def columns(self, t: Int[Tensor, "..."], y: Int[Tensor, "..."]) -> Float[Tensor, "... tokens"]:
        every = torch.arange(self.drawn.basis.vocab_size, device=t.device)
        return self.prob(t[..., None], every, y[..., None])

    def sample(
        self, t: Int[Tensor, "..."], x: Int[Tensor, "..."], noise: Float[Tensor, "..."]
    ) -> Int[Tensor, "..."]:
        keep = self.keep[t]
        # Where the token is kept the division may be 0/0; that entry is not used.
        rest = ((noise - keep) / (1.0 - keep)).nan_to_num(0.0).clamp(0.0, 1.0)
        return torch.where(noise < keep, x, self.drawn.sample(t, rest))

    def spike_and_background(self) -> SpikeAndBackground | None:
        return SpikeAndBackground(self.keep, self.drawn)

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

    def log_apply(
        self, t: Int[Tensor, " batch"], logp: Float[Tensor, "batch length tokens"]
    ) -> Float[Tensor, "batch length tokens"]:
        # A matrix product needs linear numbers: in the tables' own precision, from the largest on.
        top = finite(logp.detach().amax(dim=-1, keepdim=True))
        weights = self.apply(t, (logp - top).to(self.matrices.dtype).exp())
        return (safe_log(weights) + top).to(logp.dtype)

    def columns(self, t: Int[Tensor, "..."], y: Int[Tensor, "..."]) -> Float[Tensor, "... tokens"]:
        every = torch.arange(self.matrices.shape[1], device=t.device)
        return self.matrices[t[..., None], every, y[..., None]]

    def sample(
        self, t: Int[Tensor, "..."], x: Int[Tensor, "..."], noise: Float[Tensor, "..."]
    ) -> Int[Tensor, "..."]:
        return index_at(self.cumulative[t, x], noise)

    def spike_and_background(self) -> SpikeAndBackground | None:
        return None

    def to(self, device: torch.device, dtype: torch.dtype) -> DenseKernels:
        return DenseKernels(
            self.matrices.to(dtype).to(device), self.cumulative.to(dtype).to(device)
        )


def _index_below(noise: Float[Tensor, "..."], size: int) -> Int[Tensor, "..."]:
    """A number in 0…size−1, all alike."""
    return (noise * size).long().clamp_max(size - 1)
