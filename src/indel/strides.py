"""Several steps of q taken for one, so that the reverse process calls the network less often.

Times τ_1 < … < τ_m are kept, the others skipped. Step k of the coarse process does to the values
what steps τ_{k−1}+1 … τ_k of q do. Where the skipped steps insert and delete nothing, as in the
in-place process, that is all there is to say and the coarse process *is* q seen at the times kept.

Otherwise it is an approximation. A token that is deleted in a skipped step u, τ_k < u < τ_{k+1},
is alive at τ_k and gone at τ_{k+1}; its value cannot be told from what the network predicts at
τ_{k+1}, only that it was there. One inserted in such a step is there at τ_{k+1} and not at τ_k. The
coarse process makes these insertions and deletions at τ_k already: there the former token is a DEL,
whose value the network predicts in the next call, and the latter an INS. What is deleted or
inserted before each call, and so what the network is asked for, is the same as in q. The error is
that it sees a DEL where q still has a value, and more DELs than in training.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import prod

from indel.process import Schedule, Step
from indel.process.jumps import Jump
from indel.process.measures import Measure


@dataclass(frozen=True)
class Strides:
    """A coarse process: step k of `schedule` leads from time times[k−2] (or 0) to times[k−1]."""

    times: tuple[int, ...]
    """The times kept, rising: the network is called at each of them."""
    schedule: Schedule
    exact: bool
    """Whether the coarse process is q at these times, and not an approximation of it."""

    @classmethod
    def of(cls, schedule: Schedule, times: Iterable[int] | None = None) -> Strides:
        """Keep these times of a schedule; by default all of them, and the schedule as it is."""
        if times is None:
            times = range(1, schedule.num_steps + 1)
        kept = _checked(schedule, times)
        if kept == tuple(range(1, len(kept) + 1)):
            return cls(kept, schedule, exact=True)
        skipped = sorted(set(range(1, kept[-1])) - set(kept))
        return cls(
            kept,
            Schedule(_coarse_steps(schedule, kept)),
            exact=not any(_edits_length(schedule, time) for time in skipped),
        )


def evenly_spaced(last: int, calls: int) -> tuple[int, ...]:
    """So many times from `last` down to 1, as evenly as whole numbers can be.

    >>> evenly_spaced(10, 4)
    (10, 7, 4, 1)
    """
    if not 1 <= calls <= last:
        raise ValueError(f"calls must lie in 1…{last} (the last time), got {calls}")
    if calls == 1:
        return (last,)
    return tuple(last - round(i * (last - 1) / (calls - 1)) for i in range(calls))


def _checked(schedule: Schedule, times: Iterable[int]) -> tuple[int, ...]:
    kept = tuple(sorted(set(times)))
    if not kept:
        raise ValueError("times must hold at least one time")
    for time in (kept[0], kept[-1]):
        if not 1 <= time <= schedule.num_steps:
            raise ValueError(f"times must lie in 1…{schedule.num_steps}, got {time}")
    if any(_edits_length(schedule, time) for time in range(1, kept[0])):
        raise ValueError(
            f"times must go down to 1, not only to {kept[0]}: what is inserted and deleted before "
            f"could not be undone, because x_0 holds no INS and no DEL"
        )
    return kept


def _edits_length(schedule: Schedule, time: int) -> bool:
    """Whether a step inserts or deletes anything."""
    step = schedule.step(time)
    finds_ins = time > 1 and schedule.step(time - 1).insert > 0
    return step.insert > 0 or step.delete > 0 or (finds_ins and step.delete_inserted > 0)


def _coarse_steps(schedule: Schedule, kept: tuple[int, ...]) -> Iterable[Step]:
    """One step for each time kept: values change up to it, lengths until the next one.

    A = A_{τ_{k−1}+1} ⋯ A_{τ_k}     d = 1 − Π_{τ_k ≤ u < τ_{k+1}} (1 − d_u)
    α, π and d′ follow from the law of the inserts of steps τ_k … τ_{k+1}−1 that are not deleted
    among them.
    """
    inserts = Jump.identity(schedule.vocab_size)
    for (previous, time), after in zip(
        pairwise((0, *kept)), (*kept[1:], kept[-1] + 1), strict=True
    ):
        moves = [schedule.step(u).transition for u in range(previous + 1, time + 1)]
        survived = [1.0 - schedule.step(u).delete for u in range(time, after)]
        inserted, survived_first = _arrival(inserts, schedule.step(time))
        inserts = Jump.identity(schedule.vocab_size)
        for u in range(time, after):
            inserts = inserts.then(schedule.step(u))
        step = Step(
            insert=(inserts.inserts.mass + inserts.insert_ins) * inserts.loops,
            delete=1.0 - prod(survived),
            transition=reduce(lambda first, then: first.then(then), moves),
            delete_inserted=1.0 - survived_first * prod(survived[1:]),
        )
        step.inserted = inserted
        yield step


def _arrival(inserts: Jump, step: Step) -> tuple[Measure, float]:
    """What the inserts made since the time kept before have become, and how many are left."""
    total = inserts.inserts.mass + inserts.insert_ins
    if total == 0.0:
        return step.inserted, 1.0 - step.delete_inserted
    moved, _deleted = step.push(inserts.inserts, inserts.insert_ins)
    # Where nothing is left it does not matter what it has become.
    law = moved * (1.0 / moved.mass) if moved.mass > 0.0 else step.inserted
    return law, moved.mass / total
