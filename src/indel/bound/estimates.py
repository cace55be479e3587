"""Bounds on −log p_θ(x_0) of single sequences, and their mean over a data set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from safetensors.torch import load, save
from torch import Tensor

from indel.batch import Batch
from indel.randomness import RowSeeds
from indel.sharing import ALONE, Processes


class BoundParts(NamedTuple):
    """What a bound is made of, in nats; the sum is the bound."""

    tokens: Float[Tensor, " batch"]
    """−log p_θ of the tokens' values, over all steps."""
    deletions: Float[Tensor, " batch"]
    """−log p_θ of the numbers of DELs."""
    forward: Float[Tensor, " batch"]
    """log q(x_{1:T−1} | x_T, x_0), at most 0: what the chain says besides x_0, given back."""
    limit: Float[Tensor, " batch"]
    """−log P(|x_t| ≤ max | x_{t−1}), at least 0: the price of the length limit."""
    length: Float[Tensor, " batch"]
    """log q(x_T|x_0) / p_θ(x_T): the mean is the divergence of the lengths |x_T|, at least 0."""
    importance: Float[Tensor, " batch"]
    """What k chains together gain over the mean of each alone: at most 0, and 0 for k = 1."""


@dataclass(frozen=True)
class SequenceBounds:
    """An unbiased estimate of the bound for each sequence of a batch."""

    nats: Float[Tensor, " batch"]
    parts: BoundParts
    by_time: Float[Tensor, "batch times"]
    """The term of step t in column t − 1; 0 where it was not evaluated."""
    evaluated: Bool[Tensor, "batch times"]
    """Which t were evaluated."""
    lengths: Int[Tensor, " batch"]
    """|x_0|."""


class Estimate(NamedTuple):
    """A mean and its standard error."""

    mean: float
    standard_error: float
    """NaN where fewer than two sequences, or one of probability zero, tell nothing of it."""

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit."""
        return Estimate(self.mean * factor, self.standard_error * factor)

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.standard_error:.2g}"


@dataclass(frozen=True)
class Moments:
    """Count, sum and squared deviations of several quantities, gathered batch by batch.

    M = M_a + M_b + (x̄_b − x̄_a)² n_a n_b / (n_a + n_b)   (Chan, Golub, LeVeque 1983)

    The sum and not the mean is kept: it stays +∞ where one bound is.

    >>> values, all_of_them = torch.tensor([[1.0], [2.0], [6.0]]), torch.ones(3, 1).bool()
    >>> parts = [Moments.of(values[:1], all_of_them[:1]), Moments.of(values[1:], all_of_them[1:])]
    >>> parts[0].merge(parts[1]).estimates()[0].mean
    3.0
    """

    count: Int[Tensor, " entries"]
    total: Float[Tensor, " entries"]
    squares: Float[Tensor, " entries"]
    """Σ (x − x̄)²."""

    @classmethod
    def of(
        cls, values: Float[Tensor, "rows entries"], valid: Bool[Tensor, "rows entries"]
    ) -> Moments:
        """The moments of the valid values of each column."""
        values, valid = _on_cpu(values), valid.cpu()
        count, total = valid.sum(dim=0), values.where(valid, 0.0).sum(dim=0)
        squares = (values - total / count).where(valid, 0.0).square().sum(dim=0)
        return cls(count, total, squares)

    def merge(self, other: Moments) -> Moments:
        """The moments of both together."""
        if len(self.count) != len(other.count):
            raise ValueError(
                f"these are moments of {len(self.count)} and of {len(other.count)} quantities"
            )
        count = self.count + other.count
        between = (other.mean - self.mean).square() * (self.count * other.count) / count
        # Where one side has seen nothing there is no difference between them.
        between = between.where((self.count > 0) & (other.count > 0), 0.0)
        return Moments(count, self.total + other.total, self.squares + other.squares + between)

    @property
    def mean(self) -> Float[Tensor, " entries"]:
        """x̄, NaN for a quantity never seen."""
        return self.total / self.count

    @property
    def standard_error(self) -> Float[Tensor, " entries"]:
        """√(Σ (x − x̄)² / (n (n − 1)))."""
        return (self.squares / (self.count * (self.count - 1))).sqrt()

    def estimates(self) -> list[Estimate]:
        """Mean and standard error of each."""
        pairs = zip(self.mean.tolist(), self.standard_error.tolist(), strict=True)
        return [Estimate(*pair) for pair in pairs]


@dataclass(frozen=True)
class BoundEstimate:
    """The mean bound on −log p_θ(x_0) over a data set.

    Standard errors are those of a mean over independent sequences. The noise of the chain and of
    the choice of t differs from sequence to sequence, so all of it is in them, next to what the
    sequences themselves differ by. Random t therefore need no correction; for the data set taken
    as given, not as a sample, they are too large rather than too small.

    Paper: Eq. (2), Tables 1 and 2
    """

    nats: Float[Tensor, " sequences"]
    """The bound of each sequence, in the order of the data; float64 on the CPU."""
    lengths: Int[Tensor, " sequences"]
    """|x_0| of each sequence."""
    part_moments: Moments
    """Of each of `BoundParts`."""
    time_moments: Moments
    """Of the terms of each step, over the sequences for which t was evaluated."""

    @classmethod
    def of(cls, bounds: SequenceBounds) -> BoundEstimate:
        """The estimate from one batch."""
        parts = torch.stack(bounds.parts, dim=1)
        return cls(
            _on_cpu(bounds.nats),
            bounds.lengths.to("cpu", copy=True),
            Moments.of(parts, torch.ones_like(parts, dtype=torch.bool)),
            Moments.of(bounds.by_time, bounds.evaluated),
        )

    def merge(self, other: BoundEstimate) -> BoundEstimate:
        """The estimate from both, the sequences of `other` after those of this one."""
        return BoundEstimate(
            torch.cat([self.nats, other.nats]),
            torch.cat([self.lengths, other.lengths]),
            self.part_moments.merge(other.part_moments),
            self.time_moments.merge(other.time_moments),
        )

    def to_bytes(self) -> bytes:
        """The same as bytes (safetensors), for another process."""
        whole = {"nats": self.nats, "lengths": self.lengths}
        moments = {"part": self.part_moments, "time": self.time_moments}
        parts = {
            f"{name}.{key}": x for name, each in moments.items() for key, x in vars(each).items()
        }
        return save({name: tensor.contiguous() for name, tensor in (whole | parts).items()})

    @classmethod
    def from_bytes(cls, content: bytes) -> BoundEstimate:
        """What `to_bytes` has written."""
        tensors = load(content)
        part, time = (
            Moments(*(tensors[f"{name}.{field.name}"] for field in fields(Moments)))
            for name in ("part", "time")
        )
        return cls(tensors["nats"], tensors["lengths"], part, time)

    def __len__(self) -> int:
        return len(self.nats)

    @property
    def nats_per_sequence(self) -> Estimate:
        """The mean bound."""
        column = self.nats[:, None]
        return Moments.of(column, torch.ones_like(column, dtype=torch.bool)).estimates()[0]

    @property
    def bits_per_sequence(self) -> Estimate:
        """The mean bound in bits."""
        return self.nats_per_sequence.scaled(1.0 / math.log(2.0))

    @property
    def nats_per_token(self) -> Estimate:
        """R = Σ nats / Σ |x_0|; its error is that of the mean of nats − R·|x_0| (delta method).

        A ratio of sums: long sequences count more, and empty ones do no harm.
        """
        ratio = self.nats.sum() / self.lengths.sum()
        rest = (self.nats - ratio * self.lengths)[:, None]
        error = Moments.of(rest, torch.ones_like(rest, dtype=torch.bool)).estimates()[0]
        mean_length = float(self.lengths.double().mean())
        if mean_length == 0.0:
            return Estimate(float(ratio), math.nan)
        return Estimate(float(ratio), error.standard_error / mean_length)

    @property
    def bits_per_token(self) -> Estimate:
        """The bound in bits for each token of x_0: on text8, bits per character."""
        return self.nats_per_token.scaled(1.0 / math.log(2.0))

    @property
    def by_part(self) -> dict[str, Estimate]:
        """The mean of each part; their sum is the mean bound."""
        return dict(zip(BoundParts._fields, self.part_moments.estimates(), strict=True))

    @property
    def by_time(self) -> list[Estimate]:
        """The mean term of step t at index t − 1, over the sequences for which it was evaluated.

        KL(q(x_{t−1}|x_t,x_0) ‖ p_θ(x_{t−1}|x_t)), and what the length limit costs in that step.
        With every t evaluated these and the parts `length` and `importance` sum to the mean bound;
        with random t only in expectation.
        """
        return self.time_moments.estimates()

    def __str__(self) -> str:
        return f"{self.nats_per_sequence} nats, {self.bits_per_token} bits/token"


BoundFunction = Callable[[Batch, RowSeeds], SequenceBounds]
"""A bound for each sequence x_0 of a batch, from noise."""


def accumulate(
    bound: BoundFunction,
    batches: Iterable[Batch],
    *,
    seed: int,
    device: torch.device | str = "cpu",
    first_row: int = 0,
    progress: bool | None = None,
    processes: Processes = ALONE,
) -> BoundEstimate:
    """The mean of any bound over a data set, with one seed per sequence from (seed, its number).

    Several processes share the batches, and each gets the estimate of all.
    """

    def numbered() -> Iterator[tuple[int, Batch]]:
        row = first_row
        for batch in batches:
            yield row, batch
            row += len(batch)

    def estimated(item: tuple[int, Batch]) -> BoundEstimate:
        row, batch = item
        noise = RowSeeds(_row_seeds(seed, row, len(batch)).to(device))
        with torch.inference_mode():
            return BoundEstimate.of(bound(batch.to(device), noise))

    estimate: BoundEstimate | None = None
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    shown = console.is_terminal and processes.is_first if progress is None else progress
    total = len(batches) if isinstance(batches, Sized) else None
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not shown) as bar:
        task = bar.add_task("bound", total=total)
        for new in processes.map(
            estimated,
            numbered(),
            to_bytes=BoundEstimate.to_bytes,
            from_bytes=BoundEstimate.from_bytes,
        ):
            estimate = new if estimate is None else estimate.merge(new)
            bar.update(task, advance=1, description=str(estimate))
    if estimate is None or not len(estimate):
        raise ValueError("batches must hold at least one sequence, got none")
    return estimate


def _row_seeds(seed: int, start: int, count: int) -> Int[Tensor, " {count}"]:
    """Consecutive numbers from an origin that the seed scatters over 63 bits."""
    origin = torch.empty((), dtype=torch.int64)
    origin.random_(generator=torch.Generator().manual_seed(seed))
    return torch.arange(start, start + count) + origin  # wraps around


def _on_cpu(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """A float64 copy, no tensor of an inference mode. First moved: not all devices have float64."""
    return values.detach().cpu().to(torch.float64, copy=True)
