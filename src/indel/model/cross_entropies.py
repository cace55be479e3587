"""The token part of L_{t−1} for mixture transitions, at the cost of a softmax cross-entropy.

Where A = keep·I + 1·vᵀ, both the posterior and p_θ are a few spikes (at y = x, y = z and INS) on a
smooth background that does not depend on the token: Σ_y post(y) log p_θ(y) needs one pass over the
logits for the background, and look-ups for the spikes. Nothing dense is built but what autograd
keeps of that one pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from indel.log_space import finite, logaddexp, logsumexp, weighted
from indel.model.reverse import EditWeights
from indel.process.stacks import Basis, MixtureKernels, MixtureMeasures
from indel.process.tables import Tables

# Times have shape (batch, 1): what depends on t alone is looked up once for each sequence.
Times = Int[Tensor, "batch 1"]
Tokens = Int[Tensor, "batch length"]
Rows = Float[Tensor, "batch length"]
Parts = Float[Tensor, "batch length parts"]
Values = Float[Tensor, "batch length tokens"]


class TokenTerms(NamedTuple):
    """For each token of x_t, closed forms in nats."""

    cross_entropy: Rows
    """−Σ_y q(y | x_t, x_0, a) log p_θ(y | x_t)."""
    forward: Rows
    """Σ_y q(y | x_t, x_0, a) log Q_t[y, z], its share of E[log q(x_t | x_{t−1})]."""


def token_terms(
    tables: Tables,
    weights: EditWeights,
    logits: Float[Tensor, "batch length values"],
    x: Tokens,
    z: Tokens,
    inserted: Bool[Tensor, "batch length"],
    valid: Bool[Tensor, "batch length"],
    t: Times,
) -> TokenTerms:
    """Cross-entropy and forward term of tokens z at times t that come from x or were inserted.

    Tokens that are not valid (padding) get zero.

    Paper: Eq. (3) with Eqs. (1), (13), (14) and (15)
    """
    x, z = x.clamp_min(0), z.clamp_min(0)
    step = _StepLaw.of(tables, z, t).only(valid)
    post = _SmoothPosterior.of(tables, step, x, z, inserted, t).only(valid)
    dtype = torch.promote_types(logits.dtype, torch.float32)
    guess = _Guess.of(tables, weights, logits.to(dtype), x, z, t)
    background = _background_sum(guess, post)
    expected = (
        background
        + weighted(post.at_x.to(dtype), guess.log_at(guess.logp_x, x))
        + weighted(post.extra_at_z.to(dtype), guess.log_at(guess.logp_z, z))
        + weighted(post.at_ins.to(dtype), guess.log_ins)
    )
    # p_θ is these values times Q_t[y, z], normalised; Q_t[y, z] itself is in both parts.
    forward = post.expected_log_step(step, x, z).to(dtype)
    cross_entropy = guess.log_normaliser(step, z) - expected - forward
    return TokenTerms(torch.where(valid, cross_entropy, 0.0), forward)


class _StepLaw(NamedTuple):
    """Q_t[y, z] as a function of y: base, one spike at y = z, and a value at INS."""

    base: Rows
    spike: Rows
    ins: Rows

    @classmethod
    def of(cls, tables: Tables, z: Tokens, t: Times) -> _StepLaw:
        step, kernels = tables.step, tables.step.transition
        assert isinstance(kernels, MixtureKernels)
        deleted, is_del = step.delete[t], z > step.vocab_size
        regular = z.clamp_max(step.vocab_size - 1)
        base = torch.where(is_del, deleted, (1.0 - deleted) * kernels.drawn.prob(t, regular))
        spike = torch.where(is_del, 0.0, (1.0 - deleted) * kernels.keep[t])
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
        cls, tables: Tables, step: _StepLaw, x: Tokens, z: Tokens, inserted: Tensor, t: Times
    ) -> _SmoothPosterior:
        jump, before = tables.jump, t - 1
        kernels, inserts, pairs = jump.kept, jump.inserts, jump.background
        assert isinstance(kernels, MixtureKernels)
        assert isinstance(inserts, MixtureMeasures)
        assert isinstance(pairs, MixtureMeasures)
        kept = jump.keep[before].masked_fill(inserted, 0.0)
        paired = (jump.replace_del * jump.loops)[before]
        as_insert = torch.where(inserted, 1.0, paired)
        smooth = (
            kept[..., None] * kernels.drawn.weights[before]
            + pairs.weights[before].masked_fill(inserted[..., None], 0.0)
            + as_insert[..., None] * inserts.weights[before]
        )
        moved = jump.insert_prob(t, z) / ((1.0 - tables.step.insert[t]) * jump.loops[before])
        total = torch.where(inserted, moved, jump.replace_prob(t, x, z))
        scale = 1.0 / total
        density = inserts.basis.densities(z.clamp_max(jump.vocab_size - 1))
        at_z = (smooth * density).sum(dim=-1).masked_fill(z > jump.vocab_size, 0.0) * scale
        spike_at_x = kept * kernels.keep[before] * scale
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


class _Guess(NamedTuple):
    """log(keep·p̃(y) + smooth_y): p_θ before Q_t and the normalisation."""

    basis: Basis
    logits: Float[Tensor, "batch length values"]
    values: Values
    """exp(logit − top) of the regular tokens."""
    top: Rows
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
        tables: Tables,
        weights: EditWeights,
        logits: Float[Tensor, "batch length values"],
        x: Tokens,
        z: Tokens,
        t: Times,
    ) -> _Guess:
        jump, before, dtype = tables.jump, t - 1, logits.dtype
        kernels, inserts = jump.kept, jump.inserts
        assert isinstance(kernels, MixtureKernels)
        assert isinstance(inserts, MixtureMeasures)
        regular = z.clamp_max(jump.vocab_size - 1)
        values, top, log_regular, logit_x, logit_z, logit_insert = _Exponentials.apply(  # type: ignore[no-untyped-call]
            logits, x, regular
        )
        # An edit that q cannot make gets no probability, and the others share it.
        logit_insert = logit_insert.masked_fill(weights.insert[t] == 0, -torch.inf)
        log_total = torch.logaddexp(log_regular, logit_insert)
        keep = weights.keep[t].log().to(dtype)
        insert = weights.insert[t].log().to(dtype) + logit_insert - log_total
        return cls(
            basis=inserts.basis,
            logits=logits,
            values=values,
            top=top,
            log_total=log_total,
            log_keep=keep + kernels.keep[before].log().to(dtype),
            log_regular=keep + log_regular - log_total,
            log_insert=insert,
            logp_x=logit_x - log_total,
            logp_z=logit_z - log_total,
            log_drawn=kernels.drawn.weights[before].log().to(dtype),
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

    def log_at(self, logp: Rows, token: Tokens) -> Rows:
        """log(keep·p̃(y) + smooth_y) at one y."""
        density = self.basis.densities(token.clamp_max(self.basis.vocab_size - 1))
        smooth = logsumexp(self.log_smooth + density.log().to(logp.dtype), dim=-1)
        return logaddexp(self.log_keep + logp, smooth)

    def log_normaliser(self, step: _StepLaw, z: Tokens) -> Rows:
        """log Σ_y of all of it times Q_t[y, z]."""
        dtype = self.logits.dtype
        terms = [
            self.log_everything + step.base.log().to(dtype),
            self.log_at(self.logp_z, z) + step.spike.log().to(dtype),
            self.log_ins + step.ins.log().to(dtype),
        ]
        return logsumexp(torch.stack(terms, dim=-1), dim=-1)


def _background_sum(guess: _Guess, post: _SmoothPosterior) -> Rows:
    """Σ_y background_y · log(keep·p̃(y) + smooth_y), the one pass over all values."""
    basis, background = guess.basis, post.background.to(guess.logits.dtype)
    # Relative to their sum over y, so that little underflows; it is a constant that cancels.
    level = finite(guess.log_everything.detach())
    log_smooth = guess.log_smooth - level[..., None]
    shift = guess.log_keep - guess.log_total - level
    tiny = torch.finfo(background.dtype).tiny
    missing = (_expand(log_smooth.detach().exp(), basis) < tiny) & (_expand(background, basis) > 0)
    lost = missing.any(dim=-1)
    # Tokens without a background ask for nothing: any positive number keeps their logarithm finite.
    unused = (lost | (background.sum(dim=-1) == 0))[..., None]
    smooth = log_smooth.exp().masked_fill(unused, 1.0)
    fast = background.masked_fill(unused, 0.0)
    total: Rows = _BackgroundSum.apply(  # type: ignore[no-untyped-call]
        guess.values, shift + guess.top, smooth, fast, basis
    )
    at = lost.nonzero(as_tuple=True)
    if len(at[0]):
        # Here the linear numbers of the fast pass underflow: the same sum in log space.
        matrix = _matrix(basis, background)
        smooth = logsumexp(log_smooth[at][..., None] + matrix.log(), dim=1)
        values = logaddexp(guess.logits[at][:, :-1] + shift[at][:, None], smooth)
        slow = weighted(background[at] @ matrix, values).sum(dim=-1)
        total = total.index_put(at, slow)
    return total + level * background.sum(dim=-1)


class _Exponentials(torch.autograd.Function):
    """exp(logit_y − top) and log Σ_y exp(logit_y) over regular y, and the logits at x, z and ε.

    `top`, the largest logit, is a constant: whoever multiplies it back in finds exp(logit_y).
    One backward pass writes the gradient of all at once.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, ...]:
        regular = logits[..., :-1]
        top = finite(regular.amax(dim=-1))
        values = (regular - top[..., None]).exp_()
        total = values.sum(dim=-1)
        ctx.save_for_backward(values, total, x, z)
        ctx.mark_non_differentiable(top)
        ctx.set_materialize_grads(False)
        at_x, at_z = (logits.gather(-1, index[..., None])[..., 0] for index in (x, z))
        return values, top, total.log() + top, at_x, at_z, logits[..., -1].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        values, total, x, z = ctx.saved_tensors
        grad_values, _, grad_regular, *grads_at = grads
        grad = values.new_zeros(*values.shape[:-1], values.shape[-1] + 1)
        regular = grad[..., :-1]
        if grad_values is not None:
            torch.mul(values, grad_values, out=regular)
        if grad_regular is not None:
            # Where no regular token is possible, none gets a gradient.
            share = (grad_regular / total).masked_fill(total == 0, 0.0)
            regular.addcmul_(values, share[..., None])
        insert = torch.full_like(x, values.shape[-1])
        for index, grad_at in zip((x, z, insert), grads_at, strict=True):
            if grad_at is not None:
                grad.scatter_add_(-1, index[..., None], grad_at[..., None])
        return grad, None, None


class _BackgroundSum(torch.autograd.Function):
    """Σ_y w_y log(value_y · exp(shift) + smooth_y), with w and smooth mixtures over the basis."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, shift: Tensor, smooth: Tensor, weights: Tensor, basis: Basis
    ) -> Tensor:
        scale = shift.exp()
        ctx.save_for_backward(values, scale, smooth, weights)
        ctx.basis = basis
        sums = _BackgroundSum.sums(values, scale, smooth, weights, basis)
        return _project(sums.log_(), weights, basis)

    @staticmethod
    def sums(values: Tensor, scale: Tensor, smooth: Tensor, weights: Tensor, basis: Basis) -> Tensor:
        """What the logarithm is of; worked out twice, rather than kept."""
        sums = torch.addcmul(_expand(smooth, basis), values, scale[..., None])
        if smooth.shape[-1] > 1:
            # Beside points and given parts the background may be 0 and an exponential underflow;
            # no weight is there.
            sums.masked_fill_(_expand(weights, basis) == 0, 1.0)
        return sums

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        values, scale, smooth, weights = ctx.saved_tensors
        basis: Basis = ctx.basis
        inverse = _BackgroundSum.sums(values, scale, smooth, weights, basis).reciprocal_()
        scaled = weights * grads[0][..., None]
        grad_smooth = _smooth_gradient(inverse, scaled, basis)
        # value · exp(shift) = sum − smooth, so this needs no further pass over the values.
        grad_shift = (scaled - smooth * grad_smooth).sum(dim=-1)
        grad_values = inverse.mul_(_expand(scaled * scale[..., None], basis))
        return grad_values, grad_shift, grad_smooth, None, None


def _matrix(basis: Basis, like: Tensor) -> Float[Tensor, "parts tokens"]:
    """The parts as rows."""
    every = torch.arange(basis.vocab_size, device=like.device)
    return basis.densities(every).T.to(like.dtype)


def _expand(weights: Parts, basis: Basis) -> Tensor:
    """Mixture weights to values for each token, one column where only the uniform part is there."""
    if weights.shape[-1] == 1:
        return weights / basis.vocab_size
    return weights @ _matrix(basis, weights)


def _project(values: Tensor, weights: Parts, basis: Basis) -> Rows:
    """Σ_y (mixture weight of y) · value_y."""
    if weights.shape[-1] == 1:
        return weights[..., 0] / basis.vocab_size * values.sum(dim=-1)
    return (weights * (values @ _matrix(basis, values).T)).sum(dim=-1)


def _smooth_gradient(inverse: Tensor, scaled: Parts, basis: Basis) -> Parts:
    """Σ_y (mixture weight of y) / value_y · part_y for each part."""
    if scaled.shape[-1] == 1:
        return scaled * inverse.sum(dim=-1, keepdim=True) / basis.vocab_size**2
    matrix = _matrix(basis, inverse)
    return (inverse * (scaled @ matrix)) @ matrix.T
