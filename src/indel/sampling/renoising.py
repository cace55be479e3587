"""Noise for the gaps alone, and back again: correction of samples, and mutation of a sequence.

q acts on each token and each place on its own. Given that it leaves the frozen tokens alone and
puts nothing between them, what it makes of each gap is what it makes of a sequence by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from indel.batch import Batch
from indel.levenshtein import edit_distance
from indel.model.denoiser import Denoiser
from indel.process import corrupt
from indel.randomness import Randomness, select, split
from indel.sampling.conditioning import Held
from indel.sampling.generation import Samples, SamplingOptions
from indel.sampling.particles import HeldSamples, sample_held
from indel.sampling.patterns import EVERYTHING, Gap, Pattern

ATTEMPTS = 64
"""How often a mutation is drawn again, at a lower or higher t, before it is given up."""


def noised_gaps(
    denoiser: Denoiser,
    pattern: Pattern,
    state: Held,
    t: int,
    *,
    generator: Randomness,
    max_length: int | None = None,
) -> Held:
    """x_t ~ q(x_t | x_0, the frozen tokens stay as they are), for x_0 of regular tokens.

    Gaps share the room that is left under the length limit, the model's own by default.
    """
    limit = denoiser.config.max_length if max_length is None else max_length
    there = [number for number, gap in enumerate(pattern.gaps) if gap is not None]
    contents = _contents(state, len(pattern.gaps))
    noise = split(generator)
    parts: dict[int, list[list[int]]] = {}
    for number in there:
        x_0 = Batch.from_lists([row[number] for row in contents], device=state.x.device)
        room = (limit - int(state.x.lengths.max())) // len(there) + int(x_0.lengths.max())
        noisy = corrupt(denoiser.schedule, x_0, t, generator=noise, max_length=room)
        parts[number] = noisy.x_t.to_lists()
    rows, marks = [], []
    for row in range(len(contents)):
        tokens, frozen = list[int](), list[bool]()
        for number in range(len(pattern.gaps)):
            part = parts[number][row] if number in parts else []
            tokens += part
            frozen += [False] * len(part)
            if number < len(pattern.tokens):
                tokens.append(pattern.tokens[number])
                frozen.append(True)
        rows.append(tokens)
        marks.append(frozen)
    x = Batch.from_lists(rows, device=state.x.device)
    flags = [mark + [False] * (x.width - len(mark)) for mark in marks]
    placed = torch.tensor(flags, dtype=torch.bool, device=x.device).reshape(len(x), x.width)
    return Held(x, placed)


def corrected(
    denoiser: Denoiser,
    pattern: Pattern,
    x_0: Held,
    rounds: int,
    *,
    depth: int | None = None,
    generator: Randomness,
    options: SamplingOptions | None = None,
) -> Held:
    """Take sequences some steps forward with the exact q and back with p_θ, so many times.

    x_0 → q(x_depth | x_0) → p_θ(x_0 | x_depth). The data's law stays as it is under this if p_θ
    undoes q, so what p_θ got wrong on the long way from x_T has a chance to be mended. `depth`
    is a quarter of the steps by default. Where a pattern freezes tokens, they stay.
    """
    if rounds < 0:
        raise ValueError(f"correct must be at least 0, got {rounds}")
    last = denoiser.schedule.num_steps
    depth = max(1, last // 4) if depth is None else depth
    if rounds and not 1 <= depth < last:
        raise ValueError(f"depth must lie in 1…{last - 1}, got {depth}")
    # Whatever drew the sequences may have skipped steps; here are few.
    options = replace(options or SamplingOptions(), times=None)
    for _ in range(rounds):
        x_t = noised_gaps(
            denoiser, pattern, x_0, depth, generator=generator, max_length=options.max_length
        )
        again = sample_held(
            denoiser,
            pattern,
            len(x_0.x),
            generator=generator,
            options=options,
            start=(x_t, depth),
        )
        x_0 = Held(again.x, again.frozen)
    return x_0


def corrected_samples(
    denoiser: Denoiser,
    samples: Samples,
    rounds: int,
    *,
    generator: Randomness,
    options: SamplingOptions | None = None,
) -> Samples:
    """`corrected` for samples of the free process: nothing is frozen."""
    free = Held(samples.x, torch.zeros_like(samples.x.tokens, dtype=torch.bool))
    state = corrected(denoiser, EVERYTHING, free, rounds, generator=generator, options=options)
    return replace(samples, x=state.x)


@dataclass(frozen=True)
class Mutations:
    """Sequences near an original, and how near."""

    samples: HeldSamples
    edits: Int[Tensor, " batch"]
    """Levenshtein's distance from the original: tokens inserted, deleted or replaced."""
    t: Int[Tensor, " batch"]
    """How far the original was taken forward."""
    attempts: Int[Tensor, " batch"]
    """How often each was drawn."""

    @property
    def texts(self) -> list[str]:
        """What each row spells."""
        return self.samples.texts


def keeping(tokens: Sequence[int], spans: Sequence[tuple[int, int]]) -> tuple[Pattern, Held]:
    """The pattern that freezes tokens start … end − 1 of each span, and the sequence itself.

    >>> keeping([5, 6, 7, 8], [(1, 3)])[0].gaps
    (Gap(least=0, most=None), None, Gap(least=0, most=None))
    """
    kept = [False] * len(tokens)
    for start, end in spans:
        if not 0 <= start < end <= len(tokens):
            raise ValueError(
                f"a span to keep must lie in the text, 0 ≤ start < end ≤ {len(tokens)}: got "
                f"{start}-{end}"
            )
        kept[start:end] = [True] * (end - start)
    if all(kept) and kept:
        raise ValueError("nothing may change: the spans to keep cover the whole text")
    parts: list[Gap | Sequence[int]] = []
    for place, token in enumerate(tokens):
        if kept[place]:
            parts.append([token])
        elif not parts or not isinstance(parts[-1], Gap):
            parts.append(Gap())
    pattern = Pattern.of(parts or [Gap()])
    marks = torch.tensor(kept, dtype=torch.bool).reshape(1, len(tokens))
    return pattern, Held(Batch.from_lists([tokens]), marks)


def mutate(
    denoiser: Denoiser,
    tokens: Sequence[int],
    rows: int,
    *,
    edits: tuple[int, int],
    keep: Sequence[tuple[int, int]] = (),
    generator: Randomness,
    options: SamplingOptions | None = None,
) -> Mutations:
    """Take a sequence t steps forward with q and back with p_θ, until it is as far as asked for.

    t starts where q changes about as many tokens as asked for; a draw that is too near is made
    again at t + 1, one that is too far at t − 1. So the law is p_θ(x_0 | x_t) q(x_t | original),
    restricted to the distances allowed, with a t of its own for each row.
    """
    least, most = edits
    if not 0 <= least <= most:
        raise ValueError(f"edits must be a range, least first, got {least}-{most}")
    limit = denoiser.config.max_length
    if len(tokens) > limit:
        raise ValueError(f"the text has {len(tokens)} tokens, the model takes at most {limit}")
    pattern, original = keeping(tokens, keep)
    first = _fitting_time(denoiser, original, (least + most) / 2.0)
    device = denoiser.device
    times = torch.full((rows,), first, device=device)
    distances = torch.full((rows,), -1, device=device)
    attempts = torch.zeros(rows, dtype=torch.int64, device=device)
    found: dict[int, HeldSamples] = {}
    state = Held(original.x.to(device), original.frozen.to(device))
    for _ in range(ATTEMPTS):
        # All rows split, so that the noise of one does not depend on the others.
        noise = split(generator)
        waiting = [row for row in range(rows) if row not in found]
        if not waiting:
            break
        for t in sorted({int(times[row]) for row in waiting}):
            group = torch.tensor([row for row in waiting if int(times[row]) == t], device=device)
            own = select(noise, group)
            copies = state.rows(torch.zeros_like(group))
            noisy = noised_gaps(denoiser, pattern, copies, t, generator=own)
            drawn = sample_held(
                denoiser, pattern, len(group), generator=own, options=options, start=(noisy, t)
            )
            for place, (row, x) in enumerate(zip(group.tolist(), drawn.x.to_lists(), strict=True)):
                distance = edit_distance(list(tokens), x)
                distances[row], attempts[row] = distance, attempts[row] + 1
                if least <= distance <= most:
                    found[row] = drawn.rows(torch.tensor([place], device=device))
                else:
                    further = 1 if distance < least else -1
                    times[row] = min(max(t + further, 1), denoiser.schedule.num_steps - 1)
    missing = [row for row in range(rows) if row not in found]
    if missing:
        raise ValueError(
            f"sample {missing[0]}: none of {ATTEMPTS} draws was {least} to {most} edits away from "
            f"the text, the last one {int(distances[missing[0]])}: allow another number of edits"
        )
    samples = HeldSamples.joined([_without_steps(found[row]) for row in range(rows)])
    return Mutations(samples, distances, times, attempts)


def _without_steps(samples: HeldSamples) -> HeldSamples:
    """Rows that took different numbers of steps are shown without what happened in each."""
    return replace(samples, effective=samples.effective[-1:], resampled=samples.resampled[-1:])


def _fitting_time(denoiser: Denoiser, original: Held, edits: float) -> int:
    """The first t at which q is expected to change this many of the tokens that may change."""
    jump = denoiser.schedule.tables(torch.device("cpu")).jump
    tokens = original.x.tokens[0][~original.frozen[0]]
    last = denoiser.schedule.num_steps - 1
    for t in range(1, last + 1):
        same = jump.replace_prob(torch.tensor(t), tokens, tokens)
        if float((1.0 - same).sum()) >= edits:
            return t
    return last


def _contents(state: Held, gaps: int) -> list[list[list[int]]]:
    """The tokens in each gap, row by row."""
    numbers, frozen = state.gap_numbers().tolist(), state.frozen.tolist()
    found = []
    for row, where, own in zip(state.x.to_lists(), numbers, frozen, strict=True):
        parts: list[list[int]] = [[] for _ in range(gaps)]
        for token, number, is_frozen in zip(row, where, own, strict=False):
            if not is_frozen:
                parts[number].append(token)
        found.append(parts)
    return found
