"""Sampling the learned reverse process: from nothing but a length, or from any x_t on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import torch
from jaxtyping import Bool, Int
from rich.console import Console
from rich.progress import track
from torch import Tensor

from indel.batch import Batch
from indel.model.denoiser import Denoiser, DenoiserOutput
from indel.model.reverse import EditWeights, ReverseStep
from indel.process import Schedule, checks
from indel.process.tables import JumpTables
from indel.randomness import Randomness, RowSeeds, select, split
from indel.sampling.length_limit import draw_start_within, draw_within, with_rows
from indel.sampling.strides import Strides
from indel.sampling.trajectories import Trajectory
from indel.sampling.truncation import OFF, Sharpening, sharpened
from indel.vocabularies import Vocabulary

Callback = Callable[[int, Batch], bool | None]
"""Is given t and x_t, first of all and after each step; False stops the run.

Rows that start at a later step are shown as they were given. The tensors were made in
`torch.inference_mode`: clone them before they meet autograd.
"""


@dataclass(frozen=True)
class SamplingOptions:
    """Which law is sampled; by default p_θ as it was trained, one call of the network a step."""

    tokens: Sharpening = OFF
    """Temperature and top-p of the first head: which edit made each token."""
    deletions: Sharpening = OFF
    """Temperature and top-p of the second head: how many tokens were deleted in each slot."""
    max_length: int | None = None
    """No x_t is longer, markers included; None: what the denoiser is made for."""
    redraws: int = 10
    """How often a row that came out too long is drawn again before it is cut. Within these the
    law is p_θ(x_{t−1} | x_t, |x_{t−1}| ≤ max_length)."""
    times: tuple[int, ...] | None = None
    """The times at which the network is called, down to 1 (`sampling.strides.evenly_spaced`); None:
    all. Exact where the skipped steps insert and delete nothing, as in the in-place process."""
    approximate_strides: bool = False
    """Must be true where `times` skips steps that insert or delete: see `sampling.strides`."""
    edit_weights: Callable[[JumpTables], EditWeights] | None = None
    """How q weighs the kinds of edits; None: as the model says."""
    guidance: float = 1.0
    """How much a frozen source counts; 1 is the model itself (`sampling.guidance`)."""
    look_ahead: bool = True
    """Whether counts are told what is frozen, if the model has any (`sampling.given_tokens`);
    otherwise, unless it was trained with frozen tokens, each step is conditioned on them."""

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 0:
            raise ValueError(f"max_length must be at least 0, got {self.max_length}")
        if self.redraws < 0:
            raise ValueError(f"redraws must be at least 0, got {self.redraws}")


@dataclass(frozen=True)
class Samples:
    """What a run has come to."""

    x: Batch
    """x_0, unless a callback stopped the run."""
    t: Int[Tensor, " batch"]
    """The time each row has reached: 0, unless a callback stopped the run."""
    network_calls: int
    redrawn: Int[Tensor, " batch"]
    """How often each row came out longer than allowed and was drawn again."""
    dropped: Int[Tensor, " batch"]
    """How many DELs were taken off each row because no draw was short enough. 0 everywhere: the
    samples follow the law asked for."""
    trajectories: tuple[Trajectory, ...] | None
    """The whole way of each row, if it was asked for."""
    vocabulary: Vocabulary

    @property
    def texts(self) -> list[str]:
        """What each row spells (`Vocabulary.text`)."""
        return [self.vocabulary.text(row) for row in self.x.to_lists()]

    @classmethod
    def joined(cls, parts: Sequence[Samples]) -> Samples:
        """The rows of several runs, one after the other."""
        if len(parts) == 1:
            return parts[0]
        width = max(part.x.width for part in parts)
        kept = [part.trajectories for part in parts if part.trajectories is not None]
        return cls(
            x=Batch(
                torch.cat([part.x.widened(width).tokens for part in parts]),
                torch.cat([part.x.lengths for part in parts]),
            ),
            t=torch.cat([part.t for part in parts]),
            network_calls=sum(part.network_calls for part in parts),
            redrawn=torch.cat([part.redrawn for part in parts]),
            dropped=torch.cat([part.dropped for part in parts]),
            trajectories=tuple(chain.from_iterable(kept)) if kept else None,
            vocabulary=parts[0].vocabulary,
        )


def generate(
    denoiser: Denoiser,
    rows: int,
    *,
    generator: Randomness,
    options: SamplingOptions | None = None,
    callback: Callback | None = None,
    keep_trajectories: bool = False,
    progress: bool = False,
) -> Samples:
    """Sample x_0 from nothing: |x_T| ~ p_θ(|x_T|), x_T = DEL…DEL, then `denoise_from` T.

    p_θ(x_0) = Σ p_θ(|x_T|) Π_t p_θ(x_{t−1} | x_t). A length over the limit is drawn again like any
    other row, and in the end set to the limit; that counts as `redrawn` and `dropped`.
    With `RowSeeds` each row depends on its own seed alone.

    Paper: Sec. 3.2 and 3.3

    >>> from indel import CharacterVocabulary
    >>> acgt, schedule = CharacterVocabulary("ACGT"), Schedule.paper(4, 10, 0.6)
    >>> denoiser = Denoiser.from_preset("tiny", acgt, schedule, max_length=12).eval()
    >>> samples = generate(denoiser, 3, generator=torch.Generator().manual_seed(0))
    >>> len(samples.x), samples.t.tolist(), samples.network_calls
    (3, [0, 0, 0], 10)
    """
    options = SamplingOptions() if options is None else options
    schedule = denoiser.schedule
    schedule.check_ends_empty()
    noise = split(generator)
    start = draw_start_within(
        denoiser.length,
        rows,
        _limit(denoiser, options),
        del_=schedule.del_,
        redraws=options.redraws,
        generator=noise,
    )
    samples = denoise_from(
        denoiser,
        start.x,
        schedule.num_steps,
        generator=noise,
        options=options,
        callback=callback,
        keep_trajectories=keep_trajectories,
        progress=progress,
    )
    return replace(
        samples,
        redrawn=samples.redrawn + start.redrawn,
        dropped=samples.dropped + start.dropped,
    )


def denoise_from(
    denoiser: Denoiser,
    x_t: Batch,
    t: Int[Tensor, " batch"] | int,
    *,
    generator: Randomness,
    options: SamplingOptions | None = None,
    callback: Callback | None = None,
    keep_trajectories: bool = False,
    progress: bool = False,
) -> Samples:
    """Sample x_0 ~ p_θ(x_0 | x_t) = Σ Π_{s≤t} p_θ(x_{s−1} | x_s), from any sequences at any times.

    x_t may hold INS and DEL, or be plain text that is to be repaired. Rows may start at different
    times; with `RowSeeds` each depends on its own seed, time and sequence alone. The denoiser is
    used as it is: put it into evaluation mode first (`denoiser.eval()`).

    No x_s gets longer than `options.max_length`: a row that does is drawn again, and after
    `options.redraws` attempts loses its last DELs. There are always enough of them, since without
    its DELs x_s is no longer than the x_t before it.

    Paper: Sec. 3.2
    """
    options = SamplingOptions() if options is None else options
    if options.guidance != 1.0:
        raise ValueError(f"guidance needs a frozen source, got {options.guidance} without one")
    checks.noisy("x_t", x_t, denoiser.schedule.vocab_size)
    starts = checks.times(t, x_t, first=1, last=denoiser.schedule.num_steps)
    limit = _limit(denoiser, options)
    _check_lengths(x_t, limit)
    strides = _strides(denoiser.schedule, starts, options)
    # Never in inference mode, not even the caller's: the schedule keeps them, and training may use
    # them next.
    with torch.inference_mode(False):
        tables = strides.schedule.tables(x_t.device)
        weights = (options.edit_weights or denoiser.edit_weights)(tables.jump)
    run = _Run(denoiser, strides, weights, options, limit)
    state = _State(x_t, starts, torch.zeros_like(starts), torch.zeros_like(starts))
    noise = split(generator)
    clock = [0, *(time for time in strides.times if len(x_t) and time <= int(starts.max()))]
    going = callback is None or callback(clock[-1], x_t) is not False
    calls, history = 0, list[tuple[int, Batch]]()
    with torch.inference_mode():
        for number in track(
            range(len(clock) - 1, 0, -1),
            description="sampling",
            console=Console(stderr=True),
            disable=not progress,
        ):
            if not going:
                break
            state = run.step(state, number, clock[number - 1], _stream(noise, clock[number]))
            calls += 1
            if keep_trajectories:
                history.append((clock[number - 1], state.x))
            going = callback is None or callback(clock[number - 1], state.x) is not False
    # Clones made outside of inference mode may be trained on.
    return Samples(
        x=Batch(state.x.tokens.clone(), state.x.lengths.clone()),
        t=state.t.clone(),
        network_calls=calls,
        redrawn=state.redrawn.clone(),
        dropped=state.dropped.clone(),
        trajectories=(
            _trajectories(x_t, starts, history, denoiser.schedule.vocab_size)
            if keep_trajectories
            else None
        ),
        vocabulary=denoiser.vocabulary,
    )


@dataclass(frozen=True)
class _State:
    """Where all rows are."""

    x: Batch
    t: Int[Tensor, " batch"]
    redrawn: Int[Tensor, " batch"]
    dropped: Int[Tensor, " batch"]


@dataclass(frozen=True)
class _Run:
    """What stays the same from step to step."""

    denoiser: Denoiser
    strides: Strides
    weights: EditWeights
    options: SamplingOptions
    limit: int

    def step(self, state: _State, number: int, to: int, generator: Randomness) -> _State:
        """Take the rows that have come to the time of this step back to the one before."""
        rows = (state.t == self.strides.times[number - 1]).nonzero()[:, 0]
        reverse = self._reverse(state.x.rows(rows).trimmed(), number)
        drawn = draw_within(
            reverse,
            self.limit,
            redraws=self.options.redraws,
            generator=select(generator, rows),
        )
        return _State(
            x=with_rows(state.x, rows, drawn.x),
            t=state.t.index_fill(0, rows, to),
            redrawn=state.redrawn.index_add(0, rows, drawn.redrawn),
            dropped=state.dropped.index_add(0, rows, drawn.dropped),
        )

    def _reverse(self, x_t: Batch, number: int) -> ReverseStep:
        """p_θ(x_s | x_t) for one stride, from one call of the network."""
        schedule = self.strides.schedule
        seen = x_t.without(schedule.ins)
        step = torch.full_like(seen.lengths, number)
        output = sharpened(
            predict(self.denoiser, seen, self.strides.times[number - 1]),
            seen,
            step,
            schedule.tables(seen.device),
            self.weights,
            tokens=self.options.tokens,
            deletions=self.options.deletions,
        )
        return ReverseStep.of(schedule, output, seen, step, weights=self.weights)


def predict(
    denoiser: Denoiser,
    seen: Batch,
    t: int,
    frozen: Bool[Tensor, "batch length"] | None = None,
    open_slots: Bool[Tensor, "batch slots"] | None = None,
) -> DenoiserOutput:
    """The network's output, computed once for equal rows: draws of one x_t start out equal."""
    # At least one column: torch does not compare empty rows.
    tokens = seen.widened(1).tokens
    keys = tokens
    if frozen is not None:
        keys = 2 * tokens + torch.nn.functional.pad(frozen, (0, tokens.shape[1] - seen.width))
    _, which = torch.unique(keys, dim=0, return_inverse=True)
    count = int(which.max()) + 1 if len(which) else 0
    one = torch.zeros(count, dtype=torch.int64, device=which.device)
    one = one.scatter(0, which, torch.arange(len(which), device=which.device))
    different = seen.rows(one).trimmed()
    times = torch.full_like(different.lengths, t)
    if frozen is None or open_slots is None:
        output = denoiser(different, times)
    else:
        width = different.width
        slots = open_slots[one, : width + 1]
        output = denoiser(different, times, frozen[one, :width], open_slots=slots)
    return DenoiserOutput(*(part[which] for part in output))


def _stream(generator: Randomness, t: int) -> Randomness:
    """The noise of time t: a row's own does not depend on when the others start."""
    if isinstance(generator, RowSeeds):
        return RowSeeds(generator.seeds, calls=t).split()
    return generator


def _strides(
    schedule: Schedule, starts: Int[Tensor, " batch"], options: SamplingOptions
) -> Strides:
    strides = Strides.of(schedule, options.times)
    missing = set(starts.tolist()) - set(strides.times)
    if missing:
        raise ValueError(
            f"times must hold the time of every x_t, here {max(missing)}; got {options.times}"
        )
    if not strides.exact and not options.approximate_strides:
        raise ValueError(
            f"times = {options.times} skips steps that insert and delete, which is an "
            f"approximation: allow it with approximate_strides=True"
        )
    return strides


def _trajectories(
    x_t: Batch, starts: Int[Tensor, " batch"], history: list[tuple[int, Batch]], vocab_size: int
) -> tuple[Trajectory, ...]:
    """Each row from its own start on; before it, a row waits and is the same in all states."""
    later = [(time, batch.to_lists()) for time, batch in history]
    found = []
    for row, (start, first) in enumerate(zip(starts.tolist(), x_t.to_lists(), strict=True)):
        own = [(start, first), *((time, rows[row]) for time, rows in later if time < start)]
        times, states = zip(*own, strict=True)
        found.append(Trajectory.of(times, states, vocab_size=vocab_size))
    return tuple(found)


def _limit(denoiser: Denoiser, options: SamplingOptions) -> int:
    return denoiser.config.max_length if options.max_length is None else options.max_length


def _check_lengths(x_t: Batch, limit: int) -> None:
    long = (x_t.lengths > limit).nonzero()[:, 0]
    if len(long):
        raise ValueError(
            f"x_t: row {int(long[0])} has {int(x_t.lengths[long[0]])} tokens, more than "
            f"max_length = {limit}"
        )
