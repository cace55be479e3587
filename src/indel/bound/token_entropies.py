"""The token part of L_{t−1} for mixture transitions, at the cost of a softmax cross-entropy.

Where A = keep·I + 1·vᵀ, both the posterior and p_θ are a few spikes (at y = x, y = z and INS) on a
smooth background that does not depend on the token: Σ_y post(y) log p_θ(y) needs one pass over the
logits for the background, and look-ups for the spikes. Nothing dense is built but what autograd
keeps of that one pass. The derivation is in docs/fast-loss.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from indel.batch import Batch
from indel.bound.background_sums import (
    BackgroundSum,
    Parts,
    Pieces,
    Rows,
    expand,
    matrix_of,
    mix,
    pieces,
)
from indel.bound.noised import SeenEdits
from indel.log_space import finite, logaddexp, logsumexp, weighted
from indel.model.reverse import EditWeights
from indel.process.stacks import Basis
from indel.process.tables import MixtureTables

# Times have shape (batch, 1): what depends on t alone is looked up once for each sequence.
Times = Int[Tensor, "batch 1"]
Tokens = Int[Tensor, "batch length"]


class TokenTerms(NamedTuple):
    """For each token of x_t, closed forms in nats."""

    cross_entropy: Rows
    """−Σ_y q(y | x_t, x_0, a) log p_θ(y | x_t)."""
    forward: Rows
    """Σ_y q(y | x_t, x_0, a) log Q_t[y, z], its share of E[log q(x_t | x_{t−1})]."""


def token_terms(
    tables: MixtureTables,
    weights: EditWeights,
    logits: Float[Tensor, "batch length values"],
    seen: Batch,
    edits: SeenEdits,
    times: Int[Tensor, " batch"],
) -> TokenTerms:
    """Cross-entropy and forward term of each token that the network sees; zero at padding.

    Paper: Eq. (3) with Eqs. (1), (13), (14) and (15)
    """
    x, z, t, valid = edits.origin.clamp_min(0), seen.tokens.clamp_min(0), times[:, None], seen.mask
    step = _StepLaw.of(tables, z, t).only(valid)
    post = _SmoothPosterior.of(tables, step, x, z, edits.inserted, t).only(valid)
    dtype = torch.promote_types(logits.dtype, torch.float32)
    # p_θ is these values times Q_t[y, z], normalised; Q_t[y, z] itself is in both parts.
    forward = post.expected_log_step(step, x, z).to(dtype)
    logits = logits.to(dtype)
    cross_entropy, lost = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
        logits, tables, weights, step, post, x, z, t, pieces(logits, valid)
    )
    rows, places = lost.nonzero(as_tuple=True)
    if len(rows):
        background = post.background[rows, places, None].to(dtype)
        slow = _slow_sum(tables, weights, logits[rows, places, None], background, t[rows])
        cross_entropy = cross_entropy.index_put((rows, places), -slow[:, 0], accumulate=True)
    return TokenTerms(torch.where(valid, cross_entropy - forward, 0.0), forward)


class _StepLaw(NamedTuple):
    """Q_t[y, z] as a function of y: base, one spike at y = z, and a value at INS."""

    base: Rows
    spike: Rows
    ins: Rows

    @classmethod
    def of(cls, tables: MixtureTables, z: Tokens, t: Times) -> _StepLaw:
        step, kernels = tables.step, tables.transition
        deleted, is_del = step.delete[t], z > step.vocab_size
        regular = z.clamp_max(step.vocab_size - 1)
        base = torch.where(is_del, deleted, (1.0 - deleted) * kernels.background.prob(t, regular))
        spike = torch.where(is_del, 0.0, (1.0 - deleted) * kernels.spike[t])
        ins = step.prob(t, torch.full_like(z, step.vocab_size), z)
        return cls(base, spike, ins)

    def only(self, valid: Bool[Tensor, "batch length"]) -> _StepLaw:
        """A harmless law where there is no token."""
        return _StepLaw(torch.where(valid, self.base, 1.0), self.spike * valid, self.ins * valid)


class _SmoothPosterior(NamedTuple):
    """q(y | x_t, x_0, a) = base·(smooth background) + spikes, as in `posteriors._previous`."""

    background: Parts
    """Weights of the parts that make base · g_y."""
    at_x: Rows
    extra_at_z: Rows
    """What Q_t's spike adds at y = z."""
    at_ins: Rows
    density_z: Rows
    """The background's value at y = z, spike included."""

    @classmethod
    def of(
        cls, tables: MixtureTables, step: _StepLaw, x: Tokens, z: Tokens, inserted: Tensor, t: Times
    ) -> _SmoothPosterior:
        jump, before = tables.jump, t - 1
        kernels, inserts, pairs = tables.kept, tables.inserts, tables.background
        kept = jump.keep[before].masked_fill(inserted, 0.0)
        paired = (jump.replace_del * jump.loops)[before]
        as_insert = torch.where(inserted, 1.0, paired)
        smooth = (
            kept[..., None] * kernels.background.weights[before]
            + pairs.weights[before].masked_fill(inserted[..., None], 0.0)
            + as_insert[..., None] * inserts.weights[before]
        )
        moved = jump.insert_prob(t, z) / ((1.0 - tables.step.insert[t]) * jump.loops[before])
        total = torch.where(inserted, moved, jump.replace_prob(t, x, z))
        scale = 1.0 / total
        density = inserts.basis.densities(z.clamp_max(jump.vocab_size - 1))
        at_z = (smooth * density).sum(dim=-1).masked_fill(z > jump.vocab_size, 0.0) * scale
        spike_at_x = kept * kernels.spike[before] * scale
        return cls(
            background=smooth * (step.base * scale)[..., None],
            at_x=spike_at_x * (step.base + step.spike * (x == z)),
            extra_at_z=step.spike * at_z,
            at_ins=as_insert * jump.insert_ins[before] * step.ins * scale,
            density_z=(step.base + step.spike) * at_z,
        )

    def only(self, valid: Bool[Tensor, "batch length"]) -> _SmoothPosterior:
        """No weight where there is no token."""
        return _SmoothPosterior(
            self.background.masked_fill(~valid[..., None], 0.0),
            *(each.masked_fill(~valid, 0.0) for each in self[1:]),
        )

    def expected_log_step(self, step: _StepLaw, x: Tokens, z: Tokens) -> Rows:
        """Σ_y q(y) log Q_t[y, z]: one value at y = z, one at INS, one everywhere else."""
        at_z = self.density_z + self.at_x * (x == z)
        elsewhere = self.background.sum(dim=-1) + self.at_x + self.extra_at_z - at_z
        # The difference of equal numbers may round to just below nothing.
        elsewhere = elsewhere.clamp_min(0.0)
        return (
            torch.xlogy(elsewhere, step.base)
            + torch.xlogy(at_z, step.base + step.spike)
            + torch.xlogy(self.at_ins, step.ins)
        )


class _LogitStatistics(NamedTuple):
    """What all but one sum over y needs of the logits."""

    regular: Rows
    """log Σ_y exp(logit_y) over regular y."""
    at_x: Rows
    at_z: Rows
    insert: Rows
    """The logit of ε."""


class _Guess(NamedTuple):
    """log(keep·p̃(y) + smooth_y): p_θ before Q_t and the normalisation."""

    basis: Basis
    log_total: Rows
    """log Σ of all exponentiated logits, p̃'s normaliser."""
    log_keep: Rows
    log_regular: Rows
    """log Σ_x p̃(x), weighted by keep."""
    log_insert: Rows
    """log p̃(ε), weighted by insert."""
    logp_x: Rows
    logp_z: Rows
    log_drawn: Parts
    log_inserts: Parts
    log_ins: Rows
    log_regular_inserts: Rows

    @classmethod
    def of(
        cls,
        tables: MixtureTables,
        weights: EditWeights,
        logits: _LogitStatistics,
        t: Times,
    ) -> _Guess:
        jump, before, dtype = tables.jump, t - 1, logits.regular.dtype
        kernels, inserts = tables.kept, tables.inserts
        # An edit that q cannot make gets no probability, and the others share it.
        logit_insert = logits.insert.masked_fill(weights.insert[t] == 0, -torch.inf)
        log_total = torch.logaddexp(logits.regular, logit_insert)
        keep = weights.keep[t].log().to(dtype)
        insert = weights.insert[t].log().to(dtype) + logit_insert - log_total
        return cls(
            basis=inserts.basis,
            log_total=log_total,
            log_keep=keep + kernels.spike[before].log().to(dtype),
            log_regular=keep + logits.regular - log_total,
            log_insert=insert,
            logp_x=logits.at_x - log_total,
            logp_z=logits.at_z - log_total,
            log_drawn=kernels.background.weights[before].log().to(dtype),
            log_inserts=inserts.weights[before].log().to(dtype),
            log_ins=insert + jump.insert_ins[before].log().to(dtype),
            log_regular_inserts=insert + inserts.mass[before].log().to(dtype),
        )

    @property
    def log_everything(self) -> Rows:
        """The sum over all regular y."""
        return logaddexp(self.log_regular, self.log_regular_inserts)

    @property
    def log_smooth(self) -> Parts:
        """log of the weights of the smooth parts."""
        return logaddexp(
            self.log_regular[..., None] + self.log_drawn,
            self.log_insert[..., None] + self.log_inserts,
        )

    def relative(self) -> tuple[Rows, Parts, Rows]:
        """The log of the sum over all y, and log smooth and log(keep / total) relative to it.

        Relative to it little underflows; it is a constant that cancels.
        """
        level = finite(self.log_everything.detach())
        shift = self.log_keep - self.log_total - level
        return level, self.log_smooth - level[..., None], shift

    def log_at(self, logp: Rows, token: Tokens) -> Rows:
        """log(keep·p̃(y) + smooth_y) at one y."""
        density = self.basis.densities(token.clamp_max(self.basis.vocab_size - 1))
        smooth = logsumexp(self.log_smooth + density.log().to(logp.dtype), dim=-1)
        return logaddexp(self.log_keep + logp, smooth)

    def log_normaliser(self, step: _StepLaw, z: Tokens) -> Rows:
        """log Σ_y of all of it times Q_t[y, z]."""
        dtype = self.log_total.dtype
        terms = [
            self.log_everything + step.base.log().to(dtype),
            self.log_at(self.logp_z, z) + step.spike.log().to(dtype),
            self.log_ins + step.ins.log().to(dtype),
        ]
        return logsumexp(torch.stack(terms, dim=-1), dim=-1)


class _CrossEntropy(torch.autograd.Function):
    """−Σ_y q(y) log(p_θ(y | x_t) / Q_t[y, z]), and where the background is left out of it.

    All but the background's sum over y depends on four numbers of each token, so that the
    derivative by these is taken at once. The gradient is one pass over the logits, in which the
    exponentials are worked out again: nothing of their size is kept.
    """

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        tables: MixtureTables,
        weights: EditWeights,
        step: _StepLaw,
        post: _SmoothPosterior,
        x: Tokens,
        z: Tokens,
        t: Times,
        parts: Pieces,
    ) -> tuple[Tensor, Tensor]:
        values = torch.empty_like(logits[..., :-1], memory_format=torch.contiguous_format)
        top, total = logits.new_zeros(values.shape[:-1]), logits.new_ones(values.shape[:-1])
        for part in parts:
            regular, each = logits[part][..., :-1], values[part]
            top[part] = highest = finite(regular.amax(dim=-1))
            total[part] = torch.sub(regular, highest[..., None], out=each).exp_().sum(dim=-1)
        places = (x, z.clamp_max(tables.jump.vocab_size - 1))
        at_x, at_z = (logits.gather(-1, place[..., None])[..., 0] for place in places)
        differentiate = ctx.needs_input_grad[0]
        numbers = (total.log() + top, at_x, at_z, logits[..., -1].clone())
        known = _LogitStatistics(*(each.requires_grad_(differentiate) for each in numbers))
        with torch.set_grad_enabled(differentiate):
            guess = _Guess.of(tables, weights, known, t)
            background = _Background.of(guess, post.background.to(top.dtype))
            scale = (background.shift.detach() + top).exp()
            result = (
                guess.log_normaliser(step, z)
                - BackgroundSum.apply(values, scale, *background[:3], guess.basis, parts)  # type: ignore[no-untyped-call]
                - background.level * background.weights.sum(dim=-1)
                - weighted(post.at_x.to(top.dtype), guess.log_at(guess.logp_x, x))
                - weighted(post.extra_at_z.to(top.dtype), guess.log_at(guess.logp_z, z))
                - weighted(post.at_ins.to(top.dtype), guess.log_ins)
            )
            loss = result.sum()
        if differentiate:
            grads = torch.autograd.grad(loss, known)
            smooth = background.smooth.detach()
            ctx.save_for_backward(
                logits, top, total, scale, smooth, background.weights, *places, *grads
            )
            ctx.basis, ctx.parts = guess.basis, parts
        ctx.mark_non_differentiable(background.lost)
        return result.detach(), background.lost

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        logits, top, total, scale, smooth, weights, x, z, *by_known = ctx.saved_tensors
        by_regular, by_x, by_z, by_insert = (each * grad for each in by_known)
        # Where no regular token is possible, none gets a gradient.
        share = (by_regular / total).masked_fill(total == 0, 0.0)[..., None]
        weights = weights * (grad * scale)[..., None]
        result = torch.empty_like(logits, memory_format=torch.contiguous_format)
        for part in ctx.parts:
            result[part[0], part[1].stop :] = 0.0
            values = (logits[part][..., :-1] - top[part][..., None]).exp_()
            each = mix(values, scale[part], smooth[part], weights[part], ctx.basis).reciprocal_()
            each *= -expand(weights[part], ctx.basis)
            each += share[part]
            torch.mul(each, values, out=result[part][..., :-1])
        result[..., -1] = by_insert
        result.scatter_add_(-1, x[..., None], by_x[..., None])
        result.scatter_add_(-1, z[..., None], by_z[..., None])
        return result, *[None] * 8


class _Background(NamedTuple):
    """The sum Σ_y weights_y · log(exp(logit_y + shift) + smooth_y) + level · Σ_y weights_y."""

    shift: Rows
    smooth: Parts
    weights: Parts
    level: Rows
    lost: Bool[Tensor, "batch length"]
    """Where linear numbers underflow; there the weights are zero."""

    @classmethod
    def of(cls, guess: _Guess, weights: Parts) -> _Background:
        level, log_smooth, shift = guess.relative()
        linear = expand(log_smooth.detach().exp(), guess.basis)
        missing = linear < torch.finfo(weights.dtype).tiny
        lost = (missing & (expand(weights, guess.basis) > 0)).any(dim=-1)
        # Tokens without a background ask for nothing: any positive number keeps their logarithm
        # finite.
        unused = (lost | (weights.sum(dim=-1) == 0))[..., None]
        smooth = log_smooth.exp().masked_fill(unused, 1.0)
        return cls(shift, smooth, weights.masked_fill(unused, 0.0), level, lost)


def _slow_sum(
    tables: MixtureTables,
    weights: EditWeights,
    logits: Float[Tensor, "batch length values"],
    background: Parts,
    t: Times,
) -> Rows:
    """Σ_y background_y · log(keep·p̃(y) + smooth_y) in log space, for the tokens that need it."""
    known = torch.logsumexp(logits[..., :-1], dim=-1)
    # What the guess says of x and z is not asked for.
    guess = _Guess.of(tables, weights, _LogitStatistics(known, known, known, logits[..., -1]), t)
    level, log_smooth, shift = guess.relative()
    matrix = matrix_of(guess.basis, background)
    smooth = logsumexp(log_smooth[..., None] + matrix.log(), dim=-2)
    values = logaddexp(logits[..., :-1] + shift[..., None], smooth)
    return weighted(background @ matrix, values).sum(dim=-1) + level * background.sum(dim=-1)
