"""How many DELs stand in x_{t−1} right before a token: sums of explicit and silent ones."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from indel.process.tables import JumpTables

_CACHE_NUMBERS = 20_000_000
# A number of DELs that is less likely than this is left out: float64 would not notice it in a sum.
_NEGLIGIBLE = 1e-16
_cache: WeakKeyDictionary[JumpTables, dict[tuple[int, int], DeletionTables]] = WeakKeyDictionary()
_slot_cache: WeakKeyDictionary[JumpTables, dict[tuple[int, torch.dtype], _SlotTables]]
_slot_cache = WeakKeyDictionary()


class DeletionTables(NamedTuple):
    """Laws of the number of DELs in a slot of x_{t−1} in which n tokens of x_0 were deleted."""

    plain: Float[Tensor, "batch deleted observed"]
    """M[n, n_obs]"""
    paired: Float[Tensor, "batch deleted observed"]
    """M′[n, n_obs]: one more explicit deletion, of the token that forms a pair."""


def prob_explicit(tables: JumpTables, t: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """ρ_{t−1}: the chance that a token deleted by time t was a DEL at t − 1, not gone before.

    silent   : β̄_{t−1} / β̄_t
    explicit : Q̄_{t−1}[x, DEL] (1 − Σᾱ_{t−1}) / (1 − ᾱ_{t−1}[DEL]) / β̄_t

    Paper: Eqs. (16) and (17)
    """
    explicit, silent = tables.delete_now[t - 1], tables.delete[t - 1]
    # Where nothing can be deleted this is 0/0, and only n = 0 occurs.
    return torch.where(explicit > 0, explicit / (explicit + silent), 0.0)


def deletion_tables(
    tables: JumpTables, t: Int[Tensor, " batch"], max_deleted: int, max_observed: int
) -> DeletionTables:
    """M and M′ of time t − 1 for 0…max_deleted deletions and 0…max_observed DELs.

    n_explicit ~ Binomial(n, ρ),  n_obs ~ n_explicit + NB(n_explicit + 1, 1 − ᾱ_{t−1}[DEL])

    A row with n > 0 where no deletion is possible is zero: it has no law.

    Paper: App. B.3
    """
    possible = tables.delete_now[t - 1] + tables.delete[t - 1] > 0
    deleted = torch.arange(max_deleted + 1, device=t.device)
    share = prob_explicit(tables, t)[:, None, None]
    explicit = prob_binomial(deleted, deleted[:, None], share).masked_fill(
        ~possible[:, None, None] & (deleted > 0)[:, None], 0.0
    )
    loop = tables.insert_del[t - 1]
    shifted = _shifted_negative_binomial(loop, max_deleted + 1, max_observed)
    return DeletionTables(explicit @ shifted[:, :-1], explicit @ shifted[:, 1:])


def cached_deletion_tables(
    tables: JumpTables, t: Int[Tensor, " batch"], max_deleted: int, max_observed: int
) -> DeletionTables:
    """`deletion_tables` for training, where the same times come again and again.

    All times are worked out once and kept as long as the schedule is, if that takes little room.
    """
    times = len(tables.stop)
    kept = _cache.setdefault(tables, {})
    full = max_deleted + 1, max(max_observed, max_deleted + 64)
    if times * full[0] * full[1] > _CACHE_NUMBERS:
        return deletion_tables(tables, t, max_deleted, max_observed)
    if full not in kept:
        every = torch.arange(times, device=t.device).clamp_min(1)
        kept[full] = deletion_tables(tables, every, max_deleted, full[1])
    return DeletionTables(*(table[t, :, : max_observed + 1] for table in kept[full]))


class SlotLaws(NamedTuple):
    """Laws of the number of DELs in slots whose deletions are known."""

    plain: Float[Tensor, "batch deleted observed"]
    """M[n, n_obs] of each sequence, for as many n_obs as its slots need."""
    slots: Float[Tensor, "batch slots observed"]
    """q(n_obs) in each slot, 0 where that is negligible."""


def slot_laws(
    tables: JumpTables,
    t: Int[Tensor, " batch"],
    deleted: Int[Tensor, "batch slots"],
    pair: Float[Tensor, "batch slots"],
    max_deleted: int,
    dtype: torch.dtype,
) -> SlotLaws:
    """(1 − pair) M[deleted] + pair M′[deleted], and M, in no more columns than these need."""
    every, first = _slot_tables(tables, t, max_deleted, dtype)
    rows = first[:, None] * (max_deleted + 1) + deleted
    columns = int(every.needed[rows].max()) if rows.numel() else 1
    plain, paired = (
        table.flatten(0, 1)[:, :columns].index_select(0, rows.flatten())
        for table in (every.plain, every.paired)
    )
    law = torch.lerp(plain, paired, pair.to(dtype).flatten()[:, None])
    law = law.masked_fill_(law < _NEGLIGIBLE, 0.0).reshape(*rows.shape, columns)
    return SlotLaws(every.plain[:, :, :columns][first], law)


class _SlotTables(NamedTuple):
    """`DeletionTables` in a precision."""

    plain: Float[Tensor, "times deleted observed"]
    paired: Float[Tensor, "times deleted observed"]
    needed: Int[Tensor, " times*deleted"]
    """How many columns hold all that is not negligible of a row of both tables."""

    @classmethod
    def of(
        cls, tables: JumpTables, t: Int[Tensor, " times"], most: tuple[int, int], dtype: torch.dtype
    ) -> _SlotTables:
        exact = deletion_tables(tables, t, *most)
        occurs = torch.maximum(exact.plain, exact.paired).flatten(0, 1) >= _NEGLIGIBLE
        columns = torch.arange(1, most[1] + 2, device=t.device)
        needed = torch.where(occurs, columns, 1).amax(dim=1)
        return cls(exact.plain.to(dtype), exact.paired.to(dtype), needed)


def _slot_tables(
    tables: JumpTables, t: Int[Tensor, " batch"], max_deleted: int, dtype: torch.dtype
) -> tuple[_SlotTables, Int[Tensor, " batch"]]:
    """Tables that serve all slots, and where in them each sequence finds its own.

    They are kept for all times, as in `cached_deletion_tables`, or made for the given ones.
    """
    kept, key = _slot_cache.setdefault(tables, {}), (max_deleted, dtype)
    if key in kept:
        return kept[key], t
    every = torch.arange(len(tables.stop), device=t.device).clamp_min(1)
    most = max_deleted, observed_limit(tables, every, max_deleted)
    if len(every) * (most[0] + 1) * (most[1] + 1) <= _CACHE_NUMBERS:
        kept[key] = _SlotTables.of(tables, every, most, dtype)
        return kept[key], t
    known, rows = torch.unique(t, return_inverse=True)
    most = max_deleted, observed_limit(tables, known, max_deleted)
    return _SlotTables.of(tables, known, most, dtype), rows


def observed_limit(tables: JumpTables, t: Int[Tensor, " batch"], max_deleted: int) -> int:
    """A number of DELs that is exceeded with probability below 1e−12, whatever was deleted."""
    if not len(t):
        return max_deleted + 1
    loop = float(tables.insert_del[t - 1].max())
    if loop == 0.0:
        return max_deleted + 1
    # The tail of the negative binomial with the most trials and the largest loop.
    trials = max_deleted + 2
    mean = trials * loop / (1.0 - loop)
    counts = torch.arange(int(mean + 20 * (mean / (1.0 - loop)) ** 0.5) + 200)
    more = torch.tensor(loop, dtype=torch.float64)
    mass = logp_negative_binomial(counts, torch.tensor(trials), more).exp()
    # From its far end, so that nothing is lost in a difference.
    tail = mass.flip(0).cumsum(dim=0)
    return max_deleted + 1 + int((tail > 1e-12).sum())


def logp_negative_binomial(
    count: Int[Tensor, "..."], successes: Int[Tensor, "..."], more: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """log NB(count; successes, 1 − more) = log C(count+successes−1, count) moreᶜ (1−more)ˢ."""
    count, successes = count.to(more.dtype), successes.to(more.dtype)
    ways = torch.lgamma(count + successes) - torch.lgamma(count + 1) - torch.lgamma(successes)
    return ways + torch.xlogy(count, more) + successes * torch.log1p(-more)


def logp_binomial(
    count: Int[Tensor, "..."], trials: Int[Tensor, "..."], prob: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """log Binomial(count; trials, prob) = log C(trials, count) probᶜ (1−prob)^(trials − count)."""
    failures = (trials - count).clamp_min(0).to(prob.dtype)
    count, trials = count.to(prob.dtype), trials.to(prob.dtype)
    ways = torch.lgamma(trials + 1) - torch.lgamma(count + 1) - torch.lgamma(failures + 1)
    logp = ways + torch.xlogy(count, prob) + torch.xlogy(failures, 1.0 - prob)
    return logp.masked_fill(count > trials, -torch.inf)


def prob_binomial(
    count: Int[Tensor, "..."], trials: Int[Tensor, "..."], prob: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """Binomial(count; trials, prob)."""
    return logp_binomial(count, trials, prob).exp()


def sum_distribution(
    first: Float[Tensor, "rows counts"], second: Float[Tensor, "rows counts"]
) -> Float[Tensor, "rows counts"]:
    """The law of the sum of two independent numbers, row by row, cut at the same width.

    P(m + n = k) = Σ_{n ≤ k} P(m = k − n) P(n), without a Fourier transform, whose rounding errors
    would hide small probabilities.

    >>> coin = torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.float64)
    >>> sum_distribution(coin, coin).tolist()
    [[0.25, 0.5, 0.25]]
    """
    rows, width = first.shape
    shifts = functional.pad(first, (width - 1, 0))
    found: Tensor = functional.conv1d(shifts[None], second.flip(1)[:, None], groups=rows)[0]
    return found


def _shifted_negative_binomial(
    loop: Float[Tensor, " batch"], most: int, max_observed: int
) -> Float[Tensor, "batch explicit observed"]:
    """P(n_obs | n_explicit) for n_explicit = 0…most: each of n_explicit + 1 stays adds a loop."""
    explicit = torch.arange(most + 1, device=loop.device)[:, None]
    extra = torch.arange(max_observed + 1, device=loop.device) - explicit
    logp = logp_negative_binomial(extra.clamp_min(0), explicit + 1, loop[:, None, None])
    return logp.exp().masked_fill(extra < 0, 0.0)
