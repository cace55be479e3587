"""The posterior of one step back, q(x_{t−1} | x_t, x_0, a), in closed form.

Given the edits, the tokens of x_{t−1} are independent: for each token z of x_t its value one step
earlier, and the number of DELs right before it. With the edits unknown the same sums run over
their exact law instead of one summary, so both cases share all of the code below.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.process.alignments import EditMarginals, edit_marginals
from indel.process.counts import deletion_tables, observed_limit
from indel.process.edits import INSERTED, Edits
from indel.process.probabilities import check_pair, log_prob_edits
from indel.process.schedules import Schedule
from indel.process.tables import Tables


class Posterior(NamedTuple):
    """Marginals of q(x_{t−1} | x_t, x_0, a); rows at INS and at padding are zero."""

    prob_previous: Float[Tensor, "batch length previous"]
    """P(the token was y at t − 1), y regular or INS (last)."""
    prob_deletions: Float[Tensor, "batch slots observed"]
    """P(n DELs stand right before it at t − 1); the row at |x_t| is EOS's."""
    expected_log_step: Float[Tensor, " batch"]
    """E[log q(x_t | x_{t−1})]."""


def posterior(
    schedule: Schedule,
    x_0: Batch,
    x_t: Batch,
    edits: Edits | None,
    t: Int[Tensor, " batch"] | int,
    *,
    max_deletions: int | None = None,
) -> Posterior:
    """q(x_{t−1} | x_t, x_0, a_{0→t}), or q(x_{t−1} | x_t, x_0) where `edits` is None.

    `max_deletions` cuts the law of the number of DELs off (it is not renormalised); by default
    what is cut off is below 1e−12.

    Args:
        schedule: The forward process.
        x_0: Data: regular tokens alone.
        x_t: Noisy sequences: regular tokens, INS and DEL.
        edits: Which token of x_t comes from which of x_0; None: averaged over.
        t: The time, one for all sequences or one each, 1…T.
        max_deletions: The largest number of DELs in a slot that is listed.

    Returns:
        `Posterior`: the value of each token at t − 1, and the number of DELs before it.

    >>> schedule, x = Schedule.paper(2, 8, 0.6), Batch.from_lists([[0]])
    >>> posterior(schedule, x, x, None, 1).prob_previous.round(decimals=6).tolist()  # 0, 1, INS
    [[[1.0, 0.0, 0.0]]]

    Paper: App. B.3
    """
    times = check_pair(schedule, x_0, x_t, t, first=1)
    if max_deletions is not None and max_deletions < 0:
        raise ValueError(f"max_deletions must be at least 0, got {max_deletions}")
    if edits is not None:
        refuse_impossible_edits(schedule, x_0, x_t, edits, times)
    return posterior_of_possible(schedule, x_0, x_t, edits, times, max_deletions=max_deletions)


def posterior_of_possible(
    schedule: Schedule,
    x_0: Batch,
    x_t: Batch,
    edits: Edits | None,
    t: Int[Tensor, " batch"],
    *,
    max_deletions: int | None = None,
) -> Posterior:
    """`posterior` of edits that q can make, such as those it has drawn: nothing is checked."""
    tables = schedule.tables(x_t.device)
    if edits is None:
        law = _law_of_marginals(tables, x_0, x_t, edit_marginals(schedule, x_0, x_t, t), t)
    else:
        law = _law_of_edits(tables, x_0, x_t, edits, t)
    prob_previous = _previous(tables, x_t, law, t, ins=schedule.ins)
    return Posterior(
        prob_previous,
        _deletions(tables, x_t, law, t, max_deletions, ins=schedule.ins),
        _expected_log_step(tables, x_t, prob_previous, t, ins=schedule.ins),
    )


def refuse_impossible_edits(
    schedule: Schedule, x_0: Batch, x_t: Batch, edits: Edits, t: Int[Tensor, " batch"]
) -> None:
    """Raise where q(x_t, a_{0→t} | x_0) = 0."""
    impossible = log_prob_edits(schedule, x_0, x_t, edits, t) == -torch.inf
    if bool(impossible.any()):
        row = int(impossible.nonzero()[0])
        raise ValueError(f"row {row}: q cannot make these edits at t = {t[row].item()}")


class EditLaw(NamedTuple):
    """What the posterior needs to know of the edits."""

    prob_value: Float[Tensor, "batch length tokens"]
    """P(x ↦ z) for each value x."""
    prob_inserted: Float[Tensor, "batch length"]
    """P(ε ↦ z)."""
    deleted: Float[Tensor, "batch slots deleted"]
    """P(n tokens of x_0 deleted right before, and no pair)."""
    deleted_paired: Float[Tensor, "batch slots deleted"]
    """P(n tokens of x_0 deleted right before, and x ↦ z a deletion–insertion pair)."""


def prob_pair(
    tables: Tables, x: Int[Tensor, "..."], z: Int[Tensor, "..."], t: Int[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """The share of x ↦ z that is a pair: x was a DEL at t − 1 and y ↦ z inserted after it.

    Q̄_{t−1}[x, DEL] [ᾱ_{t−1}ᵀQ_t]_z / ((1 − ᾱ_{t−1}[DEL]) Q̄_t[x, z]),
    and by Eq. (10) [ᾱ_{t−1}ᵀQ_t]_z / (1 − ᾱ_{t−1}[DEL]) = ᾱ_t[z] / (1 − α_t).

    Paper: Eq. (14), summed over y
    """
    moved = tables.jump.insert_prob(t, z) / (1.0 - tables.step.insert[t])
    pair = tables.jump.replace_del[t - 1] * moved
    return (pair / tables.jump.replace_prob(t, x, z)).nan_to_num(0.0)


def _law_of_edits(
    tables: Tables, x_0: Batch, x_t: Batch, edits: Edits, t: Int[Tensor, " batch"]
) -> EditLaw:
    """All weight on one summary."""
    dtype, one_hot = tables.dtype, torch.nn.functional.one_hot
    replaced = edits.source != INSERTED
    if x_0.width:
        origin = x_0.tokens.gather(1, edits.source.clamp_min(0)).clamp_min(0)
    else:
        origin = torch.zeros_like(x_t.tokens)
    value = one_hot(origin, tables.jump.vocab_size).to(dtype) * replaced[..., None]
    pair = prob_pair(tables, origin, x_t.tokens, t[:, None]) * replaced
    pair = torch.nn.functional.pad(pair, (0, 1))[..., None]
    most = int(edits.deletions.max()) if edits.deletions.numel() else 0
    deleted = one_hot(edits.deletions, most + 1).to(dtype)
    inserted = (x_t.mask & ~replaced).to(dtype)
    return EditLaw(value, inserted, deleted * (1.0 - pair), deleted * pair)


def _law_of_marginals(
    tables: Tables, x_0: Batch, x_t: Batch, marginals: EditMarginals, t: Int[Tensor, " batch"]
) -> EditLaw:
    """Every summary with its probability: the joint law of source and deletions, mixed by pair."""
    shape = (*x_t.tokens.shape, tables.jump.vocab_size)
    value = marginals.prob_source.new_zeros(shape)
    origin = x_0.tokens.clamp_min(0)[:, None, :].expand(marginals.prob_source.shape)
    value = value.scatter_add(2, origin, marginals.prob_source)
    pair = prob_pair(tables, x_0.tokens[:, None, :], x_t.tokens[..., None], t[:, None, None])
    deleted = marginals.prob_source.new_zeros(len(x_t), x_t.width + 1, x_0.width + 1)
    paired = torch.zeros_like(deleted)
    for n in range(x_0.width):
        prob = marginals.prob_source_deletions(n)
        paired[:, :-1, n] = (prob * pair).sum(dim=-1)
        deleted[:, :-1, n] = (prob * (1.0 - pair)).sum(dim=-1)
    deleted[:, :-1, 0] += marginals.prob_inserted
    rows = torch.arange(len(x_t), device=x_t.device)
    deleted[rows, x_t.lengths] = marginals.prob_deletions_end
    return EditLaw(value, marginals.prob_inserted, deleted, paired)


def _previous(
    tables: Tables, x_t: Batch, law: EditLaw, t: Int[Tensor, " batch"], *, ins: int
) -> Float[Tensor, "batch length previous"]:
    """The value y of each token at t − 1, regular or INS.

    x ↦ z : (Q̄_{t−1}[x,y] + Q̄_{t−1}[x,DEL] ᾱ_{t−1}[y] / (1−ᾱ_{t−1}[DEL])) Q_t[y,z] / Q̄_t[x,z]
    ε ↦ z : ᾱ_{t−1}[y] Q_t[y,z] / [ᾱ_{t−1}ᵀQ_t]_z

    Paper: Eqs. (13), (14) and (15)
    """
    jump, before = tables.jump, t - 1
    at, z = t[:, None], x_t.tokens
    every = torch.arange(jump.vocab_size, device=z.device)
    reached = jump.replace_prob(at[..., None], every, z[..., None])
    # A value that has no weight may be out of reach: 0/0.
    weight = torch.where(law.prob_value > 0, law.prob_value / reached, 0.0)
    weight_inserted = law.prob_inserted * (1.0 - tables.step.insert[at]) * jump.loops[at - 1]
    weight_inserted = torch.where(
        law.prob_inserted > 0, weight_inserted / jump.insert_prob(at, z), 0.0
    )
    total = weight.sum(dim=-1, keepdim=True)
    # ᾱ_{t−1} enters as the second half of a pair, and as an insert.
    pairs = total * (jump.replace_del * jump.loops)[before][:, None, None]
    as_insert = pairs + weight_inserted[..., None]
    regular = jump.keep[before][:, None, None] * jump.kept.apply(before, weight)
    regular = regular + total * jump.background.vectors(before)[:, None, :]
    regular = regular + as_insert * jump.inserts.vectors(before)[:, None, :]
    fresh = as_insert * jump.insert_ins[before][:, None, None]
    prob = torch.cat([regular, fresh], dim=-1) * tables.step.columns(at, z)
    return prob.masked_fill((~x_t.mask | (z == ins))[..., None], 0.0)


def _deletions(
    tables: Tables,
    x_t: Batch,
    law: EditLaw,
    t: Int[Tensor, " batch"],
    max_deletions: int | None,
    *,
    ins: int,
) -> Float[Tensor, "batch slots observed"]:
    """The number of DELs right before each token at t − 1.

    x ↦ z : (1−p_pair) M[n] + p_pair M′[n]      ε ↦ z : M[0]      EOS : M[n]

    Paper: App. B.3
    """
    most = law.deleted.shape[-1] - 1
    if max_deletions is None:
        max_deletions = observed_limit(tables.jump, t, most)
    counts = deletion_tables(tables.jump, t, most, max_deletions)
    prob = law.deleted @ counts.plain + law.deleted_paired @ counts.paired
    positions = torch.arange(x_t.width + 1, device=t.device)
    dropped = (positions > x_t.lengths[:, None]) | torch.nn.functional.pad(
        x_t.tokens == ins, (0, 1)
    )
    return prob.masked_fill(dropped[..., None], 0.0)


def _expected_log_step(
    tables: Tables,
    x_t: Batch,
    prob_previous: Float[Tensor, "batch length previous"],
    t: Int[Tensor, " batch"],
    *,
    ins: int,
) -> Float[Tensor, " batch"]:
    """E[log q(x_t|x_{t−1})] = Σ_z Σ_y p(y) log Q_t[y,z] + #INS·log α_t + (|w|+1) log(1−α_t).

    Paper: Eq. (3)
    """
    columns = tables.step.columns(t[:, None], x_t.tokens)
    tokens = torch.xlogy(prob_previous, columns).sum(dim=(1, 2))
    inserts = (x_t.mask & (x_t.tokens == ins)).sum(dim=1)
    insert = tables.step.insert[t]
    kept = x_t.lengths - inserts
    log_inserts: Tensor = torch.xlogy(inserts.to(insert.dtype), insert)
    return tokens + log_inserts + (kept + 1) * torch.log1p(-insert)
