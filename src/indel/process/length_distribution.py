"""The law of |x_t| given |x_0|."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.process.counts import logp_negative_binomial, prob_binomial
from indel.process.schedules import Schedule
from indel.process.tables import JumpTables

# Laws of this many lengths are kept for each schedule: an entry takes a few kilobytes.
_MOST_KEPT = 1024
_kept: WeakKeyDictionary[JumpTables, dict[int, Tensor]] = WeakKeyDictionary()


def length_distribution(
    schedule: Schedule, lengths: Int[Tensor, " batch"], t: int
) -> Float[Tensor, "batch counts"]:
    """P(|x_t| = n | |x_0|), n = 0, 1, … up to where less than 1e−12 is left, markers included.

    m ~ Binomial(|x_0|, 1 − β̄_t) tokens are emitted, and each of the m + 1 gaps gets inserts:
    |x_t| ~ m + NB(m + 1, 1 − Σᾱ_t).
    """
    tables = schedule.tables(lengths.device).jump
    longest = int(lengths.max()) if len(lengths) else 0
    delete, more = tables.delete[t], 1.0 - tables.stop[t]
    emitted = torch.arange(longest + 1, device=lengths.device)
    known, unique_rows = torch.unique(lengths, return_inverse=True)
    survive = prob_binomial(emitted, known[:, None], 1.0 - delete)
    counts = torch.arange(_longest(longest, float(more)) + 1, device=lengths.device)
    extra = counts - emitted[:, None]
    logp = logp_negative_binomial(extra.clamp_min(0), emitted[:, None] + 1, more)
    law = survive @ logp.exp().masked_fill(extra < 0, 0.0)
    return law[unique_rows]


def last_length_distributions(
    schedule: Schedule, lengths: Int[Tensor, " batch"]
) -> tuple[Float[Tensor, "known counts"], Int[Tensor, " batch"]]:
    """`length_distribution` of x_T for each length that occurs, and which one each sequence has.

    What was worked out once is kept as long as the schedule is: training asks for the same.
    """
    known, rows = torch.unique(lengths, return_inverse=True)
    kept = _kept.setdefault(schedule.tables(lengths.device).jump, {})
    each = known.tolist()
    missing = [n for n in each if n not in kept]
    if missing:
        if len(kept) + len(missing) > _MOST_KEPT:
            kept.clear()
            missing = each
        new = torch.tensor(missing, device=lengths.device)
        kept.update(
            zip(missing, length_distribution(schedule, new, schedule.num_steps), strict=True)
        )
    laws = [kept[n] for n in each]
    if not laws:
        return length_distribution(schedule, known, schedule.num_steps), rows
    return torch.nn.utils.rnn.pad_sequence(laws, batch_first=True), rows


def _longest(length: int, more: float) -> int:
    """A length that is exceeded with probability below 1e−12 when all `length` tokens are kept."""
    if more == 0.0:
        return length
    mean = (length + 1) * more / (1.0 - more)
    spread = (mean / (1.0 - more)) ** 0.5
    counts = torch.arange(int(mean + 20 * spread) + 200, dtype=torch.float64)
    logp = logp_negative_binomial(
        counts.long(), torch.tensor(length + 1), torch.tensor(more, dtype=torch.float64)
    )
    tail = 1.0 - logp.exp().cumsum(dim=0)
    return length + int((tail > 1e-13).sum()) + 1
