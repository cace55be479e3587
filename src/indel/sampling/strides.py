"""Several steps of q taken for one, so that the reverse process calls the network less often.

Times τ_1 < … < τ_m are kept, the others skipped; step k of the coarse process leads from τ_{k−1} to
τ_k. It does to a token what steps τ_{k−1}+1 … τ_k of q do, but markers stay until its end: a
token deleted on the way is a DEL at τ_k, one inserted on the way an INS.

Where the skipped steps insert and delete nothing, as in the in-place process, there are no such
tokens and the coarse process *is* q, seen at the times kept: p_θ(x_s | x_t) goes through the exact
q(x_s | x_t, x_0). Otherwise it approximates q, in which the former token is gone at τ_k and the
latter has a value. It cannot be exact: the network does not predict the value at τ_{k−1} of a token
that was alive then and is gone at τ_k. As a DEL in x_{τ_k} that token gets its value from the call
at τ_k. So the network sees DELs where q has nothing, and counts the tokens deleted since τ_{k−1}
among those gone before.

Either way fewer calls cost quality, because the tokens of one step are drawn independently. With a
denoiser that knows the exact law of each edit, T = 12, the total variation between samples and data
is (`python studies/stride_costs.py` prints this; 20,000 samples)

    data            rate  12 calls   6 calls   4 calls   3 calls
    one a length     0.0     0.004     0.004     0.004     0.004
    one a length     0.4     0.031     0.051     0.080     0.110
    one a length     0.8     0.043     0.087     0.121     0.155
    correlated       0.0     0.331     0.365     0.378     0.420
    correlated       0.4     0.270     0.364     0.469     0.528
    correlated       0.8     0.272     0.393     0.527     0.570
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from indel.process import Schedule, Step
from indel.process.jumps import Jump
from indel.process.measures import Measure


@dataclass(frozen=True)
class Strides:
    """A coarse process: step k of `schedule` leads to times[k−1], from the time before it or 0."""

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
        skipped = set(range(1, kept[-1])) - set(kept)
        return cls(
            kept,
            Schedule(
                _stride(schedule, range(before + 1, time + 1))
                for before, time in pairwise((0, *kept))
            ),
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


def _stride(schedule: Schedule, times: range) -> Step:
    """One step for several: Q = Q_{s+1} ⋯ Q_t, with a DEL that stays where it is.

    A = A_{s+1} ⋯ A_t     d = 1 − Π (1 − d_u)     π = π_{s+1} A_{s+2} ⋯ A_t     d′ alike;
    α is the chance of one more among the inserts of a gap that are not deleted again.
    """
    steps = [schedule.step(time) for time in times]
    value, survived = Measure.zero(schedule.vocab_size), 1.0
    fresh, inserts = 1.0, Jump.identity(schedule.vocab_size)
    for step in steps:
        value, _deleted = step.push(value, fresh)
        fresh = 0.0
        survived *= 1.0 - step.delete
        inserts = inserts.then(step)
    return Step(
        insert=(inserts.inserts.mass + inserts.insert_ins) * inserts.loops,
        delete=1.0 - survived,
        transition=reduce(lambda first, then: first.then(then), (s.transition for s in steps)),
        # Where all are deleted it does not matter what they would have become.
        inserted=value * (1.0 / value.mass) if value.mass > 0.0 else steps[0].inserted,
        # Rounding must not leave more than there was.
        delete_inserted=1.0 - min(1.0, value.mass),
    )
