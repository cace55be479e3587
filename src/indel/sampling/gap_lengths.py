"""Gaps of a given length: how likely they come out so, and draws of a step that lean there.

N_t is the number of tokens in a gap of x_t, INS left out. In one step of q each of them is deleted
with chance d_t, and each of the N_t + 1 places around them gets inserts:

    N_{t+1} ~ Binomial(N_t, 1 − d_t) + NB(N_t + 1, 1 − α_t),     N_0 = N_1 = the length asked for.

So with all lengths equally likely before anything is seen, ψ_t(n) = q(N_0 is allowed | N_t = n) is
known for each gap. It is 0 or 1 at t ≤ 1: what is drawn in proportion to p_θ(x_{t−1} | x_t) ψ_{t−1}
has the length asked for in the end, whatever the model does. In between ψ only leans: particles
divide by it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from indel.model.length import LengthTable
from indel.process import Schedule
from indel.process.counts import logp_negative_binomial, prob_binomial, sum_distribution
from indel.randomness import Randomness, index_at, uniform
from indel.sampling.patterns import Pattern

# Where fresh inserts are deleted at another rate, ψ is approximate: nothing may be ruled out.
_FLOOR = 1e-9
# Numbers of tokens that are less likely to lead to an allowed length are not looked at.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class GapLengths:
    """ψ_t(n) for each gap of a pattern, n = 0…limit."""

    tables: Float[Tensor, "times gaps counts"]
    """Entry j of `gaps` belongs to frozen token j, as in `Pattern.gaps`; 1 where all is allowed."""
    bounds: Bool[Tensor, " gaps"]
    """Which gaps are there and not free; the entries of the others are 1."""
    bounded: bool
    """Whether any is."""

    @classmethod
    def of(
        cls, pattern: Pattern, schedule: Schedule, limit: int, device: torch.device
    ) -> GapLengths:
        """Work the tables out, for times 0…T."""
        times, gaps = schedule.num_steps + 1, len(pattern.gaps)
        dtype = schedule.tables(device).dtype
        bounded = {
            number: gap
            for number, gap in enumerate(pattern.gaps)
            if gap is not None and not gap.is_free
        }
        tables = torch.ones(times if bounded else 1, gaps, limit + 1, dtype=dtype)
        for t, law in enumerate(_length_laws(schedule, limit)) if bounded else ():
            total = law.sum(dim=0)
            for number, gap in bounded.items():
                allowed = torch.tensor([gap.allows(n) for n in range(limit + 1)])
                share = torch.where(total > 0, law[allowed].sum(dim=0) / total, 0.0)
                tables[t, number] = share if t < 2 or _is_exact(schedule) else share + _FLOOR
        bounds = torch.tensor([number in bounded for number in range(gaps)])
        return cls(tables.to(device), bounds.to(device), bool(bounded))

    def at(self, t: int) -> Float[Tensor, "gaps counts"]:
        """The tables of one time."""
        return self.tables[t if self.bounded else 0]

    def relevant(self, t: int) -> Float[Tensor, "gaps counts"]:
        """The tables of one time, cut where all that follows is negligible for bounded gaps."""
        table = self.at(t)
        likely = (table[self.bounds] > _NEGLIGIBLE).any(dim=0).nonzero()[:, 0]
        return table[:, : int(likely[-1]) + 1] if len(likely) else table[:, :1]

    def log_prob(self, t: int, counts: Int[Tensor, "batch gaps"]) -> Float[Tensor, " batch"]:
        """Σ_gaps log ψ_t(n) for the numbers of tokens in the gaps; 0 for one longer than ever."""
        table = self.at(t)
        if not self.bounded:
            return torch.zeros(len(counts), dtype=table.dtype, device=counts.device)
        most = table.shape[1] - 1
        each = table.expand(len(counts), -1, -1).gather(2, counts.clamp_max(most)[..., None])
        return each[..., 0].masked_fill(counts > most, 0.0).log().sum(dim=1)


class Counts(NamedTuple):
    """How many DELs go into each slot, and which tokens stay tokens (and are no INS)."""

    births: Int[Tensor, "batch slots"]
    stays: Bool[Tensor, "batch length"]
    log_total: Float[Tensor, " batch"]
    """log Σ p_θ ψ over all that could be drawn: −inf where nothing can."""


def draw_counts(
    prob_births: Float[Tensor, "batch slots counts"],
    prob_stays: Float[Tensor, "batch length"],
    frozen: Bool[Tensor, "batch length"],
    lengths: Int[Tensor, " batch"],
    table: Float[Tensor, "gaps most"],
    bounds: Bool[Tensor, " gaps"],
    *,
    generator: Randomness,
) -> Counts:
    """Draw births and INS in proportion to their probability times Π ψ(tokens in each gap).

    The number of tokens in a gap is a sum of independent numbers, so a pass from right to left
    gives the total weight of what follows for each number so far,

        A_i(s) = Σ_n p_i(n) B_i(s + n)      B_i(s) = p(INS) A_{i+1}(s) + p(stays) A_{i+1}(s + 1),

    with B_i(s) = ψ(s) A_{i+1}(0) at a frozen token, and a pass from left to right draws exactly.
    In gaps of any length nothing is counted. Slots outside of gaps come with probability 1 of no
    birth.
    """
    rows, width = frozen.shape
    most = table.shape[1]
    number = torch.nn.functional.pad(frozen.cumsum(dim=1), (1, 0))
    counted = bounds[number] & (torch.arange(width + 1, device=frozen.device) <= lengths[:, None])
    before, after, log_total = _backward(
        prob_births[..., : most + 1], prob_stays, frozen, lengths, table, counted
    )
    noise = uniform(generator, rows, 2 * width + 1, dtype=table.dtype)
    births = torch.zeros(rows, width + 1, dtype=torch.int64, device=lengths.device)
    stays = torch.zeros_like(frozen)
    so_far = torch.zeros_like(lengths)
    every = torch.arange(prob_births.shape[2], device=lengths.device)
    for i in range(width + 1):
        reached = (so_far[:, None] + every).clamp_max(most)
        factor = torch.where(counted[:, i, None], after[i].gather(1, reached), 1.0)
        drawn = index_at((prob_births[:, i] * factor).cumsum(dim=1), noise[:, 2 * i])
        births[:, i] = drawn.masked_fill(i > lengths, 0)
        so_far = so_far + births[:, i].masked_fill(~counted[:, i], 0)
        if i == width:
            break
        counts = counted[:, i] & ~frozen[:, i] & (i < lengths)
        left = before[i + 1].gather(1, so_far.clamp_max(most)[:, None])[:, 0]
        more = before[i + 1].gather(1, (so_far + 1).clamp_max(most)[:, None])[:, 0]
        more, left = (torch.where(counts, each, 1.0) for each in (more, left))
        stay, go = prob_stays[:, i] * more, (1.0 - prob_stays[:, i]) * left
        stays[:, i] = noise[:, 2 * i + 1] * (stay + go) < stay
        so_far = so_far + (stays[:, i] & counts).long()
        so_far = so_far.masked_fill(frozen[:, i], 0)
    return Counts(births, stays, log_total)


def draw_start(
    pattern: Pattern,
    lengths: GapLengths,
    table: LengthTable,
    t: int,
    rows: int,
    *,
    generator: Randomness,
    own: Float[Tensor, "gaps counts"] | None = None,
) -> tuple[Int[Tensor, "rows gaps"], Float[Tensor, ""]]:
    """How many DELs of x_T lie in each gap: n_j ∝ p_θ(|x_T| = frozen + Σ n_j) Π ψ_T(n_j).

    Which DELs of x_T become the frozen tokens is a choice that each way counts for. Also log of
    the total. Where each gap has a law of its `own`, it takes the place of p_θ(|x_T|): then
    n_j ∝ Π p_θ(n_j | frozen) ψ_T(n_j).
    """
    psi = lengths.at(t)
    limit = psi.shape[1] - 1
    there = torch.tensor([gap is not None for gap in pattern.gaps], device=psi.device)
    nothing = torch.zeros_like(psi[0])
    nothing[0] = 1.0
    weight = psi if own is None else psi * own.to(psi.dtype)
    each = torch.where(there[:, None], weight, nothing)
    room = limit - len(pattern.tokens)
    # rest[j]: the total weight of the gaps from j on, by how many tokens they have together.
    rest = [nothing]
    for weights in each.flip(0):
        rest.append(sum_distribution(weights[None], rest[-1][None])[0])
    rest.reverse()
    totals = torch.arange(room + 1, device=psi.device)
    logp = rest[0][: room + 1].log()
    if own is None:
        logp = logp + table.log_prob(totals + len(pattern.tokens)).to(psi.dtype)
    log_total = logp.logsumexp(dim=0)
    if not bool(log_total > -torch.inf):
        raise ValueError(
            "the model's own lengths leave no room for these gaps: allow other lengths"
        )
    noise = uniform(generator, rows, len(each) + 1, dtype=psi.dtype)
    left = index_at((logp - logp.max()).exp().cumsum(dim=0), noise[:, 0])
    counts = torch.zeros(rows, len(each), dtype=torch.int64, device=psi.device)
    numbers = torch.arange(limit + 1, device=psi.device)
    for j, weights in enumerate(each):
        if not bool(there[j]):
            continue
        over = left[:, None] - numbers
        weight = weights * rest[j + 1][over.clamp_min(0)].masked_fill(over < 0, 0.0)
        counts[:, j] = index_at(weight.cumsum(dim=1), noise[:, j + 1])
        left = left - counts[:, j]
    return counts, log_total


def _backward(
    prob_births: Float[Tensor, "batch slots counts"],
    prob_stays: Float[Tensor, "batch length"],
    frozen: Bool[Tensor, "batch length"],
    lengths: Int[Tensor, " batch"],
    table: Float[Tensor, "gaps most"],
    counted: Bool[Tensor, "batch slots"],
) -> tuple[list[Tensor], list[Tensor], Float[Tensor, " batch"]]:
    """A_i and B_i for each place, with a last column of zeros: more tokens than the limit."""
    rows, width = frozen.shape
    number = frozen.cumsum(dim=1)
    padded = torch.nn.functional.pad(table, (0, 1))
    at_end = padded[-1].expand(rows, -1)
    before, after = [at_end] * (width + 2), [at_end] * (width + 1)
    log_total = torch.zeros(rows, dtype=table.dtype, device=table.device)
    columns = prob_births.shape[2]
    for i in range(width, -1, -1):
        if i < width:
            later = before[i + 1]
            stay, more = prob_stays[:, i, None], torch.nn.functional.pad(later[:, 1:], (0, 1))
            value = torch.where(counted[:, i, None], (1.0 - stay) * later + stay * more, later)
            closing = padded[number[:, i] - 1] * later[:, :1]
            value = torch.where(frozen[:, i, None], closing, value)
            value = torch.where((i < lengths)[:, None], value, at_end)
        else:
            value = at_end
        after[i] = value
        if bool(counted[:, i].any()):
            windows = torch.nn.functional.pad(value[:, :-1], (0, columns)).unfold(1, columns, 1)
            summed = (windows[:, : padded.shape[1]] @ prob_births[:, i, :, None])[..., 0]
            value = torch.where(counted[:, i, None], summed, value)
        # Products of many small numbers: each row has a scale of its own.
        scale = value.amax(dim=1, keepdim=True)
        scale = torch.where(scale > 0, scale, 1.0)
        before[i] = value / scale
        log_total = log_total + torch.where(i <= lengths, scale[:, 0].log(), 0.0)
    return before, after, log_total + before[0][:, 0].log()


def _length_laws(schedule: Schedule, limit: int) -> list[Float[Tensor, "first counts"]]:
    """P(N_t = n | N_0) for N_0 and n in 0…limit, t = 0…T; what is longer is left out."""
    numbers = torch.arange(limit + 1)
    law = torch.eye(limit + 1, dtype=torch.float64)
    laws = [law, law]
    for t in range(1, schedule.num_steps):
        step = schedule.step(t)
        kept = prob_binomial(
            numbers, numbers[:, None], torch.tensor(1.0 - step.delete, dtype=torch.float64)
        )
        more = torch.tensor(step.insert, dtype=torch.float64)
        inserts = logp_negative_binomial(numbers, numbers[:, None] + 1, more).exp()
        law = law @ sum_distribution(kept, inserts)
        laws.append(law)
    return laws


def _is_exact(schedule: Schedule) -> bool:
    """Whether inserts are deleted like all other tokens, so that a number of tokens says all."""
    steps = map(schedule.step, range(1, schedule.num_steps + 1))
    return all(step.delete == step.delete_inserted for step in steps)
