"""Sampling the forward process: jumps, single steps and whole chains."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch, spread
from indel.process import checks
from indel.process.edits import INSERTED, Edits
from indel.process.length_limit import draw_places
from indel.process.schedules import Schedule
from indel.process.tables import JumpTables
from indel.randomness import Randomness, select, split, uniform


class Corruption(NamedTuple):
    """A corrupted batch and how it came about."""

    x_t: Batch
    edits: Edits


def corrupt(
    schedule: Schedule,
    x_0: Batch,
    t: Int[Tensor, " batch"] | int,
    *,
    generator: Randomness,
    max_length: int | None = None,
) -> Corruption:
    """Sample x_t and the edit summary from q(x_t, a_{0→t} | x_0), all positions at once.

    Draw each token's fate (silently deleted, or emitted through Q̄_t), a geometric number of
    inserts at the start and after each emitted token, and place all by a cumulative sum.
    With `max_length`, the law is that given |x_t| ≤ max_length.

    Args:
        schedule: The forward process.
        x_0: Data: regular tokens alone.
        t: The time, one for all sequences or one each, 0…T.
        generator: A torch.Generator, or `RowSeeds` with one seed per sequence.
        max_length: The longest x_t that is allowed; None: any.

    Returns:
        `Corruption`: x_t and the edit summary.

    >>> schedule, x_0 = Schedule.paper(3, 8, 0.6), Batch.from_lists([[0, 1, 2, 1]])
    >>> x_t, edits = corrupt(schedule, x_0, 0, generator=torch.Generator())
    >>> x_t.to_lists(), edits.source.tolist()
    ([[0, 1, 2, 1]], [[0, 1, 2, 3]])

    Paper: Fig. 5 (middle)
    """
    checks.data("x_0", x_0, schedule.vocab_size)
    times = checks.times(t, x_0, first=0, last=schedule.num_steps)
    tables = schedule.tables(x_0.device).jump
    if max_length is not None:
        if max_length < 0:
            raise ValueError(f"max_length = {max_length} must be at least 0")
        stuck = (tables.delete[times] == 0) & (x_0.lengths > max_length)
        if bool(stuck.any()):
            row = int(stuck.nonzero()[0])
            raise ValueError(
                f"max_length = {max_length} cannot be kept: x_0 has {x_0.lengths[row].item()} "
                f"tokens in row {row}, and none is gone by t = {times[row].item()}"
            )

    def draw(rows: Tensor, noise: Randomness, limit: int | None) -> tuple[Batch, Tensor]:
        return _draw_jump(tables, x_0.rows(rows), times[rows], noise, limit)

    x_t, source = _within(draw, len(x_0), x_0.device, generator, max_length)
    return Corruption(x_t, Edits.from_source(x_0, x_t, source))


def corrupt_step(
    schedule: Schedule,
    x_prev: Batch,
    t: Int[Tensor, " batch"] | int,
    *,
    generator: Randomness,
    max_length: int | None = None,
) -> Batch:
    """Sample x_t from one step q(x_t | x_{t−1}); with `max_length`, given that |x_t| ≤ max_length.

    DELs of x_{t−1} are removed, each other token is replaced through Q_t, INS are inserted.

    Args:
        schedule: The forward process.
        x_prev: x_{t−1}: regular tokens, INS and DEL.
        t: The time, one for all sequences or one each, 1…T.
        generator: A torch.Generator, or `RowSeeds` with one seed per sequence.
        max_length: The longest x_t that is allowed; None: any.

    Returns:
        x_t.

    >>> schedule, x_prev = Schedule.paper(3, 8, 0.6), Batch.from_lists([[0, 1]])
    >>> corrupt_step(schedule, x_prev, 8, generator=torch.Generator()).to_lists()  # T deletes all
    [[4, 4]]

    Paper: Sec. 3.1
    """
    checks.noisy("x_prev", x_prev, schedule.vocab_size)
    times = checks.times(t, x_prev, first=1, last=schedule.num_steps)
    remaining = x_prev.without(schedule.del_)
    if max_length is not None and bool((remaining.lengths > max_length).any()):
        raise ValueError(
            f"max_length = {max_length} cannot be kept: x_prev has a sequence of "
            f"{int(remaining.lengths.max())} tokens that are not DEL, and a step removes none"
        )

    def draw(rows: Tensor, noise: Randomness, limit: int | None) -> tuple[Batch, Tensor]:
        return _draw_step(schedule, remaining.rows(rows), times[rows], noise, limit)

    return _within(draw, len(x_prev), x_prev.device, generator, max_length)[0]


def corrupt_chain(
    schedule: Schedule, x_0: Batch, *, generator: Randomness, max_length: int | None = None
) -> list[Batch]:
    """Sample x_0, x_1, …, x_T step by step; with `max_length`, each step is so restricted.

    q(x_{1:T} | x_0) = Π_t q(x_t | x_{t−1})

    Args:
        schedule: The forward process.
        x_0: Data: regular tokens alone.
        generator: A torch.Generator, or `RowSeeds` with one seed per sequence.
        max_length: The longest x_t that is allowed; None: any.

    Returns:
        x_0, x_1, …, x_T.

    >>> schedule, x_0 = Schedule.paper(3, 8, 0.6), Batch.from_lists([[0, 1, 2, 1]])
    >>> len(corrupt_chain(schedule, x_0, generator=torch.Generator().manual_seed(0)))
    9

    Reference: Johnson et al. 2021, Sec. 3.1
    """
    checks.data("x_0", x_0, schedule.vocab_size)
    chain = [x_0]
    for t in range(1, schedule.num_steps + 1):
        chain.append(
            corrupt_step(schedule, chain[-1], t, generator=generator, max_length=max_length)
        )
    return chain


def _draw_jump(
    tables: JumpTables,
    x_0: Batch,
    t: Int[Tensor, " batch"],
    generator: Randomness,
    max_length: int | None,
) -> tuple[Batch, Int[Tensor, "batch length"]]:
    """One draw of x_t and of its sources; with `max_length`, given that x_t keeps it."""
    at, dtype = t[:, None], tables.stop.dtype
    silent = tables.delete[at]
    # The shares may sum to a little less than 1: what has no share is not drawn all the same.
    total = silent + tables.replace_del[at] + tables.background.mass[at] + tables.keep[at]
    fate = total * uniform(generator, *x_0.tokens.shape, dtype=dtype)
    value = uniform(generator, *x_0.tokens.shape, dtype=dtype)
    # 1 − stop = Σ_y ᾱ_t[y], the chance of one more insert.
    more = 1.0 - tables.stop[t]
    if max_length is None:
        gaps = uniform(generator, len(x_0), x_0.width + 1, dtype=dtype)
        emitted, inserts = x_0.mask & (fate >= silent), _geometric(gaps, more[:, None])
    else:
        emit = 1.0 - silent / total
        emitted, inserts = draw_places(x_0.mask, emit[:, 0], more, max_length, generator=generator)
        fate = silent + emit * fate
    placed = spread(_replace(tables, x_0, at, fate, value), emitted, inserts)
    noise = uniform(generator, *placed.tokens.shape, dtype=dtype)
    inserted = _insert_values(tables, at, noise)
    filled = torch.where(placed.source == INSERTED, inserted, placed.tokens)
    return Batch(filled, placed.lengths), placed.source


def _replace(
    tables: JumpTables,
    x_0: Batch,
    t: Int[Tensor, "batch 1"],
    fate: Float[Tensor, "batch length"],
    value: Float[Tensor, "batch length"],
) -> Int[Tensor, "batch length"]:
    """What the tokens of x_0 leave in x_t: a draw from (β̄_t, Q̄_t[x, ·]) where fate ≥ β̄_t."""
    marked = tables.delete[t] + tables.replace_del[t]
    paired = marked + tables.background.mass[t]
    kept = tables.kept.sample(t, x_0.tokens.clamp_min(0), value)
    tokens = torch.where(fate < paired, tables.background.sample(t, value), kept)
    return torch.where(fate < marked, tables.vocab_size + 1, tokens)


def _insert_values(
    tables: JumpTables, t: Int[Tensor, "batch 1"], noise: Float[Tensor, "batch length"]
) -> Int[Tensor, "batch length"]:
    """What was inserted: a draw in proportion to ᾱ_t, INS and DEL included."""
    total = tables.insert_ins[t] + tables.insert_del[t] + tables.inserts.mass[t]
    ins = tables.insert_ins[t] / total
    markers = ins + tables.insert_del[t] / total
    # What is left of the noise above both markers is uniform again. Where nothing is ever
    # inserted this is 0/0, and not used.
    rest = ((noise - markers) / (1.0 - markers)).nan_to_num(0.0).clamp(0.0, 1.0)
    regular = tables.inserts.sample(t, rest)
    return torch.where(
        noise < ins,
        tables.vocab_size,
        torch.where(noise < markers, tables.vocab_size + 1, regular),
    )


def _draw_step(
    schedule: Schedule,
    remaining: Batch,
    t: Int[Tensor, " batch"],
    generator: Randomness,
    max_length: int | None,
) -> tuple[Batch, Int[Tensor, "batch length"]]:
    """One draw of a step from x_{t−1} without its DELs; with `max_length`, given that it fits."""
    tables = schedule.tables(remaining.device).step
    at, dtype, shape = t[:, None], tables.insert.dtype, remaining.tokens.shape
    fate = uniform(generator, *shape, dtype=dtype)
    value = uniform(generator, *shape, dtype=dtype)
    is_ins = remaining.tokens == schedule.ins
    regular = remaining.tokens.clamp(0, schedule.vocab_size - 1)
    tokens = torch.where(
        is_ins, tables.inserted.sample(at, value), tables.transition.sample(at, regular, value)
    )
    deleted = fate < torch.where(is_ins, tables.delete_inserted[at], tables.delete[at])
    tokens = torch.where(deleted, schedule.del_, tokens)
    if max_length is None:
        gaps = uniform(generator, len(remaining), remaining.width + 1, dtype=dtype)
        inserts = _geometric(gaps, tables.insert[at])
    else:
        more = tables.insert[t]
        # A step drops none of what remains.
        every = torch.ones_like(more)
        inserts = draw_places(remaining.mask, every, more, max_length, generator=generator).inserts
    placed = spread(tokens, remaining.mask, inserts)
    marked = torch.where(placed.source == INSERTED, schedule.ins, placed.tokens)
    return Batch(marked, placed.lengths), placed.source


def _geometric(
    noise: Float[Tensor, "batch gaps"], more: Float[Tensor, "batch 1"]
) -> Int[Tensor, "batch gaps"]:
    """How often a coin of chance `more` succeeds in a row: P(n) = moreⁿ (1 − more)."""
    return torch.floor(torch.log1p(-noise) / torch.log(more)).long()


def _within(
    draw: Callable[[Tensor, Randomness, int | None], tuple[Batch, Tensor]],
    count: int,
    device: torch.device,
    generator: Randomness,
    max_length: int | None,
) -> tuple[Batch, Int[Tensor, "batch length"]]:
    """Draw all rows freely, then those that came out too long from the law given that they fit.

    A free draw that fits follows that law as well, so all rows do; and it is the cheaper one.
    """
    rows = torch.arange(count, device=device)
    noise = split(generator)
    batch, source = draw(rows, noise, None)
    if max_length is None:
        return batch, source
    long = (batch.lengths > max_length).nonzero()[:, 0]
    if len(long):
        again, again_source = draw(long, select(noise, long), max_length)
        batch, source = _put_rows(batch, source, long, again, again_source)
        batch = batch.trimmed()
    return batch, source[:, : batch.width]


def _put_rows(
    batch: Batch, source: Tensor, rows: Tensor, new: Batch, new_source: Tensor
) -> tuple[Batch, Tensor]:
    """Replace some rows by new ones, at a width that holds both."""
    batch, new = batch.widened(new.width), new.widened(batch.width)
    pad = torch.nn.functional.pad
    source = pad(source, (0, batch.width - source.shape[1]), value=INSERTED)
    new_source = pad(new_source, (0, new.width - new_source.shape[1]), value=INSERTED)
    lengths = batch.lengths.index_put((rows,), new.lengths)
    tokens = batch.tokens.index_put((rows,), new.tokens)
    return Batch(tokens, lengths), source.index_put((rows,), new_source)
