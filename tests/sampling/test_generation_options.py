"""Sampling with temperature, top-p and a limit on the length."""

from __future__ import annotations

import pytest
import torch

from indel import Batch
from indel.process import Schedule
from indel.sampling.generation import SamplingOptions, denoise_from, generate
from indel.sampling.length_limit import draw_within
from indel.sampling.truncation import Sharpening
from support.denoisers import reverse_matrix, tiny_denoiser
from support.frequencies import chi_square_p, count
from support.generation_cases import (
    DEL,
    DRAWS,
    EVERY,
    INS,
    SCHEDULE,
    generator,
    prolific,
    repeated,
    some_start,
    step_of,
)


def test_off_is_exactly_off() -> None:
    denoiser, (x_t, t) = tiny_denoiser(SCHEDULE, max_length=20), some_start()
    plain = denoise_from(denoiser, x_t, t, generator=generator())
    options = SamplingOptions(tokens=Sharpening(1.0, 1.0), deletions=Sharpening(1.0, 1.0))
    assert denoise_from(denoiser, x_t, t, generator=generator(), options=options).x.equals(plain.x)


def test_temperature_zero_gives_the_likeliest_value() -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=7)
    x_1 = Batch.from_lists([[0, 1, DEL, 1, INS, 0], [1, DEL], []])
    seen = x_1.without(INS)
    with torch.no_grad():
        best = denoiser(seen, 1).logits_token[..., :2].argmax(dim=-1)
    for temperature in (0.0, 1e-6):
        options = SamplingOptions(tokens=Sharpening(temperature))
        samples = denoise_from(denoiser, x_1, 1, generator=generator(), options=options)
        assert samples.x.equals(Batch(best, seen.lengths))


def test_the_temperature_of_deletions() -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=8)
    with torch.no_grad():
        denoiser.deletions_head.weight.zero_()
        denoiser.deletions_head.bias.copy_(torch.tensor([0.0, 1.0, 0.5]))
    options = SamplingOptions(deletions=Sharpening(0.0), tokens=Sharpening(0.0))
    samples = denoise_from(
        denoiser,
        repeated((0, 1), 50),
        2,
        generator=generator(),
        options=options,
        keep_trajectories=True,
    )
    assert samples.trajectories is not None
    # At t − 1 = 1 every deleted token is a DEL: one in each of the three slots.
    assert {trajectory.states[1].count(DEL) for trajectory in samples.trajectories} == {3}


def test_top_p_removes_the_tail() -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=8)
    with torch.no_grad():
        denoiser.deletions_head.weight.zero_()
        denoiser.deletions_head.bias.copy_(torch.tensor([0.5, 0.2, 0.3]).log())
    counts = []
    for top_p in (1.0, 0.79, 0.5):
        options = SamplingOptions(deletions=Sharpening(top_p=top_p))
        samples = denoise_from(
            denoiser, repeated((), 500), 2, generator=generator(), options=options
        )
        counts.append(set(samples.x.lengths.tolist()))
    assert counts == [{0, 1, 2}, {0, 2}, {0}]


class Limit:
    """A callback that wants every sequence within a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reached = False

    def __call__(self, t: int, x_t: Batch) -> None:
        assert not len(x_t) or int(x_t.lengths.max()) <= self.limit
        self.reached |= bool((x_t.lengths == self.limit).any())


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_no_sequence_is_longer_than_allowed(limit: int) -> None:
    denoiser, within = prolific(tiny_denoiser(SCHEDULE, max_length=7)), Limit(limit)
    options = SamplingOptions(max_length=limit, redraws=2)
    samples = generate(denoiser, 200, generator=generator(), options=options, callback=within)
    assert within.reached
    assert int(samples.dropped.sum()) > 0
    assert int(samples.redrawn.max()) > 1


def test_the_limit_is_the_denoisers_own_by_default() -> None:
    denoiser, within = prolific(tiny_denoiser(SCHEDULE, max_length=5)), Limit(5)
    assert int(generate(denoiser, 50, generator=generator(), callback=within).dropped.sum()) > 0
    free = generate(denoiser, 50, generator=generator(), options=SamplingOptions(max_length=1000))
    assert int(free.dropped.sum()) == int(free.redrawn.sum()) == 0
    assert int(free.x.lengths.max()) > 5


def test_a_start_that_is_too_long_is_cut() -> None:
    denoiser = tiny_denoiser(Schedule.paper(2, 4, 0.0), max_length=6)
    with torch.no_grad():
        denoiser.length.logits.fill_(-100.0)[6] = 0.0
    options = SamplingOptions(max_length=4, redraws=3)
    samples = generate(denoiser, 5, generator=generator(), options=options)
    assert samples.x.lengths.tolist() == [4] * 5
    assert samples.redrawn.tolist() == [3] * 5
    assert samples.dropped.tolist() == [2] * 5


def test_what_is_drawn_again_follows_the_law_within_the_limit() -> None:
    denoiser, tokens, limit = tiny_denoiser(SCHEDULE, seed=9), (1, DEL), 2
    reverse = step_of(denoiser, tokens, 2, DRAWS)
    draw = draw_within(reverse, limit, redraws=30, generator=generator(3))
    assert int(draw.dropped.sum()) == 0
    assert int(draw.redrawn.sum()) > DRAWS / 20
    short = [x for x in EVERY if len(x) <= limit]
    law = reverse_matrix(denoiser, 2, [tokens], short)[0]
    probs = dict(zip(((x,) for x in short), (law / law.sum()).tolist(), strict=True))
    found = count(draw.x.tokens, lengths=draw.x.lengths, longest=limit)
    assert chi_square_p(found, probs) > 0.01


def test_the_last_dels_are_dropped() -> None:
    denoiser = prolific(tiny_denoiser(SCHEDULE, seed=10))
    reverse = step_of(denoiser, (0, 1), 2, 300)
    free = reverse.sample(generator=generator(4)).to_lists()
    cut = draw_within(reverse, 3, redraws=0, generator=generator(4))
    for whole, short, dropped in zip(free, cut.x.to_lists(), cut.dropped.tolist(), strict=True):
        for _ in range(dropped):
            del whole[len(whole) - 1 - whole[::-1].index(DEL)]
        assert short == whole
        assert len(short) <= 3
    assert int(cut.dropped.max()) > 1


def test_too_long_a_start_is_refused() -> None:
    with pytest.raises(ValueError, match="row 1 has 3 tokens, more than max_length = 2"):
        denoise_from(
            tiny_denoiser(SCHEDULE),
            Batch.from_lists([[0], [0, INS, 1]]),
            2,
            generator=generator(),
            options=SamplingOptions(max_length=2),
        )
