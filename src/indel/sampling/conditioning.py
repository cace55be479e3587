"""One reverse step, given that frozen tokens stay what they are and nothing comes between them.

The frozen tokens stand in every x_t, t < T, with their own values; in x_T they are DELs like all
others. p_θ(x_{t−1} | x_t) is a product over tokens and slots, so its law given that the frozen part
of x_{t−1} is what it should be is exact, and so is the probability of that:

    p_θ(x_{t−1} | x_t, frozen) = Π_{gap tokens} p_θ(y_i | x_t) Π_{gap slots} p_θ(n_i | x_t)
    p_θ(frozen | x_t)          = Π_{frozen tokens} p_θ(v_i | x_t) Π_{other slots} p_θ(0 | x_t)

Under q the noise of the frozen tokens does not depend on what is in the gaps. So for a p_θ that
undoes q exactly, given that they saw no noise the gaps have the law that the data gives them.

A model trained with frozen tokens is told which they are, and they are not drawn but given, in x_T
too: then the first line is all, p_θ(x_{t−1} | x_t, frozen) itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from indel.batch import PADDING, Batch, pack, spread
from indel.model.reverse import ReverseStep
from indel.process.gaps import slots_in_gaps
from indel.randomness import Randomness, index_at, select, uniform
from indel.sampling.gap_lengths import GapLengths, draw_counts
from indel.sampling.patterns import Pattern


@dataclass(frozen=True)
class Held:
    """Sequences x_t and which of their tokens are the frozen ones, each row having all of them."""

    x: Batch
    frozen: Bool[Tensor, "batch length"]

    def rows(self, index: Int[Tensor, " rows"]) -> Held:
        """The chosen rows, at the same width."""
        return Held(self.x.rows(index), self.frozen[index])

    def without(self, token: int) -> Held:
        """The sequences with every occurrence of one token taken out, if it is not frozen."""
        return self.kept(self.x.mask & (self.frozen | (self.x.tokens != token)))

    def kept(self, kept: Bool[Tensor, "batch length"]) -> Held:
        """The tokens that are marked, and no others."""
        tokens = pack(self.x.tokens, kept, fill=PADDING)
        frozen = pack(self.frozen.long(), kept, fill=0).bool()
        x = Batch(tokens, kept.sum(dim=1)).trimmed()
        return Held(x, frozen[:, : x.width])

    def gap_numbers(self) -> Int[Tensor, "batch length"]:
        """For each token how many frozen ones stand before it: the number of its gap."""
        return self.frozen.cumsum(dim=1) - self.frozen.long()

    def open_slots(self, pattern: Pattern) -> Bool[Tensor, "batch slots"]:
        """Which slots lie in a gap of the pattern."""
        there = [gap is not None for gap in pattern.gaps]
        is_open = torch.tensor(there, device=self.frozen.device)
        return slots_in_gaps(self.frozen, is_open.expand(len(self.frozen), -1))

    def gap_counts(self, gaps: int) -> Int[Tensor, "batch gaps"]:
        """How many tokens lie in each gap."""
        counts = torch.zeros(len(self.x), gaps, dtype=torch.int64, device=self.x.device)
        inside = (self.x.mask & ~self.frozen).long()
        return counts.scatter_add(1, self.gap_numbers(), inside)


class HeldDraw(NamedTuple):
    """x_{t−1}, and what it took to draw it."""

    state: Held
    log_lengths: Float[Tensor, " batch"]
    """log E[ψ_{t−1}] over what could be drawn, 0 for gaps of any length."""
    redrawn: Int[Tensor, " batch"]
    dropped: Int[Tensor, " batch"]


@dataclass(frozen=True)
class HeldStep:
    """p_θ(x_{t−1} | x_t) given the frozen tokens, in proportion to ψ_{t−1} of each gap's length."""

    reverse: ReverseStep
    frozen: Bool[Tensor, "batch length"]
    """Which tokens of `reverse.seen` are frozen."""
    pattern: Pattern
    lengths: GapLengths
    to: int
    """t − 1."""
    given: bool = False
    """Whether the model takes the frozen tokens as given: they then have no probability."""

    def draw(self, limit: int, *, redraws: int, generator: Randomness) -> HeldDraw:
        """Draw x_{t−1}; rows over the limit are drawn again, and in the end lose DELs of gaps.

        DELs of gaps of any length go first, then INS, which say nothing about x_{t−2}, and then
        other DELs.
        """
        state, log_lengths = self.sample(generator=generator)
        redrawn = torch.zeros_like(state.x.lengths)
        rows = torch.arange(len(redrawn), device=redrawn.device)
        for _ in range(redraws):
            long = (state.x.lengths[rows] > limit).nonzero()[:, 0]
            if not len(long):
                break
            rows, generator = rows[long], select(generator, long)
            again, _ = self.rows(rows).sample(generator=generator)
            state = with_held_rows(state, rows, again)
            redrawn = redrawn.index_add(0, rows, torch.ones_like(rows))
        within = self._shortened(state, limit)
        return HeldDraw(within, log_lengths, redrawn, state.x.lengths - within.x.lengths)

    def sample(self, *, generator: Randomness) -> tuple[Held, Float[Tensor, " batch"]]:
        """x_{t−1} of any length, and log E[ψ_{t−1}]."""
        seen, size = self.reverse.seen, self.reverse.tables.jump.vocab_size
        dtype = self.reverse.tables.dtype
        prob = self.reverse.logp_previous.to(dtype).exp()
        births, _ = self._births(dtype)
        values, _ = self._frozen_values(dtype)
        stays = 1.0 - prob[..., size]
        if self.lengths.bounded:
            drawn = draw_counts(
                births,
                stays,
                self.frozen,
                seen.lengths,
                self.lengths.relevant(self.to),
                self.lengths.bounds,
                generator=generator,
            )
            counts, is_token, log_lengths = drawn
        else:
            noise = uniform(generator, len(seen), 2 * seen.width + 1, dtype=dtype)
            counts = index_at(births.cumsum(dim=-1), noise[:, ::2])
            is_token = noise[:, 1::2] < stays
            log_lengths = torch.zeros(len(seen), dtype=dtype, device=seen.device)
        noise = uniform(generator, *seen.tokens.shape, dtype=dtype)
        # All INS: there is no regular value to draw, and none is used.
        tokens = index_at(prob[..., :size].cumsum(dim=-1), noise) if seen.width else seen.tokens
        tokens = torch.where(is_token, tokens, size)
        tokens = torch.where(self.frozen, values, tokens)
        slots = torch.arange(seen.width + 1, device=seen.device) <= seen.lengths[:, None]
        placed = spread(tokens, seen.mask, counts.masked_fill(~slots, 0))
        marked = torch.where(placed.source < 0, size + 1, placed.tokens)
        source = placed.source.clamp_min(0)
        frozen = self.frozen.gather(1, source) if seen.width else torch.zeros_like(source).bool()
        state = Held(Batch(marked, placed.lengths), frozen & (placed.source >= 0))
        return state, log_lengths

    def log_frozen(self) -> Float[Tensor, " batch"]:
        """log p_θ(frozen | x_t): the frozen tokens keep their values, and nothing comes between."""
        dtype = self.reverse.tables.dtype
        if self.given:
            return torch.zeros(len(self.frozen), dtype=dtype, device=self.frozen.device)
        return self._frozen_values(dtype)[1] + self._births(dtype)[1]

    def rows(self, index: Int[Tensor, " rows"]) -> HeldStep:
        """The law of the chosen rows."""
        return replace(self, reverse=self.reverse.rows(index), frozen=self.frozen[index])

    def log_prob(self, x_prev: Held) -> Float[Tensor, " batch"]:
        """log p_θ(x_{t−1} | x_t, frozen), −inf where the frozen tokens are not in place.

        For gaps of any length, ψ has no part in it, and for tokens that are drawn, not given.
        """
        size, width = self.reverse.tables.jump.vocab_size, self.reverse.seen.width
        kept = x_prev.without(size + 1)
        frozen = torch.nn.functional.pad(kept.frozen, (0, max(0, width - kept.x.width)))
        values, _ = self._frozen_values(self.reverse.tables.dtype)
        tokens = kept.x.widened(width).tokens[:, :width]
        same = (frozen[:, :width] == self.frozen) & (~self.frozen | (tokens == values))
        births = self.gap_births(x_prev)
        inside = same.all(dim=1) & ~(births > 0).logical_and(~self.open_slots()).any(dim=1)
        given = self.log_frozen()
        free = self.reverse.log_prob(x_prev.x).to(given.dtype)
        return torch.where(inside, free - given, -torch.inf)

    def gap_births(self, x_prev: Held) -> Int[Tensor, "batch slots"]:
        """How many DELs of x_{t−1} stand in each slot of x_t without INS."""
        size, width = self.reverse.tables.jump.vocab_size, self.reverse.seen.width
        is_del = x_prev.x.mask & (x_prev.x.tokens == size + 1)
        others = (x_prev.x.mask & ~is_del).long()
        slot = (others.cumsum(dim=1) - others).clamp_max(width)
        counts = torch.zeros(len(slot), width + 1, dtype=torch.int64, device=slot.device)
        return counts.scatter_add(1, slot, is_del.long())

    def open_slots(self) -> Bool[Tensor, "batch slots"]:
        """Which slots lie in a gap."""
        return Held(self.reverse.seen, self.frozen).open_slots(self.pattern)

    def _births(
        self, dtype: torch.dtype
    ) -> tuple[Float[Tensor, "batch slots counts"], Float[Tensor, " batch"]]:
        """The law of the DELs in each slot, and log of how likely none are where no gap is."""
        prob = self.reverse.prob_observed().to(dtype)
        closed = ~self.open_slots()
        seen = self.reverse.seen
        inside = torch.arange(seen.width + 1, device=seen.device) <= seen.lengths[:, None]
        cost = torch.where(closed & inside, prob[..., 0], 1.0).log().sum(dim=1)
        none = torch.zeros_like(prob[0, 0]) if len(prob) else prob.new_zeros(prob.shape[-1])
        none[0] = 1.0
        return torch.where(closed[..., None], none, prob), cost

    def _frozen_values(
        self, dtype: torch.dtype
    ) -> tuple[Int[Tensor, "batch length"], Float[Tensor, " batch"]]:
        """The value of each frozen token, and log of how likely all of them are."""
        number = self.frozen.cumsum(dim=1) - 1
        # At least one entry: a pattern may have no frozen token.
        given = torch.tensor([*self.pattern.tokens, 0], device=number.device)
        values = given[number.clamp_min(0)]
        logp = self.reverse.logp_previous.to(dtype).gather(2, values[..., None])[..., 0]
        return values, torch.where(self.frozen, logp, 0.0).sum(dim=1)

    def _shortened(self, state: Held, limit: int) -> Held:
        ins = self.reverse.tables.jump.vocab_size
        free = [gap is not None and gap.is_free for gap in self.pattern.gaps]
        in_free_gaps = torch.tensor(free, device=state.x.device)
        for token, gaps in ((ins + 1, in_free_gaps), (ins, None), (ins + 1, None)):
            surplus = state.x.lengths - limit
            if not bool((surplus > 0).any()):
                break
            found = state.x.mask & (state.x.tokens == token)
            if gaps is not None:
                found &= gaps[state.gap_numbers()]
            from_end = found.flip(1).cumsum(dim=1).flip(1)
            state = state.kept(state.x.mask & ~(found & (from_end <= surplus[:, None])))
        return state


def with_held_rows(state: Held, rows: Int[Tensor, " rows"], new: Held) -> Held:
    """The state with some rows replaced, no wider than it needs to be."""
    width = max(state.x.width, new.x.width)
    tokens = state.x.widened(width).tokens.index_put((rows,), new.x.widened(width).tokens)
    lengths = state.x.lengths.index_put((rows,), new.x.lengths)
    frozen = _widened(state.frozen, width).index_put((rows,), _widened(new.frozen, width))
    x = Batch(tokens, lengths).trimmed()
    return Held(x, frozen[:, : x.width])


def _widened(frozen: Bool[Tensor, "batch length"], width: int) -> Bool[Tensor, "batch width"]:
    return torch.nn.functional.pad(frozen, (0, width - frozen.shape[1]))
