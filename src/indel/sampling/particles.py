"""Sequential Monte Carlo over the reverse process: frozen tokens with look-ahead, and rewards.

A step that is conditioned on the frozen tokens (`sampling.conditioning`) does not know how well
what it draws goes with them later. So several particles are drawn side by side, each weighted by
how likely the frozen tokens were for it, and those of small weight are replaced by copies of others
when the effective number of particles falls below half. At every time t their target is

    γ_t(x_{t:T}) = p_θ(x_{t:T}) 1[the frozen tokens are in place] Π_gaps ψ_t(length) G_t(x_t)

ψ of `sampling.gap_lengths`; G_t = exp((1 − t/T) strength · reward(x_0 predicted from x_t)). Both
are exact at t = 0, so one particle picked by its weight at the end follows, the better the more
particles there are,

    p_θ(x_0 | the frozen tokens are in place at all times) exp(strength · reward(x_0)) / Z

(Doucet, de Freitas, Gordon 2001; for diffusion Trippe et al. 2022, Wu et al. 2023). Draws that come
out longer than the limit are drawn again; what that costs is not in the weights.

Frozen tokens that the model, or its counts, take as given (`sampling.given_tokens`) are not drawn,
and have no weight: p_θ(x_{t−1} | x_t, frozen) stands in the place of p_θ above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from rich.console import Console
from rich.progress import track
from torch import Tensor

from indel.batch import Batch
from indel.model.denoiser import Denoiser, DenoiserOutput
from indel.model.edit_weights import EditWeights
from indel.model.reverse import ReverseStep
from indel.randomness import Randomness, RowSeeds, index_at, select, split, uniform
from indel.sampling.conditioning import Held, HeldStep
from indel.sampling.gap_lengths import GapLengths, draw_start
from indel.sampling.generation import SamplingOptions, predict
from indel.sampling.given_tokens import counts_take_as_given, takes_as_given
from indel.sampling.guidance import check_guidance, guided, guided_start_laws
from indel.sampling.held_samples import HeldSamples as HeldSamples
from indel.sampling.patterns import Pattern
from indel.sampling.rewards import Steering
from indel.sampling.truncation import sharpened

MOST_PARTICLES = 100_000
TRIES = 8
"""How often a sample is started again when none of its particles fits what is asked for."""


def sample_held(
    denoiser: Denoiser,
    pattern: Pattern,
    rows: int,
    *,
    generator: Randomness,
    particles: int = 1,
    steering: Steering | None = None,
    options: SamplingOptions | None = None,
    start: tuple[Held, int] | None = None,
    watch: Callable[[int], None] | None = None,
    progress: bool = False,
) -> HeldSamples:
    """Sample sequences that match a pattern, each from particles of its own.

    With `RowSeeds` a row depends on its own seed alone. A row none of whose particles fits, because
    of a tight limit on its length, is started again, up to `TRIES` times. One particle is the
    conditioned process without look-ahead. `start` is x_t and t to start from instead of x_T: the
    frozen tokens must be in it. `watch` is given t before each step; what it raises ends the run.
    The denoiser is used as it is: put it into evaluation mode first.

    >>> from indel import CharacterVocabulary, Schedule
    >>> acgt, schedule = CharacterVocabulary("ACGT"), Schedule.paper(4, 10, 0.6)
    >>> denoiser = Denoiser.from_preset("tiny", acgt, schedule, max_length=12).eval()
    >>> noise = torch.Generator().manual_seed(0)
    >>> samples = sample_held(denoiser, Pattern.parse("GA{3}A", acgt), 2, generator=noise)
    >>> [(text[:2], len(text), text[-1]) for text in samples.texts]
    [('GA', 6, 'A'), ('GA', 6, 'A')]
    """
    options = SamplingOptions() if options is None else options
    if not 1 <= particles <= MOST_PARTICLES:
        raise ValueError(f"particles must lie in 1…{MOST_PARTICLES}, got {particles}")
    if options.times is not None:
        raise ValueError("frozen tokens and rewards need every step: leave out times and calls")
    if steering is not None and particles == 1:
        raise ValueError("a reward chooses among particles: give at least 2, got 1")
    run = _Run.of(denoiser, pattern, particles, steering, options, watch)
    samples = run(rows, split(generator), start, progress)
    for _ in range(TRIES - 1):
        failed = (~samples.possible).nonzero()[:, 0]
        if not len(failed):
            break
        begun = None if start is None else (start[0].rows(failed), start[1])
        # All rows split, so that the noise of one does not depend on the others.
        again = run(len(failed), select(split(generator), failed), begun, progress)
        places = torch.arange(rows, device=failed.device)
        places[failed] = rows + torch.arange(len(failed), device=failed.device)
        samples = HeldSamples.joined([samples, again]).rows(places)
    failed = (~samples.possible).nonzero()[:, 0]
    if len(failed):
        raise ValueError(
            f"sample {int(failed[0])}: in {TRIES} tries none of its particles ({particles}) fitted "
            "what is asked for: give more particles, allow other lengths of the gaps, or leave "
            "out top_p and a temperature of 0"
        )
    return samples


@dataclass(frozen=True)
class _Cloud:
    """All particles, those of a row side by side."""

    state: Held
    log_weights: Float[Tensor, "rows particles"]
    log_normalizer: Float[Tensor, " rows"]
    log_psi: Float[Tensor, " all"]
    """log ψ_t of the state."""
    log_twist: Float[Tensor, " all"]
    """log G of the state that was last predicted from."""
    redrawn: Int[Tensor, " all"]
    dropped: Int[Tensor, " all"]

    def weighted(self, log_factor: Float[Tensor, " all"]) -> _Cloud:
        """The weights times one factor for each particle."""
        factor = log_factor.reshape(self.log_weights.shape).to(self.log_weights.dtype)
        return replace(self, log_weights=self.log_weights + factor)

    @property
    def effective(self) -> Float[Tensor, " rows"]:
        """(Σw)² / Σw², 0 where all weights are."""
        one, two = (torch.logsumexp(k * self.log_weights, dim=1) for k in (1.0, 2.0))
        return torch.where(one > -torch.inf, (2.0 * one - two).exp(), 0.0)

    def resampled(self, chosen: Bool[Tensor, " rows"], noise: Float[Tensor, " rows"]) -> _Cloud:
        """Particles in proportion to their weights in the chosen rows, by systematic resampling."""
        ancestors = self.ancestors(chosen, noise)
        gained = _log_mean(self.log_weights)
        return replace(
            self,
            state=self.state.rows(ancestors),
            log_weights=self.log_weights.masked_fill(chosen[:, None], 0.0),
            log_normalizer=self.log_normalizer + torch.where(chosen, gained, 0.0),
            log_psi=self.log_psi[ancestors],
            log_twist=self.log_twist[ancestors],
            redrawn=self.redrawn[ancestors],
            dropped=self.dropped[ancestors],
        )

    def ancestors(
        self, chosen: Bool[Tensor, " rows"], noise: Float[Tensor, " rows"]
    ) -> Int[Tensor, " all"]:
        """Particle k of a chosen row copies the one at (k + noise) / particles of the weights."""
        rows, particles = self.log_weights.shape
        own = torch.arange(particles, device=noise.device)
        places = (own + noise[:, None]) / particles
        found = index_at(_relative(self.log_weights).cumsum(dim=1)[:, None], places)
        picked = torch.where(chosen[:, None], found, own)
        return (picked + particles * torch.arange(rows, device=noise.device)[:, None]).flatten()


@dataclass(frozen=True)
class _Run:
    """What stays the same from step to step."""

    denoiser: Denoiser
    pattern: Pattern
    particles: int
    steering: Steering | None
    options: SamplingOptions
    lengths: GapLengths
    weights: EditWeights
    limit: int
    watch: Callable[[int], None] | None
    given: bool
    """Whether the model takes the frozen tokens as given."""
    told: bool
    """Whether its counts alone do."""

    @classmethod
    def of(
        cls,
        denoiser: Denoiser,
        pattern: Pattern,
        particles: int,
        steering: Steering | None,
        options: SamplingOptions,
        watch: Callable[[int], None] | None,
    ) -> _Run:
        """Work out what all steps need; outside of inference mode, as training may use it next."""
        limit = denoiser.config.max_length if options.max_length is None else options.max_length
        pattern.check(limit)
        denoiser.schedule.check_ends_empty()
        with torch.inference_mode(False):
            tables = denoiser.schedule.tables(denoiser.device)
            weights = (options.edit_weights or denoiser.edit_weights)(tables.jump)
            lengths = GapLengths.of(pattern, denoiser.schedule, limit, denoiser.device)
        check_guidance(denoiser, pattern, options.guidance)
        given = takes_as_given(denoiser, pattern)
        told = not given and options.look_ahead and counts_take_as_given(denoiser, pattern)
        return cls(
            denoiser,
            pattern,
            particles,
            steering,
            options,
            lengths,
            weights,
            limit,
            watch,
            given,
            told,
        )

    @torch.inference_mode()
    def __call__(
        self, rows: int, generator: Randomness, start: tuple[Held, int] | None, progress: bool
    ) -> HeldSamples:
        """All steps, and one particle of each row."""
        noise = generator
        if isinstance(generator, RowSeeds):
            noise = generator.repeated(self.particles)
        cloud, last = self._started(rows, noise, start)
        effective, resampled = list[Tensor](), list[Tensor]()
        possible = torch.ones(rows, dtype=torch.bool, device=cloud.log_psi.device)
        for t in track(
            range(last, 0, -1),
            description="sampling",
            console=Console(stderr=True),
            disable=not progress,
        ):
            if self.watch is not None:
                self.watch(t)
            seen = cloud.state.without(self.denoiser.schedule.ins)
            output = self._predicted(seen, t)
            cloud = self._twisted(replace(cloud, state=seen), output, t)
            step = self._step(seen, output, t)
            cloud = cloud.weighted(step.log_frozen())
            possible &= self._possible(cloud)
            effective.append(cloud.effective)
            resampled.append(effective[-1] < self.particles / 2)
            # All rows draw, so that the noise of one does not depend on the others.
            draw = uniform(generator, rows, 1, dtype=cloud.log_weights.dtype)[:, 0]
            if bool(resampled[-1].any()):
                step = step.rows(cloud.ancestors(resampled[-1], draw))
                cloud = cloud.resampled(resampled[-1], draw)
            cloud = self._drawn(cloud, step, t, split(noise))
        cloud = self._finished(cloud)
        possible &= self._possible(cloud)
        effective.append(cloud.effective)
        resampled.append(torch.zeros_like(resampled[-1]))
        draw = uniform(generator, rows, 1, dtype=cloud.log_weights.dtype)
        picked = self._picked(cloud, draw)
        with torch.inference_mode(False):
            return replace(
                picked,
                effective=torch.stack(effective).clone(),
                resampled=torch.stack(resampled).clone(),
                possible=possible.clone(),
                network_calls=last,
            )

    def _started(
        self, rows: int, noise: Randomness, start: tuple[Held, int] | None
    ) -> tuple[_Cloud, int]:
        schedule = self.denoiser.schedule
        every = rows * self.particles
        device, dtype = self.denoiser.device, schedule.tables(self.denoiser.device).dtype
        if start is None:
            last = schedule.num_steps
            own = None
            if self.given:
                own = guided_start_laws(
                    self.denoiser, self.pattern, self.limit, self.options.guidance
                )
            counts, log_total = draw_start(
                self.pattern,
                self.lengths,
                self.denoiser.length,
                last,
                every,
                generator=noise,
                own=own,
            )
            state = laid_out(self.pattern, counts, schedule.del_)
            state = self._with_values(state) if self.given else state
        else:
            given, last = start
            copies = torch.arange(rows, device=device).repeat_interleave(self.particles)
            state, log_total = given.rows(copies), torch.zeros((), dtype=dtype, device=device)
        seen = state.without(schedule.ins)
        none = torch.zeros(every, dtype=dtype, device=device)
        counted = torch.zeros(every, dtype=torch.int64, device=device)
        return _Cloud(
            state,
            none.reshape(rows, self.particles),
            log_total.expand(rows).to(dtype),
            self.lengths.log_prob(last, seen.gap_counts(len(self.pattern.gaps))),
            none,
            counted,
            counted,
        ), last

    def _with_values(self, state: Held) -> Held:
        """The frozen tokens as they are, not as DELs."""
        tokens = state.x.tokens.clone()
        values = torch.tensor(self.pattern.tokens, device=tokens.device)
        tokens[state.frozen] = values.repeat(len(tokens))
        return Held(Batch(tokens, state.x.lengths), state.frozen)

    def _predicted(self, seen: Held, t: int) -> DenoiserOutput:
        """What the network says, told what is frozen if it or its counts take it as given."""
        # In x_T the frozen tokens do not stand with their values, unless the model has learned it.
        if not self.given and not (self.told and t < self.denoiser.schedule.num_steps):
            return predict(self.denoiser, seen.x, t)
        open_slots = seen.open_slots(self.pattern)
        output = predict(self.denoiser, seen.x, t, seen.frozen, open_slots)
        return guided(self.denoiser, output, seen, t, self.options.guidance)

    def _step(self, seen: Held, output: DenoiserOutput, t: int) -> HeldStep:
        schedule = self.denoiser.schedule
        times = torch.full_like(seen.x.lengths, t)
        output = sharpened(
            output,
            seen.x,
            times,
            schedule.tables(seen.x.device),
            self.weights,
            tokens=self.options.tokens,
            deletions=self.options.deletions,
        )
        given = seen.frozen if self.given else None
        reverse = ReverseStep.of(schedule, output, seen.x, times, weights=self.weights, given=given)
        weightless = self.given or self.told
        return HeldStep(reverse, seen.frozen, self.pattern, self.lengths, t - 1, weightless)

    def _drawn(self, cloud: _Cloud, step: HeldStep, t: int, noise: Randomness) -> _Cloud:
        drawn = step.draw(self.limit, redraws=self.options.redraws, generator=noise)
        seen = drawn.state.without(self.denoiser.schedule.ins)
        log_psi = self.lengths.log_prob(t - 1, seen.gap_counts(len(self.pattern.gaps)))
        return replace(
            cloud.weighted(drawn.log_lengths - cloud.log_psi),
            state=drawn.state,
            log_psi=log_psi,
            redrawn=cloud.redrawn + drawn.redrawn,
            dropped=cloud.dropped + drawn.dropped,
        )

    def _twisted(self, cloud: _Cloud, output: DenoiserOutput, t: int) -> _Cloud:
        """Weigh by what the network now takes x_0 for, and no longer by what it did before."""
        if self.steering is None:
            return cloud
        size = self.denoiser.vocabulary.size
        # At t = 1 nothing was inserted.
        values = output.logits_token[..., : size + (t > 1)].argmax(dim=-1)
        number = cloud.state.frozen.cumsum(dim=1) - 1
        given = torch.tensor([*self.pattern.tokens, 0], device=values.device)
        values = torch.where(cloud.state.frozen, given[number.clamp_min(0)], values)
        guess = Batch(values, cloud.state.x.lengths).without(size)
        texts = [self.denoiser.vocabulary.text(row) for row in guess.to_lists()]
        twist = self.steering.log_twist(texts, t, self.denoiser.schedule.num_steps)
        twist = twist.to(cloud.log_twist)
        return replace(cloud.weighted(twist - cloud.log_twist), log_twist=twist)

    def _finished(self, cloud: _Cloud) -> _Cloud:
        """The weights of x_0: gaps that are not as asked for have none, the reward is exact."""
        counts = cloud.state.gap_counts(len(self.pattern.gaps))
        log_psi = self.lengths.log_prob(0, counts)
        cloud = replace(cloud.weighted(log_psi - cloud.log_psi), log_psi=log_psi)
        if self.steering is not None:
            texts = [self.denoiser.vocabulary.text(row) for row in cloud.state.x.to_lists()]
            exact = self.steering.log_weights(texts).to(cloud.log_twist)
            cloud = cloud.weighted(exact - cloud.log_twist)
        return cloud

    def _possible(self, cloud: _Cloud) -> Bool[Tensor, " rows"]:
        """Which rows have a particle of positive weight.

        The weight of a single one says nothing, unless its gaps have no length that is allowed.
        """
        weights = cloud.log_weights if self.particles > 1 else cloud.log_psi[:, None]
        return (weights > -torch.inf).any(dim=1)

    def _picked(self, cloud: _Cloud, noise: Float[Tensor, "rows 1"]) -> HeldSamples:
        """One particle of each row, in proportion to its weight."""
        one = index_at(_relative(cloud.log_weights).cumsum(dim=1), noise[:, 0])
        picked = one + self.particles * torch.arange(len(one), device=one.device)
        state = cloud.state.rows(picked)
        trimmed = state.kept(state.x.mask)
        log_normalizer = cloud.log_normalizer + _log_mean(cloud.log_weights)
        # Clones made outside of inference mode may be trained on.
        with torch.inference_mode(False):
            none = torch.zeros(0, len(one), device=one.device)
            return HeldSamples(
                x=Batch(trimmed.x.tokens.clone(), trimmed.x.lengths.clone()),
                frozen=trimmed.frozen.clone(),
                pattern=self.pattern,
                log_normalizer=log_normalizer.clone(),
                effective=none,
                resampled=none.bool(),
                network_calls=0,
                redrawn=cloud.redrawn[picked].clone(),
                dropped=cloud.dropped[picked].clone(),
                possible=torch.ones(len(one), dtype=torch.bool, device=one.device),
                vocabulary=self.denoiser.vocabulary,
            )


def _relative(log_weights: Float[Tensor, "rows particles"]) -> Float[Tensor, "rows particles"]:
    """Weights whose largest is 1; all equal where there are none."""
    return (log_weights - log_weights.amax(dim=1, keepdim=True)).exp().nan_to_num(1.0)


def laid_out(pattern: Pattern, counts: Int[Tensor, "rows gaps"], token: int) -> Held:
    """One token for each frozen one, and so many in the gaps: x_T, where all are DELs."""
    rows, frozen = len(counts), len(pattern.tokens)
    lengths = counts.sum(dim=1) + frozen
    width = int(lengths.max()) if rows else 0
    tokens = torch.full((rows, width), token, device=counts.device)
    # Frozen token j stands behind the gaps 0…j and j other frozen ones.
    places = counts.cumsum(dim=1)[:, :frozen] + torch.arange(frozen, device=counts.device)
    marked = torch.zeros(rows, width, dtype=torch.bool, device=counts.device)
    return Held(Batch(tokens, lengths), marked.scatter(1, places, True))


def _log_mean(log_weights: Float[Tensor, "rows particles"]) -> Float[Tensor, " rows"]:
    particles = torch.tensor(log_weights.shape[1], dtype=log_weights.dtype)
    return torch.logsumexp(log_weights, dim=1) - particles.log().to(log_weights.device)
