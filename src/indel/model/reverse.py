"""One learned step back, p_θ(x_{t−1} | x_t): the network's guess and q combined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from indel.batch import Batch, pack, spread
from indel.log_space import logaddexp, logsumexp, safe_log, weighted
from indel.model.denoiser import DenoiserOutput
from indel.model.edit_weights import EditWeights as EditWeights
from indel.process import Posterior, Schedule
from indel.process.counts import cached_deletion_tables, observed_limit
from indel.process.tables import Tables
from indel.randomness import Randomness, index_at, uniform


class CrossEntropy(NamedTuple):
    """−E_q[log p_θ(x_{t−1} | x_t)], in two parts."""

    tokens: Float[Tensor, " batch"]
    deletions: Float[Tensor, " batch"]


@dataclass(frozen=True)
class ReverseStep:
    """p_θ(x_{t−1} | x_t): independent values of the tokens and numbers of DELs before them.

    p_θ(y | x_t)   ∝ (Σ_x p̃(x) Ā_{t−1}[x,y] + p̃(ε) ᾱ_{t−1}[y] / Σ_{y′≠DEL} ᾱ_{t−1}[y′]) Q_t[y,z]
    p_θ(n_obs)     = Σ_n p̃(n) M_{t−1}[n, n_obs]

    The INS of x_t carry no information about x_{t−1}: what follows speaks of `seen`, x_t without.

    Paper: Eq. (1) and App. B.4
    """

    seen: Batch
    """x_t without its INS."""
    logp_previous: Float[Tensor, "batch length previous"]
    """Regular values, then INS; each row at a token sums to 1."""
    logp_deleted: Float[Tensor, "batch slots counts"]
    """log p̃(n), zero where q cannot delete; the row at |seen| is EOS's."""
    tables: Tables
    t: Int[Tensor, " batch"]

    @classmethod
    def of(
        cls,
        schedule: Schedule,
        output: DenoiserOutput,
        seen: Batch,
        t: Int[Tensor, " batch"],
        *,
        weights: EditWeights | None = None,
        given: Bool[Tensor, "batch length"] | None = None,
    ) -> ReverseStep:
        """Combine the two heads with q; `seen` is what the network saw, x_t without INS.

        `given` marks tokens that q has not made: there is no law of what they were.
        """
        tables = schedule.tables(seen.device)
        weights = EditWeights.normalized(tables.jump) if weights is None else weights
        # Half precision is too coarse for logarithms: p_θ would not sum to 1.
        logits_token, logits_deletions = (
            each.to(torch.promote_types(each.dtype, torch.float32)) for each in output
        )
        logp = log_values(tables, logits_token, t, weights)
        columns = tables.step.columns(t[:, None], seen.tokens).log()
        logp = logp + columns.to(logp.dtype)
        total = logsumexp(logp, dim=-1, keepdim=True)
        made = seen.mask if given is None else seen.mask & ~given
        _refuse_impossible(seen, made, total[..., 0], t)
        logp = logp - total.masked_fill(total == -torch.inf, 0.0)
        deleted = log_deleted(logits_deletions, t, weights)
        return cls(seen, logp, deleted, tables, t)

    def log_prob(self, x_prev: Batch) -> Float[Tensor, " batch"]:
        """log p_θ(x_{t−1} | x_t); −inf for what cannot be.

        Paper: Eq. (1)
        """
        del_ = self.tables.jump.vocab_size + 1
        kept = x_prev.without(del_)
        fits = kept.lengths == self.seen.lengths
        values = kept.widened(self.seen.width).tokens[:, : self.seen.width]
        logp = self.logp_previous.gather(2, values.clamp_min(0)[..., None])[..., 0]
        tokens = torch.where(self.seen.mask, logp, 0.0).sum(dim=1)
        counts = _dels_before(x_prev, del_)
        width = self.seen.width + 1
        pad = torch.nn.functional.pad
        counts = pad(counts, (0, max(0, width - counts.shape[1])))[:, :width]
        most = int(counts.max()) if counts.numel() else 0
        logp_observed = self.logp_observed(most)
        chosen = logp_observed.gather(2, counts[..., None])[..., 0]
        deletions = torch.where(self._slots(), chosen, 0.0).sum(dim=1)
        return torch.where(fits, tokens + deletions, -torch.inf)

    def sample(self, *, generator: Randomness) -> Batch:
        """x_{t−1} ~ p_θ(x_{t−1} | x_t)."""
        dtype = self.tables.dtype
        noise = uniform(generator, *self.seen.tokens.shape, dtype=dtype)
        values = index_at(self.logp_previous.to(dtype).exp().cumsum(dim=-1), noise)
        noise = uniform(generator, len(self.seen), self.seen.width + 1, dtype=dtype)
        counts = index_at(self.prob_observed().cumsum(dim=-1), noise)
        return self._lay_out(values, counts)

    def mode(self) -> Batch:
        """The most likely x_{t−1}."""
        return self._lay_out(self.logp_previous.argmax(dim=-1), self.logp_observed().argmax(dim=-1))

    def cross_entropy(self, posterior: Posterior, x_t: Batch) -> CrossEntropy:
        """−Σ q(x_{t−1}) log p_θ(x_{t−1} | x_t) for the marginals of a posterior at x_t.

        Paper: Eq. (3)
        """
        at = self._positions(x_t)
        # Beyond the end of a row stands EOS's place, which is no token; it is masked below.
        tokens_at = at[:, :-1, None].clamp_max(max(x_t.width - 1, 0))
        previous = posterior.prob_previous.gather(
            1, tokens_at.expand(-1, -1, posterior.prob_previous.shape[2])
        )
        observed = posterior.prob_deletions.gather(
            1, at[..., None].expand(-1, -1, posterior.prob_deletions.shape[2])
        )
        logp_observed = self.logp_observed(observed.shape[2] - 1)
        tokens = weighted(previous.to(self.logp_previous.dtype), self.logp_previous).sum(dim=-1)
        deletions = weighted(observed.to(logp_observed.dtype), logp_observed).sum(dim=-1)
        return CrossEntropy(
            -torch.where(self.seen.mask, tokens, 0.0).sum(dim=1),
            -torch.where(self._slots(), deletions, 0.0).sum(dim=1),
        )

    def logp_observed(self, most: int | None = None) -> Float[Tensor, "batch slots observed"]:
        """log p_θ(n_obs) for 0…most DELs in each slot; by default all but 1e−12 of the mass."""
        law = self._law_of_observed(most)
        return log_observed(self.logp_deleted, law).to(self.logp_deleted.dtype)

    def prob_observed(self) -> Float[Tensor, "batch slots observed"]:
        """p_θ(n_obs) to draw from: all but 1e−12 of the mass, in the precision of the tables."""
        # Linear: what underflows is never drawn, so the care that log_observed takes is not needed.
        return self.logp_deleted.to(self.tables.dtype).exp() @ self._law_of_observed()

    def rows(self, index: Int[Tensor, " rows"]) -> ReverseStep:
        """The law of the chosen rows."""
        return replace(
            self,
            seen=self.seen.rows(index),
            logp_previous=self.logp_previous[index],
            logp_deleted=self.logp_deleted[index],
            t=self.t[index],
        )

    def _law_of_observed(self, most: int | None = None) -> Float[Tensor, "batch counts observed"]:
        """M_{t−1}[n, n_obs] for 0…most DELs; by default all but 1e−12 of the mass."""
        jump, deleted = self.tables.jump, self.logp_deleted.shape[-1] - 1
        most = observed_limit(jump, self.t, deleted) if most is None else most
        return cached_deletion_tables(jump, self.t, deleted, most).plain

    def _slots(self) -> Tensor:
        positions = torch.arange(self.seen.width + 1, device=self.seen.device)
        return positions <= self.seen.lengths[:, None]

    def _positions(self, x_t: Batch) -> Int[Tensor, "batch slots"]:
        """Where the tokens of `seen`, and EOS, stand in x_t."""
        ins = self.tables.jump.vocab_size
        positions = torch.arange(x_t.width, device=x_t.device).expand(x_t.tokens.shape)
        kept = x_t.mask & (x_t.tokens != ins)
        packed = pack(positions, kept, fill=0)[:, : self.seen.width]
        packed = torch.nn.functional.pad(packed, (0, 1))
        return packed.scatter(1, self.seen.lengths[:, None], x_t.lengths[:, None])

    def _lay_out(
        self, values: Int[Tensor, "batch length"], counts: Int[Tensor, "batch slots"]
    ) -> Batch:
        """The sequence with its DELs: counts[i] of them before token i, and before the end."""
        placed = spread(values, self.seen.mask, counts.masked_fill(~self._slots(), 0))
        tokens = torch.where(placed.source < 0, self.tables.jump.vocab_size + 1, placed.tokens)
        return Batch(tokens, placed.lengths)


def log_deleted(
    logits: Float[Tensor, "batch slots counts"], t: Int[Tensor, " batch"], weights: EditWeights
) -> Float[Tensor, "batch slots counts"]:
    """log p̃(n), weighted by q and normalised: only n = 0 where q cannot delete."""
    counts = torch.arange(logits.shape[-1], device=logits.device)
    each = weights.log_delete[t].to(logits.dtype)[:, None, None]
    allowed = torch.where(counts > 0, counts * each, 0.0)
    return torch.log_softmax(logits + allowed, dim=-1)


def log_observed(
    logp_deleted: Float[Tensor, "batch slots counts"],
    law: Float[Tensor, "batch counts observed"],
) -> Float[Tensor, "batch slots observed"]:
    """log p_θ(n_obs) = log Σ_n p̃(n) M_{t−1}[n, n_obs], for the table M of each sequence.

    Paper: App. B.4
    """
    logp = logp_deleted.to(law.dtype)
    total = logp.exp() @ law
    # A product of matrices is fast but linear. Slots where a possible number came out as next to
    # nothing, because all that could make it underflowed, are summed again in log space.
    least = 1e8 * torch.finfo(law.dtype).tiny
    lost = (total < least) & (law > 0).any(dim=1)[:, None, :]
    if bool(lost.any()):
        # What takes a number of deletions that p̃ rules out is zero for good.
        allowed = (logp > -torch.inf).to(law.dtype)
        lost &= allowed @ (law > 0).to(law.dtype) > 0
    again = lost.any(dim=-1)
    # The reciprocal of next to nothing would be infinite, and its gradient not a number.
    total = safe_log(total.masked_fill(again[..., None], 1.0))
    rows, slots = again.nonzero(as_tuple=True)
    if len(rows):
        exact = logsumexp(logp[rows, slots][..., None] + law[rows].log(), dim=1)
        total = total.index_put((rows, slots), exact)
    return total


def log_values(
    tables: Tables,
    logits: Float[Tensor, "batch length values"],
    t: Int[Tensor, " batch"],
    weights: EditWeights,
) -> Float[Tensor, "batch length values"]:
    """log(keep Σ_x p̃(x) Ā_{t−1}[x,y] + insert p̃(ε) ᾱ_{t−1}[y]) for y regular, then INS."""
    jump, before, dtype = tables.jump, t - 1, logits.dtype
    # An edit that q cannot make gets no probability, and the others share it.
    impossible = (weights.insert[t] == 0)[:, None]
    barred = torch.cat(
        [logits[..., :-1], logits[..., -1:].masked_fill(impossible[..., None], -torch.inf)], dim=-1
    )
    logp = torch.log_softmax(barred, dim=-1)
    keep = weights.keep[t].log().to(dtype)[:, None, None]
    insert = logp[..., -1:] + weights.insert[t].log().to(dtype)[:, None, None]
    kept = jump.kept.log_apply(before, logp[..., :-1]) + keep
    inserted = insert + jump.inserts.vectors(before).log().to(dtype)[:, None, :]
    fresh = insert + jump.insert_ins[before].log().to(dtype)[:, None, None]
    return torch.cat([logaddexp(kept, inserted), fresh], dim=-1)


def _dels_before(batch: Batch, del_: int) -> Int[Tensor, "batch slots"]:
    """How many DELs stand right before each token that is none, and before the end."""
    is_del = batch.tokens == del_
    kept = batch.mask & ~is_del
    # DELs so far, read off at each kept token and at the end; their differences are the runs.
    so_far = is_del.cumsum(dim=1)
    at_kept = pack(so_far, kept, fill=0)
    at_kept = torch.nn.functional.pad(at_kept, (0, 1))
    total = is_del.sum(dim=1)
    count = kept.sum(dim=1)
    at_kept = at_kept.scatter(1, count[:, None], total[:, None])
    runs = torch.diff(at_kept, dim=1, prepend=torch.zeros_like(at_kept[:, :1]))
    positions = torch.arange(runs.shape[1], device=runs.device)
    return runs.masked_fill(positions > count[:, None], 0)


def _refuse_impossible(
    seen: Batch,
    made: Bool[Tensor, "batch length"],
    total: Float[Tensor, "batch length"],
    t: Int[Tensor, " batch"],
) -> None:
    impossible = made & (total == -torch.inf)
    if bool(impossible.any()):
        row, position = impossible.nonzero()[0].tolist()
        raise ValueError(
            f"q cannot produce token {seen.tokens[row, position].item()} of x_t (row {row}, "
            f"position {position} without INS) at t = {t[row].item()}"
        )
