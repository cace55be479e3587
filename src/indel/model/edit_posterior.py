"""What the edits were, by Bayes' rule: an automaton for x_0 composed with the exact q(x_t | x_0).

Both are automata, so their composition is one. Its states are a state of the model of x_0 and a
place in x_t, and sums over all x_0 and all alignments are a forward and a backward pass:

    A_0 = δ_start,   A_i = ᾱ[z_i] A_{i−1} + stop · Q̄[·, z_i] ⊙ M D A_{i−1}
    B_L = stop · Dᵀ end,   B_{i−1} = ᾱ[z_i] B_i + stop · Dᵀ Mᵀ (Q̄[·, z_i] ⊙ B_i)

M goes one token further in x_0, D = Σ_n (β̄ M)ⁿ passes over deleted tokens, and Q̄ looks at the
last token of a state. After some deletions in one slot the state is forgotten: from there on the
sum over n continues from the stationary distribution of M.

A frozen token v is exempt from q, so its Q̄ is the identity, 1[· = v], and its ᾱ is 0. Where no gap
is, nothing can have been deleted: D = I. Gaps are corrupted each by itself, but a model of x_0
spans them all, so the frozen tokens say something about the gaps on both sides, and these about
each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.model import native_passes, pruned_passes
from indel.model.automata import Automaton
from indel.process.tables import JumpTables

_LARGEST_RATIO = 1.0 - 1e-6
_SIZE = 2.0**30
"""What the weights of a row are scaled to, so that small ones and their products are normal
numbers: processors are many times slower with others."""
_NEGLIGIBLE = 2.0**-60
"""A weight of so little is 0."""


class EditPosterior(NamedTuple):
    """Weights of the edits given the rest of x_t, each up to a factor per token or slot."""

    kept: Float[Tensor, "batch length tokens"]
    """The token comes from v in x_0, by what all other tokens of x_t say: without Q̄[v, z]."""
    inserted: Float[Tensor, "batch length"]
    """It was inserted, alone or in the place of a deleted token; on the same scale, over ᾱ_t[z]."""
    deletions: Float[Tensor, "batch length+1 counts"]
    """P(n tokens of x_0 were deleted in this slot); sums to 1 up to the counts left out."""


class _Passed(NamedTuple):
    """What the two passes find."""

    sources: Float[Tensor, "length tokens numbers batch"]
    """The next token of x_0 is v after n deletions, agreeing with all that follows."""
    same: Float[Tensor, "length batch"]
    """x_0 stays where it is."""
    ended: Float[Tensor, "numbers batch"]
    """x_0 ends after n deletions at the end of x_t; the last number is that of all larger n."""


class HeldPlaces(NamedTuple):
    """Where q does nothing."""

    frozen: Bool[Tensor, "batch length"]
    """Tokens that are what they were in x_0."""
    open_slots: Bool[Tensor, "batch length+1"]
    """Slots in which tokens of x_0 can have been deleted."""


def edit_posterior(
    model: Automaton,
    jump: JumpTables,
    seen: Batch,
    t: Int[Tensor, " batch"],
    *,
    counts: int,
    remembered: int,
    held: HeldPlaces | None = None,
) -> EditPosterior:
    """The posterior of the edits for x_t without INS.

    Args:
        model: Of x_0.
        jump: q(x_t | x_0).
        seen: x_t without INS.
        t: The time of each sequence.
        counts: Numbers of deletions 0…counts are told apart.
        remembered: After so many deletions in one slot the state of the model is forgotten.
        held: Which tokens are frozen, and which slots lie in gaps.

    Returns:
        The weights.
    """
    channel = _Channel.of(jump, seen, t)
    channel = channel if held is None else channel.holding(seen, held)
    return _passed(model, channel, seen, counts, remembered)


def gap_posterior(
    model: Automaton, frozen: Batch, held: HeldPlaces, *, counts: int, remembered: int
) -> EditPosterior:
    """The same where nothing but the frozen tokens is known: all else in the gaps is deleted.

    `deletions` is then the law of the number of tokens that x_0 has in each gap.
    """
    channel = _Channel.unseen(frozen, len(model.common)).holding(frozen, held)
    return _passed(model, channel, frozen, counts, remembered)


def _passed(
    model: Automaton, channel: _Channel, seen: Batch, counts: int, remembered: int
) -> EditPosterior:
    deleting = bool((channel.delete > 0).any())
    told = remembered if deleting else 0
    return _Passes(
        model, channel, seen, counts, told, deleting, model.lasting(told + 1)
    ).posterior()


@dataclass(frozen=True, eq=False)
class _Channel:
    """q(x_t | x_0) for each token of x_t, time first and rows last."""

    kept: Float[Tensor, "length symbols batch"]
    """keep·Ā_t[x, z]: the token x was never deleted; 0 for the start, which is no token."""
    pair: Float[Tensor, "length batch"]
    """Q̄_t[x, z] − keep·Ā_t[x, z]: x was deleted and z inserted in its place."""
    insert: Float[Tensor, "length batch"]
    stop: Float[Tensor, " batch"]
    delete: Float[Tensor, "length+1 batch"]
    """In the slot before each token, and after the last one."""
    free: Bool[Tensor, "length batch"]
    """Tokens that q may have inserted."""

    @classmethod
    def of(cls, jump: JumpTables, seen: Batch, t: Int[Tensor, " batch"]) -> _Channel:
        time, z = t[:, None], seen.tokens
        is_del = z == jump.vocab_size + 1
        inside = z.clamp(0, jump.vocab_size - 1)
        kept = jump.keep[time][..., None] * jump.kept.columns(time, inside)
        # A token that is deleted in this very step was kept until then.
        now = (jump.keep[t - 1] - jump.keep[t])[:, None]
        kept = torch.where(is_del[..., None], now[..., None], kept)
        pair = torch.where(is_del, jump.replace_del[time] - now, jump.background.prob(time, inside))
        kept = torch.nn.functional.pad(kept * seen.mask[..., None], (0, 1))
        return cls(
            kept.float().permute(1, 2, 0).contiguous(),
            (pair * seen.mask).clamp_min(0.0).float().T.contiguous(),
            jump.insert_prob(time, z).float().T.contiguous(),
            jump.stop[t].float(),
            jump.delete[t].float().expand(seen.width + 1, -1),
            seen.mask.T,
        )

    @classmethod
    def unseen(cls, frozen: Batch, size: int) -> _Channel:
        """What is not frozen is deleted."""
        length, rows = frozen.width, len(frozen)
        none = torch.zeros(length, rows, device=frozen.device)
        one = torch.ones(rows, device=frozen.device)
        kept = none[:, None].expand(-1, size + 1, -1)
        return cls(kept, none, none, one, one.expand(length + 1, -1), none.bool())

    def holding(self, seen: Batch, held: HeldPlaces) -> _Channel:
        """Frozen tokens come from their likes, and nothing is deleted outside of gaps."""
        symbols = self.kept.shape[1]
        own = torch.nn.functional.one_hot(seen.tokens.clamp(0, symbols - 2), symbols)
        frozen = held.frozen.T
        return replace(
            self,
            kept=torch.where(frozen[:, None], own.permute(1, 2, 0).to(self.kept), self.kept),
            pair=self.pair.masked_fill(frozen, 0.0),
            insert=self.insert.masked_fill(frozen, 0.0),
            delete=self.delete.masked_fill(~held.open_slots.T, 0.0),
            free=self.free & ~frozen,
        )


@dataclass(frozen=True, eq=False)
class _Passes:
    model: Automaton
    channel: _Channel
    seen: Batch
    counts: int
    remembered: int
    deleting: bool
    lasting: Float[Tensor, " states"]
    """The probability that more tokens follow than are remembered."""

    def posterior(self) -> EditPosterior:
        """Both passes, and at each place their product."""
        sources, same, ended = self._passed()
        channel = self.channel
        by_source = channel.stop * sources.sum(dim=2)
        # Weights of a kind that q cannot make are 0/0: they are 0.
        alone = by_source.sum(dim=1) * channel.pair / channel.insert
        inserted = (same + alone.nan_to_num(posinf=0.0)).where(channel.free, 0.0)
        stays = (sources * channel.kept[:, :-1, None]).sum(dim=1)
        paired = channel.pair[:, None] * sources.sum(dim=1)
        delete = channel.delete[:-1, None]
        numbers = self._spread(channel.stop * stays, delete)
        numbers[:, 1:] += self._spread(channel.stop * paired, delete)[:, :-1]
        numbers[:, 0] += same * channel.insert
        deletions = torch.nn.functional.pad(
            _normalized(numbers, dim=1).permute(2, 0, 1), (0, 0, 0, 1)
        )
        where = self.seen.lengths[:, None, None].expand(-1, 1, self.counts + 1)
        at_end = _normalized(self._spread(ended, self._delete_at_end()), dim=0).T[:, None]
        return EditPosterior(
            by_source.permute(2, 0, 1).contiguous(),
            inserted.T.contiguous(),
            deletions.scatter(1, where, at_end),
        )

    def _passed(self) -> _Passed:
        """What both passes find, by the compiled ones where they can be had."""
        channel, lengths = self.channel, self.seen.lengths
        device = channel.kept.device
        if native_passes.available(device):
            given: dict[str, Any] = {
                "kept": channel.kept,
                "pair": channel.pair,
                "insert": channel.insert,
                "delete": channel.delete,
                "stop": channel.stop,
                "lengths": lengths,
                "remembered": self.remembered,
                "deleting": self.deleting,
            }
            if pruned_passes.available(device) and pruned_passes.worth_it(self.model):
                return _Passed(*pruned_passes.pruned_passes(self.model, self.lasting, **given))
            sources, same, last = native_passes.native_passes(self.model, self.lasting, **given)
            return _Passed(sources, same, self._ended(last))
        before, reached = self._forward()
        sources, same = self._backward(before, reached)
        places = enumerate(lengths.tolist())
        last = torch.stack([before[length][:, row] for row, length in places], dim=1)
        return _Passed(sources, same, self._ended(last))

    def _forward(
        self,
    ) -> tuple[list[Float[Tensor, "states batch"]], list[list[Float[Tensor, "states batch"]]]]:
        """A_i at i = 0…length, each row with a factor of its own, and one token after each."""
        channel, (length, _, rows) = self.channel, self.channel.kept.shape
        start = torch.zeros(len(self.model.end), rows, device=channel.kept.device)
        start[0] = 1.0
        before, reached = [start], []
        replaced = channel.stop * (channel.kept + channel.pair[:, None])
        for i in range(length):
            here = self._reached(before[i], channel.delete[i])
            weights = here[0] + here[1] if self.deleting else here[0].clone()
            for each in here[2:]:
                weights += each
            weights *= replaced[i].index_select(0, self.model.last)
            weights.addcmul_(before[i], channel.insert[i])
            before.append(_scaled(weights, weights.sum(dim=0)))
            reached.append(here)
        return before, reached

    def _reached(
        self, weights: Float[Tensor, "states batch"], delete: Float[Tensor, " batch"]
    ) -> list[Float[Tensor, "states batch"]]:
        """Where x_0 can be one token later, by the number n of deletions before that token.

        M (β̄ M)ⁿ A for n = 0…remembered, then all larger n, at the stationary distribution.
        """
        told = [self.model.onward(weights)]
        if not self.deleting:
            return told
        for _ in range(self.remembered):
            told.append(self.model.onward(told[-1]).mul_(delete))
        ratio = self._ratio(delete)
        tail = ratio * told[-1].sum(dim=0) / (1.0 - ratio)
        return [*told, self.model.stationary[:, None] * tail]

    def _backward(
        self,
        before: list[Float[Tensor, "states batch"]],
        reached: list[list[Float[Tensor, "states batch"]]],
    ) -> tuple[Float[Tensor, "length tokens numbers batch"], Float[Tensor, "length batch"]]:
        """At each place: the next token of x_0 is v after n deletions, or x_0 stays where it is.

        Both agree with all that follows, up to a factor.
        """
        channel, (length, _, rows) = self.channel, self.channel.kept.shape
        size, device = len(self.model.common), channel.kept.device
        kinds = self.remembered + 2 if self.deleting else 1
        sources = torch.empty(length, size, kinds, rows, device=device)
        same = torch.empty(length, rows, device=device)
        agreeing = torch.empty(len(self.model.end), kinds, rows, device=device)
        used = channel.kept + channel.pair[:, None]
        shortest = min(self.seen.lengths.tolist(), default=0)
        ended = self.model.end[:, None].expand(-1, rows)
        message = channel.stop * self._over_deletions(ended, self._delete_at_end())
        for i in range(length - 1, -1, -1):
            for kind, here in enumerate(reached[i]):
                torch.mul(here, message, out=agreeing[:, kind])
            by_token = self.model.by_token @ agreeing.flatten(1)
            sources[i] = by_token.reshape(size, kinds, rows)
            same[i] = (before[i] * message).sum(dim=0)
            read = message * used[i].index_select(0, self.model.last)
            earlier = self._over_deletions(self.model.backward(read), channel.delete[i])
            earlier.mul_(channel.stop)
            earlier.addcmul_(message, channel.insert[i])
            # A factor of its own for each row keeps numbers from vanishing.
            _scaled(earlier, earlier.amax(dim=0))
            inside = i < shortest
            message = earlier if inside else torch.where(i < self.seen.lengths, earlier, message)
        return sources, same

    def _ratio(self, delete: Float[Tensor, "*places"]) -> Float[Tensor, "*places"]:
        """One more deletion, in the long run; below 1, where sums over all numbers have an end."""
        return (delete * self.model.survival).clamp_max(_LARGEST_RATIO)

    def _over_deletions(
        self, value: Float[Tensor, "states batch"], delete: Float[Tensor, " batch"]
    ) -> Float[Tensor, "states batch"]:
        """Dᵀ value: any number of tokens of x_0 may be deleted first."""
        if not self.deleting:
            return value.clone()
        total, each = value.clone(), value
        for _ in range(self.remembered):
            each = self.model.backward(each).mul_(delete)
            total += each
        later = delete ** (self.remembered + 1) * (self.model.stationary @ value)
        later = later / (1.0 - self._ratio(delete))
        return total.addcmul_(self.lasting[:, None], later)

    def _spread(
        self, weights: Float[Tensor, "*places numbers batch"], delete: Float[Tensor, "*_ batch"]
    ) -> Float[Tensor, "*places counts batch"]:
        """Weights of n = 0…counts, where the last given one is that of all larger n together."""
        *places, _, rows = weights.shape
        found = torch.zeros(*places, self.counts + 1, rows, device=weights.device)
        told = min(self.remembered, self.counts) + 1
        found[..., :told, :] = weights[..., :told, :]
        if self.deleting and self.counts > self.remembered:
            further = torch.arange(self.counts - self.remembered, device=weights.device)
            ratio = self._ratio(delete)
            found[..., told:, :] = weights[..., -1:, :] * (1.0 - ratio) * ratio ** further[:, None]
        return found

    def _ended(self, last: Float[Tensor, "states batch"]) -> Float[Tensor, "numbers batch"]:
        """Weights of n in the slot before the end, from A at the end."""
        weights = (self.model.end @ last)[None]
        if self.deleting:
            delete = self._delete_at_end()
            *told, tail = self._reached(last, delete)
            told[-1] = told[-1] + tail
            after = [delete * (self.model.end @ each) for each in told]
            weights = torch.cat([weights, torch.stack(after)])
        return weights

    def _delete_at_end(self) -> Float[Tensor, " batch"]:
        return self.channel.delete.gather(0, self.seen.lengths[None])[0]


def _scaled(
    weights: Float[Tensor, "states batch"], size: Float[Tensor, " batch"]
) -> Float[Tensor, "states batch"]:
    """In place: the weights over their size, or 0 for 0, since padding is impossible."""
    weights.mul_(_SIZE * size.reciprocal().nan_to_num(posinf=0.0))
    return torch.threshold_(weights, _NEGLIGIBLE, 0.0)


def _normalized(weights: Float[Tensor, "*shape"], dim: int) -> Float[Tensor, "*shape"]:
    """Summing to 1, or all 0."""
    return (weights / weights.sum(dim=dim, keepdim=True)).nan_to_num()
