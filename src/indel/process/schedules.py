"""Noise schedules: which step is taken at each time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from indel.checks import integer
from indel.process import checks
from indel.process.jumps import Jump
from indel.process.stacks import check_dense_stack
from indel.process.steps import Step, inserted_law
from indel.process.tables import Tables
from indel.process.transitions import (
    IdentityTransition,
    MixtureTransition,
    Transition,
    UniformTransition,
)

TransitionFamily = Callable[[int, float], Transition]
"""Makes a transition from (vocab_size, prob_keep), e.g. `UniformTransition`."""
TimeFunction = Callable[[float], float]
"""A function of the time s ∈ [0, 1]."""


class Schedule:
    """The forward process: steps 1…T, and the jumps 0…T that follow from them.

    q(x_{1:T} | x_0) = Π_t q(x_t | x_{t−1})

    Args:
        steps: Steps 1…T over one vocabulary.

    >>> schedule = Schedule.paper(vocab_size=28, num_steps=32, rate=0.6)
    >>> schedule.num_steps, round(schedule.jump(31).keep, 12)
    (32, 0.4)

    Reference: Johnson et al. 2021, Sec. 3.1 and App. B
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = tuple(steps)
        if not self._steps:
            raise ValueError("steps must hold at least one step")
        for t, step in enumerate(self._steps, start=1):
            if step.vocab_size != self.vocab_size:
                raise ValueError(
                    f"all steps must have the same vocab_size; step 1 has {self.vocab_size}, "
                    f"step {t} has {step.vocab_size}"
                )
        if not all(isinstance(step.transition, MixtureTransition) for step in self._steps):
            check_dense_stack(self.num_steps + 1, self.vocab_size)
        jumps = [Jump.identity(self.vocab_size)]
        for step in self._steps:
            jumps.append(jumps[-1].then(step))
        self._jumps = tuple(jumps)
        self._tables: dict[tuple[torch.device, torch.dtype], Tables] = {}

    @classmethod
    def paper(
        cls,
        vocab_size: int,
        num_steps: int,
        rate: float,
        *,
        transition: TransitionFamily = UniformTransition,
        inserted: Float[Tensor, " tokens"] | None = None,
        delete_inserted: float | None = None,
    ) -> Schedule:
        """The paper's schedule for insert/delete rate r; r = 0 is the in-place baseline.

        After step t < T a share r·u_t of x_0 is deleted and replaced by as many inserts, and a
        share u_t of the rest has been drawn anew, u_t = 0.1 t/(T−1) + 0.9 (t/(T−1))².
        Step T deletes everything. `delete_inserted=0.0` spares a token in the step after it was
        inserted, as the appendix words it; by default all tokens are deleted alike.

        Args:
            vocab_size: The number K of regular tokens.
            num_steps: T.
            rate: The share of x_0 that is deleted by step T − 1, and replaced by inserts.
            transition: Makes A_t from (vocab_size, prob_keep).
            inserted: The distribution π of a new token; None: uniform.
            delete_inserted: The probability that a token is deleted in the step after it was
                inserted; None: as all others.

        Returns:
            The schedule, which ends in nothing but DEL.

        >>> schedule = Schedule.paper(vocab_size=28, num_steps=32, rate=0.6)
        >>> round(schedule.jump(31).keep, 12)
        0.4

        Paper: App. C.2
        """
        rate = checks.probability("rate", rate)
        return cls.interpolate(
            vocab_size,
            num_steps,
            deleted=lambda time: rate * paper_noise(time),
            replaced=paper_noise,
            transition=transition,
            inserted=inserted,
            delete_inserted=delete_inserted,
        )

    @classmethod
    def interpolate(
        cls,
        vocab_size: int,
        num_steps: int,
        *,
        deleted: TimeFunction,
        replaced: TimeFunction,
        relative_length: TimeFunction = lambda time: 1.0,
        transition: TransitionFamily = UniformTransition,
        inserted: Float[Tensor, " tokens"] | None = None,
        delete_inserted: float | None = None,
    ) -> Schedule:
        """A schedule from functions of the time s = t/(T−1), then a step T that deletes all.

        deleted(s): the share of x_0 that has been deleted; replaced(s): of what is left, the
        share whose value was drawn anew; relative_length(s): tokens at s for each one of x_0,
        markers DEL not counted (inserts at the ends and `delete_inserted` come on top). So
        d_t = 1 − (1−D_t)/(1−D_{t−1}), keep_t = (1−u_t)/(1−u_{t−1}),
        α_t/(1−α_t) = ℓ_t/ℓ_{t−1} − (1−d_t).

        Args:
            vocab_size: The number K of regular tokens.
            num_steps: T.
            deleted: D(s), from 0 on, never falling.
            replaced: u(s), from 0 on, never falling.
            relative_length: ℓ(s), from 1 on.
            transition: Makes A_t from (vocab_size, prob_keep).
            inserted: The distribution π of a new token; None: uniform.
            delete_inserted: The probability that a token is deleted in the step after it was
                inserted; None: as all others.

        Returns:
            The schedule, which ends in nothing but DEL.

        >>> schedule = Schedule.interpolate(4, 5, deleted=lambda s: s / 2, replaced=lambda s: s)
        >>> round(schedule.jump(4).keep, 12)
        0.5

        Reference: docs/process.md
        """
        checks.vocab_size(vocab_size)
        integer("num_steps", num_steps, least=2)
        times = [t / (num_steps - 1) for t in range(num_steps)]
        survived = _never_rises("deleted", deleted, times)
        unreplaced = _never_rises("replaced", replaced, times)
        lengths = [_length(relative_length, time) for time in times]
        if lengths[0] != 1.0:
            raise ValueError(f"relative_length(0.0) must be 1, got {lengths[0]}")
        # One law for all steps, so that its K numbers are stored once and compared by identity.
        law = inserted_law(inserted, vocab_size)
        make = partial(Step, inserted=law, delete_inserted=delete_inserted)
        steps = []
        for t in range(1, num_steps):
            kept = _ratio(survived[t], survived[t - 1])
            step_transition = transition(vocab_size, _ratio(unreplaced[t], unreplaced[t - 1]))
            insert = _insert_for(lengths[t] / lengths[t - 1] - kept, times[t])
            steps.append(make(insert, 1.0 - kept, step_transition))
        steps.append(Step(0.0, 1.0, IdentityTransition(vocab_size), law))
        return cls(steps)

    @property
    def num_steps(self) -> int:
        """T."""
        return len(self._steps)

    @property
    def vocab_size(self) -> int:
        """The number K of regular tokens."""
        return self._steps[0].vocab_size

    @property
    def ins(self) -> int:
        """The token INS = K that marks an insert."""
        return self.vocab_size

    @property
    def del_(self) -> int:
        """The token DEL = K + 1 that marks a deletion."""
        return self.vocab_size + 1

    def step(self, t: int) -> Step:
        """q(x_t | x_{t−1}) for t = 1…T."""
        if not 1 <= t <= self.num_steps:
            raise ValueError(f"t must lie in 1…{self.num_steps} for a step, got {t}")
        return self._steps[t - 1]

    def jump(self, t: int) -> Jump:
        """q(x_t | x_0) for t = 0…T; t = 0 is the identity."""
        if not 0 <= t <= self.num_steps:
            raise ValueError(f"t must lie in 0…{self.num_steps} for a jump, got {t}")
        return self._jumps[t]

    def check_ends_empty(self) -> None:
        """Refuse a process whose x_T says more than its length, for those who start from it."""
        last = self.step(self.num_steps)
        if (last.delete, last.delete_inserted, last.insert) != (1.0, 1.0, 0.0):
            raise ValueError(
                f"the last step must delete everything and insert nothing, so that only the "
                f"length of x_T is left to learn; got {last}"
            )

    def tables(self, device: torch.device, dtype: torch.dtype | None = None) -> Tables:
        """All parameters on a device; float64 unless the device has none."""
        if dtype is None:
            dtype = torch.float32 if device.type == "mps" else torch.float64
        key = (device, dtype)
        if key not in self._tables:
            cpu = (torch.device("cpu"), torch.float64)
            if cpu not in self._tables:
                self._tables[cpu] = Tables.of(self._steps, self._jumps)
            if key != cpu:
                self._tables[key] = self._tables[cpu].to(device, dtype)
        return self._tables[key]

    def describe(self) -> list[NoiseLevel]:
        """What each step 1…T does, for a table or for Figure 7.

        Paper: Fig. 7
        """
        return [NoiseLevel.of(t, self.step(t), self.jump(t)) for t in range(1, self.num_steps + 1)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: every step with its exact numbers, whatever made them."""
        return {"steps": [step.to_dict() for step in self._steps]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Schedule:
        """The schedule written by `to_dict`."""
        try:
            return cls(Step.from_dict(step) for step in record["steps"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is no record of a schedule: {error!r}") from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Schedule(num_steps={self.num_steps}, vocab_size={self.vocab_size})"


@dataclass(frozen=True)
class NoiseLevel:
    """One line of a schedule: probabilities of step t and what is left of x_0 after it."""

    t: int
    insert: float
    """α_t"""
    delete: float
    """Q_t[x, DEL]"""
    delete_inserted: float
    """Q_t[INS, DEL]"""
    copy: float
    """Q_t[x, x], averaged over x"""
    replace: float
    """Σ_{y≠x} Q_t[x, y], averaged over x"""
    survived: float
    """keep_t, the share of x_0 never deleted"""
    unchanged: float
    """keep_t·Ā_t[x, x], averaged over x: the share of x_0 still there as it was"""

    @classmethod
    def of(cls, t: int, step: Step, jump: Jump) -> NoiseLevel:
        """Read one time off its step and jump."""
        copy = (1.0 - step.delete) * _mean_diagonal(step.transition)
        return cls(
            t=t,
            insert=step.insert,
            delete=step.delete,
            delete_inserted=step.delete_inserted,
            copy=copy,
            replace=1.0 - step.delete - copy,
            survived=jump.keep,
            unchanged=jump.keep * _mean_diagonal(jump.kept),
        )


def paper_noise(time: float) -> float:
    """u = 0.1 s + 0.9 s² at s = t/(T−1): little noise near the data, more towards T.

    Args:
        time: s, from 0 to 1.

    Returns:
        The share of tokens whose value was drawn anew.

    >>> round(paper_noise(0.5), 6)
    0.275

    Paper: App. C.2
    """
    return 0.1 * time + 0.9 * time**2


def _mean_diagonal(transition: Transition) -> float:
    if isinstance(transition, MixtureTransition):
        return transition.prob_keep + transition.drawn.mass / transition.vocab_size
    return float(transition.matrix().diagonal().mean())


def _never_rises(name: str, share: TimeFunction, times: list[float]) -> list[float]:
    """1 − share at each time, checked to start at 1 and never to rise."""
    left = [1.0 - checks.probability(f"{name}({time})", share(time)) for time in times]
    if left[0] != 1.0:
        raise ValueError(f"{name}(0.0) must be 0, got {1.0 - left[0]}")
    for before, after, time in zip(left, left[1:], times[1:], strict=False):
        if after > before:
            raise ValueError(
                f"{name} must not fall with time; at {time:.6g} it is {1 - after}, "
                f"one step earlier {1 - before}"
            )
    return left


def _length(relative_length: TimeFunction, time: float) -> float:
    length = float(relative_length(time))
    if not 0.0 < length < float("inf"):
        raise ValueError(f"relative_length({time}) must be a positive number, got {length!r}")
    return length


def _insert_for(per_token: float, time: float) -> float:
    """α with α/(1−α) = the wanted number of inserts for each token of x_{t−1}."""
    # Rounding of the subtraction must not turn "none" into a negative number.
    if per_token < -1e-12:
        raise ValueError(
            f"at time {time:.6g} the length would have to fall by more than what is deleted; "
            f"raise relative_length there by {-per_token:.3g} or delete more"
        )
    per_token = max(per_token, 0.0)
    return per_token / (1.0 + per_token)


def _ratio(after: float, before: float) -> float:
    """after / before; once nothing is left, all steps keep nothing."""
    return after / before if before > 0.0 else 0.0
