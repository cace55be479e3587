"""All parameters of a schedule as tensors indexed by time, for batched look-ups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.process.jumps import Jump
from indel.process.measures import Measure
from indel.process.stacks import (
    Basis,
    Kernels,
    Measures,
    MixtureMeasures,
    SpikeAndBackground,
    stack_measures,
    stack_transitions,
)
from indel.process.steps import Step
from indel.process.transitions import IdentityTransition, MixtureTransition


@dataclass(frozen=True, eq=False)
class JumpTables:
    """The parameters of jump(t) at index t = 0…T; names as in `Jump`."""

    inserts: Measures
    insert_ins: Float[Tensor, " times"]
    insert_del: Float[Tensor, " times"]
    stop: Float[Tensor, " times"]
    loops: Float[Tensor, " times"]
    delete: Float[Tensor, " times"]
    delete_now: Float[Tensor, " times"]
    keep: Float[Tensor, " times"]
    kept: Kernels
    background: Measures
    replace_del: Float[Tensor, " times"]
    vocab_size: int

    @classmethod
    def of(cls, jumps: Sequence[Jump], basis: Basis | None) -> JumpTables:
        """Stack the jumps."""
        return cls(
            inserts=stack_measures([jump.inserts for jump in jumps], basis),
            insert_ins=_column(jump.insert_ins for jump in jumps),
            insert_del=_column(jump.insert_del for jump in jumps),
            stop=_column(jump.stop for jump in jumps),
            loops=_column(jump.loops for jump in jumps),
            delete=_column(jump.prob_delete for jump in jumps),
            delete_now=_column(jump.delete_now for jump in jumps),
            keep=_column(jump.keep for jump in jumps),
            kept=stack_transitions([jump.kept for jump in jumps], basis),
            background=stack_measures([jump.background for jump in jumps], basis),
            replace_del=_column(jump.replace_del for jump in jumps),
            vocab_size=jumps[0].vocab_size,
        )

    def insert_prob(self, t: Int[Tensor, "..."], z: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        """ᾱ_t[z] for any token z; 0 at padding."""
        regular = self.inserts.prob(t, z.clamp(0, self.vocab_size - 1))
        return self._by_kind(z, regular, self.insert_ins[t], self.insert_del[t])

    def replace_prob(
        self, t: Int[Tensor, "..."], x: Int[Tensor, "..."], z: Int[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        """Q̄_t[x, z] for a regular token x and any token z; 0 at padding."""
        inside = z.clamp(0, self.vocab_size - 1)
        regular = self.keep[t] * self.kept.prob(t, x.clamp_min(0), inside)
        regular = regular + self.background.prob(t, inside)
        zero = torch.zeros_like(self.keep[t])
        return self._by_kind(z, regular, zero, self.replace_del[t]).masked_fill(x < 0, 0.0)

    def spike_and_background(
        self, t: Int[Tensor, "..."], z: Int[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]] | None:
        """Q̄_t[x, z] = spike·[x = z] + background, 0 at padding; None for dense transitions."""
        kept = self.kept.spike_and_background()
        if kept is None:
            return None
        inside = z.clamp(0, self.vocab_size - 1)
        regular = self.keep[t] * kept.background.prob(t, inside)
        regular = regular + self.background.prob(t, inside)
        zero = torch.zeros_like(self.keep[t])
        background = self._by_kind(z, regular, zero, self.replace_del[t])
        spike = (self.keep * kept.spike)[t]
        return self._by_kind(z, spike.expand(z.shape), zero, zero), background

    def _by_kind(self, z: Tensor, regular: Tensor, ins: Tensor, del_: Tensor) -> Tensor:
        prob = torch.where(
            z < self.vocab_size, regular, torch.where(z == self.vocab_size, ins, del_)
        )
        return prob.masked_fill(z < 0, 0.0)


@dataclass(frozen=True)
class StepTables:
    """The parameters of step(t) at index t; index 0 is a step that does nothing."""

    insert: Float[Tensor, " times"]
    delete: Float[Tensor, " times"]
    delete_inserted: Float[Tensor, " times"]
    transition: Kernels
    inserted: Measures
    vocab_size: int

    @classmethod
    def of(cls, steps: Sequence[Step], basis: Basis | None) -> StepTables:
        """Stack the steps."""
        steps = [Step(0.0, 0.0, IdentityTransition(steps[0].vocab_size)), *steps]
        return cls(
            insert=_column(step.insert for step in steps),
            delete=_column(step.delete for step in steps),
            delete_inserted=_column(step.delete_inserted for step in steps),
            transition=stack_transitions([step.transition for step in steps], basis),
            inserted=stack_measures([step.inserted for step in steps], basis),
            vocab_size=steps[0].vocab_size,
        )

    def prob(
        self, t: Int[Tensor, "..."], y: Int[Tensor, "..."], z: Int[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        """Q_t[y, z] for y regular or INS and z regular or DEL."""
        is_ins = y == self.vocab_size
        deleted = torch.where(is_ins, self.delete_inserted[t], self.delete[t])
        inside = z.clamp(0, self.vocab_size - 1)
        value = torch.where(
            is_ins,
            self.inserted.prob(t, inside),
            self.transition.prob(t, y.clamp(0, self.vocab_size - 1), inside),
        )
        return torch.where(z > self.vocab_size, deleted, (1.0 - deleted) * value)

    def columns(
        self, t: Int[Tensor, "..."], z: Int[Tensor, "..."]
    ) -> Float[Tensor, "... previous"]:
        """Q_t[y, z] for every y that is regular or INS (last), z regular or DEL."""
        inside = z.clamp(0, self.vocab_size - 1)
        deleted, deleted_ins = self.delete[t][..., None], self.delete_inserted[t][..., None]
        regular = (1.0 - deleted) * self.transition.columns(t, inside)
        ins = (1.0 - deleted_ins) * self.inserted.prob(t, inside)[..., None]
        is_del = (z > self.vocab_size)[..., None]
        return torch.cat(
            [torch.where(is_del, deleted, regular), torch.where(is_del, deleted_ins, ins)], dim=-1
        )


class MixtureTables(NamedTuple):
    """The tables of a schedule in which every transition is spike·I + 1·backgroundᵀ."""

    jump: JumpTables
    step: StepTables
    transition: SpikeAndBackground
    """Of a step."""
    kept: SpikeAndBackground
    """Of a jump, for tokens that are neither deleted nor inserted again."""
    inserts: MixtureMeasures
    """ᾱ_t."""
    background: MixtureMeasures
    """What a jump replaces tokens with in another way."""


@dataclass(frozen=True)
class Tables:
    """Jumps and steps of one schedule."""

    jump: JumpTables
    step: StepTables

    @classmethod
    def of(cls, steps: Sequence[Step], jumps: Sequence[Jump]) -> Tables:
        """Stack them, as mixtures if every transition is one, otherwise dense."""
        basis = Basis.of(_measures(steps, jumps), steps[0].vocab_size)
        dense = not all(isinstance(step.transition, MixtureTransition) for step in steps)
        shared = None if dense else basis
        return cls(JumpTables.of(jumps, shared), StepTables.of(steps, shared))

    @property
    def dtype(self) -> torch.dtype:
        """The type all numbers are in."""
        return self.jump.stop.dtype

    def mixtures(self) -> MixtureTables | None:
        """The same with transitions as spike and background; None if any of them is dense."""
        jump, step = self.jump, self.step
        transition, kept = step.transition.spike_and_background(), jump.kept.spike_and_background()
        inserts, background = jump.inserts.mixture(), jump.background.mixture()
        if transition is None or kept is None or inserts is None or background is None:
            return None
        return MixtureTables(jump, step, transition, kept, inserts, background)

    def to(self, device: torch.device, dtype: torch.dtype) -> Tables:
        """Cast first, then move: not all devices have float64."""
        return Tables(_moved(self.jump, device, dtype), _moved(self.step, device, dtype))


def _measures(steps: Sequence[Step], jumps: Sequence[Jump]) -> Iterator[Measure]:
    """Every measure that the tables hold."""
    for step in steps:
        yield step.inserted
        if isinstance(step.transition, MixtureTransition):
            yield step.transition.drawn
    for jump in jumps:
        yield from (jump.inserts, jump.background)
        if isinstance(jump.kept, MixtureTransition):
            yield jump.kept.drawn


def _column(values: Iterable[float]) -> Float[Tensor, " times"]:
    return torch.tensor(list(values), dtype=torch.float64)


def _moved(tables: JumpTables | StepTables, device: torch.device, dtype: torch.dtype) -> Any:
    moved: dict[str, Any] = {}
    for field in fields(tables):
        value = getattr(tables, field.name)
        if isinstance(value, Tensor):
            moved[field.name] = value.to(dtype).to(device)
        elif not isinstance(value, int):
            moved[field.name] = value.to(device, dtype)
    return replace(tables, **moved)
