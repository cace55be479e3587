"""The frozen step is the conditional of the free one, and frozen tokens come out as they were."""

from __future__ import annotations

import itertools

import pytest
import torch

from indel import Batch, RowSeeds
from indel.model import Denoiser
from indel.model.reverse import ReverseStep
from indel.process import Schedule
from indel.sampling.conditioning import Held, HeldStep
from indel.sampling.gap_lengths import GapLengths
from indel.sampling.generation import SamplingOptions
from indel.sampling.particles import HeldSamples, sample_held
from indel.sampling.patterns import Gap, Pattern
from indel.sampling.rewards import Steering
from indel.sampling.truncation import Sharpening
from support.denoisers import Tokens, reverse_matrix, tiny_denoiser
from support.held_chains import (
    DEL,
    INS,
    MOST_BIRTHS,
    SCHEDULE,
    earlier_contents,
    fit_some,
    held_denoiser,
    sequence,
)

MIDDLE = Pattern.of([[0], Gap(), [1]])
TWO = Pattern.of([Gap(), [1, 0], Gap()])


def held(pattern: Pattern, *rows: tuple[Tokens, ...], frozen: Tokens | None = None) -> Held:
    """States with these contents of the gaps."""
    values = pattern.tokens if frozen is None else frozen
    x = Batch.from_lists([sequence(pattern, gaps, values) for gaps in rows])
    marks = torch.zeros_like(x.tokens, dtype=torch.bool)
    for row, gaps in enumerate(rows):
        place, rest = 0, iter(gaps)
        for number, gap in enumerate(pattern.gaps):
            place += len(next(rest)) if gap is not None else 0
            if number < len(pattern.tokens):
                marks[row, place] = True
                place += 1
    return Held(x, marks)


def step_of(denoiser: Denoiser, pattern: Pattern, x_t: Held, t: int) -> HeldStep:
    seen = x_t.without(INS)
    times = torch.full((len(seen.x),), t)
    with torch.no_grad():
        output = denoiser(seen.x, times)
    reverse = ReverseStep.of(denoiser.schedule, output, seen.x, times)
    lengths = GapLengths.of(pattern, denoiser.schedule, 20, seen.x.device)
    return HeldStep(reverse, seen.frozen, pattern, lengths, t - 1)


# ---------------------------------------------------------------- the law of one step


@pytest.mark.parametrize("t", [3, 2, 1])
@pytest.mark.parametrize(
    ("pattern", "gaps"),
    [(MIDDLE, ((1, INS, DEL),)), (MIDDLE, ((),)), (TWO, ((0,), (DEL,))), (TWO, ((), (0, 0)))],
)
def test_the_frozen_step_is_the_conditional_of_the_free_one(
    pattern: Pattern, gaps: tuple[Tokens, ...], t: int
) -> None:
    if t == 3:
        # At T all tokens are DELs, the frozen ones too.
        gaps = tuple((DEL,) * len(gap) for gap in gaps)
    denoiser = held_denoiser(3, longest=4)
    first = (DEL,) * len(pattern.tokens) if t == 3 else pattern.tokens
    values, births = (range(3), MOST_BIRTHS) if t > 1 else (range(2), 0)
    options = list(itertools.product(*(earlier_contents(gap, values, births) for gap in gaps)))
    x_prev = [sequence(pattern, option, pattern.tokens) for option in options]
    free = reverse_matrix(denoiser, t, [sequence(pattern, gaps, first)], x_prev)[0]
    step = step_of(denoiser, pattern, held(pattern, *[gaps] * len(options), frozen=first), t)
    assert step.log_frozen()[0].exp().item() == pytest.approx(free.sum().item(), rel=1e-6)
    found = step.log_prob(held(pattern, *options)).exp()
    assert torch.allclose(found, (free / free.sum()).to(found), rtol=1e-5)
    assert found.sum().item() == pytest.approx(1.0, rel=1e-6)


def test_what_is_not_in_place_is_impossible() -> None:
    denoiser = held_denoiser(3, longest=4)
    step = step_of(denoiser, TWO, held(TWO, ((0,), ()), ((0,), ())), 2)
    changed = Held(Batch.from_lists([[0, 1, 1]]), torch.tensor([[False, True, True]]))
    between = Held(Batch.from_lists([[0, 1, DEL, 0]]), torch.tensor([[False, True, False, True]]))
    one = torch.tensor([0])
    assert step.rows(one).log_prob(changed).item() == -torch.inf
    assert step.rows(one).log_prob(between).item() == -torch.inf


# ---------------------------------------------------------------- thousands of samples


@pytest.mark.parametrize(("limit", "contexts"), [(None, 0), (6, 0), (9, 0), (None, 12), (6, 12)])
def test_frozen_tokens_come_out_unchanged(limit: int | None, contexts: int) -> None:
    denoiser = tiny_denoiser(Schedule.paper(2, 4, 0.6), seed=5, max_length=12, contexts=contexts)
    fit_some(denoiser)
    with torch.no_grad():
        denoiser.deletions_head.bias.copy_(torch.tensor([0.0, 1.0, 2.0]))
    for number, pattern in enumerate(
        (
            MIDDLE,
            TWO,
            Pattern.of([[1, 1, 0], Gap()]),
            Pattern.of([Gap(1, 2), [0, 1, 0]]),
            Pattern.of([[0], Gap(2, 2), [1], Gap(0, 1), [1]]),
        )
    ):
        options = SamplingOptions(max_length=limit, tokens=Sharpening(0.7, 1.0))
        samples = sample_held(
            denoiser,
            pattern,
            250,
            generator=RowSeeds(torch.arange(250) + 1000 * number),
            particles=1 + number % 2,
            # A reward that would rather have no ones at all.
            steering=Steering(lambda texts: [-text.count("1") for text in texts], 3.0)
            if number % 2
            else None,
            options=options,
        )
        lengths = Held(samples.x, samples.frozen).gap_counts(len(pattern.gaps)).tolist()
        for row, marks, counts in zip(
            samples.x.to_lists(), samples.frozen.tolist(), lengths, strict=True
        ):
            kept = [token for token, mark in zip(row, marks, strict=False) if mark]
            assert tuple(kept) == pattern.tokens
            assert len(row) <= (limit or 12)
            for gap, count in zip(pattern.gaps, counts, strict=True):
                assert gap.allows(count) if gap is not None else count == 0


@pytest.mark.parametrize("contexts", [0, 12])
def test_a_row_depends_on_its_own_seed_alone(contexts: int) -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=4, max_length=20, contexts=contexts)
    fit_some(denoiser)
    seeds = torch.arange(12)
    for pattern, particles in ((TWO, 1), (Pattern.of([Gap(2, 4), [1, 0], Gap()]), 4)):

        def drawn(*rows: int, pattern: Pattern = pattern, many: int = particles) -> HeldSamples:
            own = RowSeeds(seeds[list(rows)])
            return sample_held(denoiser, pattern, len(rows), generator=own, particles=many)

        together = drawn(*range(12))
        assert len(set(map(tuple, together.x.to_lists()))) > 4
        for row in (0, 7):
            alone = drawn(row)
            assert alone.x.to_lists() == [together.x.to_lists()[row]]
            assert torch.allclose(alone.effective[:, 0], together.effective[:, row])


def test_in_place_gaps_have_the_length_asked_for() -> None:
    """Where nothing is inserted or deleted the length is settled at T."""
    denoiser = tiny_denoiser(Schedule.paper(2, 4, 0.0), max_length=8)
    pattern = Pattern.of([[0], Gap(2, 3), [1]])
    samples = sample_held(denoiser, pattern, 50, generator=torch.Generator().manual_seed(0))
    assert set(samples.x.lengths.tolist()) == {4, 5}
