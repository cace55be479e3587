"""Weights on the regular tokens, kept as a mixture of a few fixed distributions.

Identity, uniform and absorbing transitions map such a mixture to one of the same parts, so a
schedule over 50,000 tokens and 1,000 steps is a table of mixture weights and no vectors at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from indel.process import checks


@dataclass(frozen=True)
class Uniform:
    """Every token alike."""


@dataclass(frozen=True)
class Point:
    """One token for sure."""

    token: int


@dataclass(frozen=True, eq=False)
class Given:
    """Any distribution; equal by content, so that steps that share one store it once."""

    prob: Float[Tensor, " tokens"]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Given):
            return False
        # Mostly the very same vector, and K numbers are many to compare.
        return self.prob is other.prob or torch.equal(self.prob, other.prob)

    def __hash__(self) -> int:
        return hash((len(self.prob), float(self.prob[0]), float(self.prob[-1])))


Part = Uniform | Point | Given


@dataclass(frozen=True)
class Measure:
    """Non-negative weights on K tokens, Σ_k weights[k] · part_k."""

    vocab_size: int
    weights: Mapping[Part, float]

    def __post_init__(self) -> None:
        for part, weight in self.weights.items():
            if not 0.0 <= weight < float("inf"):
                raise ValueError(f"the weight of {part} must be at least 0, got {weight!r}")
        # One order, and nothing of weight 0: sums come out the same however a measure was made.
        parts = sorted(self.weights.items(), key=lambda item: _rank(item[0]))
        object.__setattr__(self, "weights", {part: weight for part, weight in parts if weight})

    @classmethod
    def zero(cls, vocab_size: int) -> Measure:
        """No weight anywhere."""
        return cls(vocab_size, {})

    @classmethod
    def uniform(cls, vocab_size: int, mass: float = 1.0) -> Measure:
        """The same weight on every token."""
        return cls(vocab_size, {Uniform(): mass})

    @classmethod
    def point(cls, vocab_size: int, token: int, mass: float = 1.0) -> Measure:
        """All weight on one token."""
        return cls(vocab_size, {Point(token): mass})

    @classmethod
    def given(cls, values: Float[Tensor, " tokens"]) -> Measure:
        """The weights of a vector."""
        mass = float(values.sum())
        parts: dict[Part, float] = {Given(values / mass): mass} if mass > 0 else {}
        return cls(len(values), parts)

    @property
    def mass(self) -> float:
        """The sum of all weights."""
        return sum(self.weights.values())

    def __add__(self, other: Measure) -> Measure:
        total = dict(self.weights)
        for part, weight in other.weights.items():
            total[part] = total.get(part, 0.0) + weight
        return Measure(self.vocab_size, total)

    def __mul__(self, factor: float) -> Measure:
        return Measure(self.vocab_size, {p: w * factor for p, w in self.weights.items()})

    def dense(self) -> Float[Tensor, " tokens"]:
        """The weights as a vector of float64."""
        values = torch.zeros(self.vocab_size, dtype=torch.float64)
        for part, weight in self.weights.items():
            match part:
                case Uniform():
                    values += weight / self.vocab_size
                case Point(token):
                    values[token] += weight
                case Given(prob):
                    values += weight * prob
        return values

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, exact."""
        record: dict[str, Any] = {"vocab_size": self.vocab_size, "uniform": 0.0, "points": []}
        for part, weight in self.weights.items():
            match part:
                case Uniform():
                    record["uniform"] = weight
                case Point(token):
                    record["points"].append([token, weight])
                case Given(prob):
                    record.setdefault("given", []).append([weight, prob.tolist()])
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Measure:
        """The measure written by `to_dict`."""
        size = checks.vocab_size(record["vocab_size"])
        weights: dict[Part, float] = {Uniform(): record["uniform"]}
        for token, weight in record["points"]:
            weights[Point(checks.token("point", token, size))] = weight
        for weight, prob in record.get("given", []):
            values = torch.tensor(prob, dtype=torch.float64)
            if values.shape != (size,):
                raise ValueError(f"given must have {size} entries, got {len(prob)}")
            weights[Given(checks.distribution("given", values))] = weight
        return cls(size, weights)


def _rank(part: Part) -> tuple[int, int]:
    """Uniform first, then points by token, then what is given, as it came."""
    match part:
        case Uniform():
            return 0, 0
        case Point(token):
            return 1, token
        case Given():
            return 2, 0
