"""Probabilities of one step, of a jump with known edits, and of keeping a length limit."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.process import checks
from indel.process.edits import INSERTED, Edits
from indel.process.length_limit import logp_within
from indel.process.schedules import Schedule


def log_prob_step(
    schedule: Schedule, x_prev: Batch, x_t: Batch, t: Int[Tensor, " batch"] | int
) -> Float[Tensor, " batch"]:
    """log q(x_t | x_{t−1}) = Σ_i log Q_t[u_i, w_i] + #INS·log α_t + (|w| + 1) log(1 − α_t).

    u is x_{t−1} without DEL, w is x_t without INS; −inf where their lengths differ.

    Args:
        schedule: The forward process.
        x_prev: x_{t−1}: regular tokens, INS and DEL.
        x_t: Noisy sequences: regular tokens, INS and DEL.
        t: The time, one for all sequences or one each, 1…T.

    Returns:
        Nats for each sequence.

    >>> from indel.process import Step, UniformTransition
    >>> schedule = Schedule([Step(0.1, 0.2, UniformTransition(2, 0.5))])
    >>> x = Batch.from_lists([[0]])
    >>> round(log_prob_step(schedule, x, x, 1).exp().item(), 6)  # 0.8 · 0.75 · 0.9²
    0.486

    Paper: Sec. 3.1
    """
    checks.same_rows(x_prev=x_prev, x_t=x_t)
    checks.noisy("x_prev", x_prev, schedule.vocab_size)
    checks.noisy("x_t", x_t, schedule.vocab_size)
    times = checks.times(t, x_t, first=1, last=schedule.num_steps)
    tables = schedule.tables(x_t.device).step
    before, after = x_prev.without(schedule.del_), x_t.without(schedule.ins)
    before, after = before.widened(after.width), after.widened(before.width)
    prob = tables.prob(times[:, None], before.tokens, after.tokens)
    tokens = torch.where(before.mask & after.mask, prob.log(), 0.0).sum(dim=1)
    inserts = _times_log(x_t.lengths - after.lengths, tables.insert[times])
    stops = (after.lengths + 1) * torch.log1p(-tables.insert[times])
    return torch.where(before.lengths == after.lengths, tokens + inserts + stops, -torch.inf)


def log_prob_edits(
    schedule: Schedule, x_0: Batch, x_t: Batch, edits: Edits, t: Int[Tensor, " batch"] | int
) -> Float[Tensor, " batch"]:
    """log q(x_t, a_{0→t} | x_0): every insert, every stop, every deletion, every replacement.

    Σ_{ε↦z} log ᾱ_t[z] + Σ_{x↦z} log Q̄_t[x, z] + #deleted·log β̄_t + (#replaced + 1) log(1 − Σᾱ_t)

    Args:
        schedule: The forward process.
        x_0: Data: regular tokens alone.
        x_t: Noisy sequences: regular tokens, INS and DEL.
        edits: Which token of x_t comes from which of x_0.
        t: The time, one for all sequences or one each, 0…T.

    Returns:
        Nats for each sequence; −inf where q cannot make these edits.

    >>> from indel.process import Step, UniformTransition
    >>> schedule = Schedule([Step(0.1, 0.2, UniformTransition(2, 0.5))])
    >>> x = Batch.from_lists([[0]])
    >>> edits = Edits.from_source(x, x, torch.tensor([[0]]))
    >>> round(log_prob_edits(schedule, x, x, edits, 1).exp().item(), 6)
    0.486

    Paper: Fig. 5 (middle)
    """
    times = check_pair(schedule, x_0, x_t, t, first=0)
    edits = edits.checked(x_0, x_t)
    tables = schedule.tables(x_t.device).jump
    at, replaced = times[:, None], edits.source != INSERTED
    origin = x_0.tokens.gather(1, edits.source.clamp_min(0)) if x_0.width else edits.source
    prob = torch.where(
        replaced,
        tables.replace_prob(at, origin, x_t.tokens),
        tables.insert_prob(at, x_t.tokens),
    )
    tokens = torch.where(x_t.mask, prob.log(), 0.0).sum(dim=1)
    deletions = _times_log(edits.deletions.sum(dim=1), tables.delete[times])
    stops = (replaced.sum(dim=1) + 1) * tables.stop[times].log()
    return tokens + deletions + stops


def log_prob_within(
    schedule: Schedule, x_prev: Batch, t: Int[Tensor, " batch"] | int, max_length: int
) -> Float[Tensor, " batch"]:
    """log P(|x_t| ≤ max | x_{t−1}): the inserts are negative binomial, NB(|u| + 1, 1 − α_t).

    u is x_{t−1} without DEL; −inf where |u| alone is longer than the limit.

    Args:
        schedule: The forward process.
        x_prev: x_{t−1}: regular tokens, INS and DEL.
        t: The time, one for all sequences or one each, 1…T.
        max_length: The limit.

    Returns:
        Nats for each sequence.

    >>> from indel.process import Step, UniformTransition
    >>> schedule = Schedule([Step(0.1, 0.2, UniformTransition(2, 0.5))])
    >>> round(log_prob_within(schedule, Batch.from_lists([[0]]), 1, 1).exp().item(), 6)  # 0.9²
    0.81

    Reference: Johnson et al. 2021, App. C.3
    """
    checks.noisy("x_prev", x_prev, schedule.vocab_size)
    times = checks.times(t, x_prev, first=1, last=schedule.num_steps)
    if max_length < 0:
        raise ValueError(f"max_length must be at least 0, got {max_length}")
    insert = schedule.tables(x_prev.device).step.insert[times]
    tokens = x_prev.without(schedule.del_).lengths
    fits = logp_within(insert, max_length)
    logp = fits.gather(1, tokens.clamp_max(max_length)[:, None])[:, 0]
    return logp.masked_fill(tokens > max_length, -torch.inf)


def check_pair(
    schedule: Schedule, x_0: Batch, x_t: Batch, t: Int[Tensor, " batch"] | int, *, first: int
) -> Int[Tensor, " batch"]:
    """Check x_0, x_t and t against each other and the schedule, and return t as a tensor."""
    checks.same_rows(x_0=x_0, x_t=x_t)
    checks.data("x_0", x_0, schedule.vocab_size)
    checks.noisy("x_t", x_t, schedule.vocab_size)
    return checks.times(t, x_t, first=first, last=schedule.num_steps)


def _times_log(count: Int[Tensor, " batch"], prob: Float[Tensor, " batch"]) -> Tensor:
    """count · log prob, where none of an impossible thing costs nothing."""
    return torch.xlogy(count.to(prob.dtype), prob)
