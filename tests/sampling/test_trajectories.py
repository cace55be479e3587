"""Tokens can be followed through inserts and deletes, and every link is a step of q."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from indel import Batch
from indel.process import IdentityTransition, Schedule, Step, corrupt_chain, log_prob_step
from indel.sampling.generation import SamplingOptions, denoise_from, generate
from indel.sampling.strides import Strides, evenly_spaced
from indel.sampling.trajectories import NO_TOKEN, Life, Trajectory
from support.denoisers import tiny_denoiser

SCHEDULE = Schedule.paper(2, 6, 0.7)
INS, DEL = SCHEDULE.ins, SCHEDULE.del_


def sampled(times: tuple[int, ...] | None = None) -> tuple[Trajectory, ...]:
    denoiser = tiny_denoiser(SCHEDULE, max_length=12)
    options = SamplingOptions(times=times, approximate_strides=True)
    noise = torch.Generator().manual_seed(0)
    samples = generate(denoiser, 40, generator=noise, options=options, keep_trajectories=True)
    assert samples.trajectories is not None
    for trajectory, x_0 in zip(samples.trajectories, samples.x.to_lists(), strict=True):
        assert trajectory.times[-1] == 0
        assert list(trajectory.states[-1]) == x_0
    return samples.trajectories


@pytest.fixture(scope="module", params=[None, evenly_spaced(6, 3)])
def times(request: pytest.FixtureRequest) -> tuple[int, ...] | None:
    chosen: tuple[int, ...] | None = request.param
    return chosen


@pytest.fixture(scope="module")
def trajectories(times: tuple[int, ...] | None) -> tuple[Trajectory, ...]:
    return sampled(times)


def test_every_link_is_a_step_of_q(
    trajectories: tuple[Trajectory, ...], times: tuple[int, ...] | None
) -> None:
    strides = Strides.of(SCHEDULE, times)
    falling = (*reversed(strides.times), 0)
    for trajectory in trajectories:
        assert trajectory.times == falling
        for number, (later, earlier) in enumerate(pairwise(trajectory.states)):
            x_t, x_prev = Batch.from_lists([later]), Batch.from_lists([earlier])
            step = len(strides.times) - number
            assert log_prob_step(strides.schedule, x_prev, x_t, step).item() > -torch.inf


def test_links_connect_what_is_no_marker(trajectories: tuple[Trajectory, ...]) -> None:
    for trajectory in trajectories:
        for step, (later, earlier) in enumerate(pairwise(trajectory.states)):
            parents, children = trajectory.parents[step], trajectory.children(step)
            assert len(parents) == len(later)
            assert len(children) == len(earlier)
            for token, parent in zip(later, parents, strict=True):
                assert (parent == NO_TOKEN) == (token == INS)
                assert parent == NO_TOKEN or earlier[parent] != DEL
            for position, (token, child) in enumerate(zip(earlier, children, strict=True)):
                assert (child == NO_TOKEN) == (token == DEL)
                assert child == NO_TOKEN or parents[child] == position
            # A step keeps the order.
            linked = [parent for parent in parents if parent != NO_TOKEN]
            assert linked == sorted(linked)


def test_identities_are_unique_and_last_a_life(trajectories: tuple[Trajectory, ...]) -> None:
    inserts = deletions = 0
    for trajectory in trajectories:
        for step, names in enumerate(trajectory.identities):
            assert len(set(names)) == len(names) == len(trajectory.states[step])
        for step, parents in enumerate(trajectory.parents):
            names, earlier = trajectory.identities[step], trajectory.identities[step + 1]
            for name, parent in zip(names, parents, strict=True):
                assert parent == NO_TOKEN or earlier[parent] == name
        lives = trajectory.lives()
        assert [life.identity for life in lives] == list(range(len(lives)))
        for life in lives:
            first, last = (trajectory.times.index(life.times[end]) for end in (0, -1))
            assert life.times == trajectory.times[first : last + 1]
            assert first == 0 or life.tokens[0] == DEL
            assert life.times[-1] == 0 or life.tokens[-1] == INS
            # In between it is neither.
            assert INS not in life.tokens[:-1]
            assert DEL not in life.tokens[1:]
            inserts += life.times[-1] > 0
            deletions += first > 0
    # Something did happen.
    assert inserts > 10
    assert deletions > 10


def test_a_small_example() -> None:
    trajectory = Trajectory.of(
        [3, 2, 1, 0], [[DEL], [DEL, 1, DEL], [0, INS, 1], [0, 1]], vocab_size=2
    )
    assert trajectory.parents == ((1,), (0, 1, 2), (0, NO_TOKEN, 1))
    assert trajectory.children(0) == (NO_TOKEN, 0, NO_TOKEN)
    assert trajectory.identities == ((0,), (1, 0, 2), (1, 0, 2), (1, 2))
    assert trajectory.lives() == (
        Life(0, (3, 2, 1), (0, 1, 1), (DEL, 1, INS)),
        Life(1, (2, 1, 0), (0, 0, 0), (DEL, 0, 0)),
        Life(2, (2, 1, 0), (2, 2, 1), (DEL, 1, 1)),
    )


def test_a_chain_of_the_forward_process_is_one_too() -> None:
    x_0 = Batch.from_lists([[0, 1, 1, 0]])
    chain = corrupt_chain(SCHEDULE, x_0, generator=torch.Generator().manual_seed(3))
    states = [x.to_lists()[0] for x in reversed(chain)]
    trajectory = Trajectory.of(range(6, -1, -1), states, vocab_size=2)
    kept = {name for name in trajectory.identities[-1] if name in trajectory.identities[0]}
    # What was never deleted before the last step has one identity throughout.
    for life in trajectory.lives():
        assert (life.identity in kept) == (len(life.times) == 7)


def test_empty_states() -> None:
    trajectory = Trajectory.of([1, 0], [[], []], vocab_size=2)
    assert trajectory.parents == ((),)
    assert trajectory.children(0) == ()
    assert trajectory.identities == ((), ())
    assert trajectory.lives() == ()
    alone = Trajectory.of([4], [[0, 1]], vocab_size=2)
    assert alone.parents == ()
    assert alone.identities == ((0, 1),)


def test_what_is_no_trajectory_is_refused() -> None:
    with pytest.raises(ValueError, match="as many tokens"):
        Trajectory.of([1, 0], [[0, 1], [0]], vocab_size=2)
    with pytest.raises(ValueError, match="one state for each time"):
        Trajectory.of([1], [[0], [0]], vocab_size=2)
    with pytest.raises(ValueError, match="one state for each time"):
        Trajectory.of([], [], vocab_size=2)
    with pytest.raises(ValueError, match="times must fall"):
        Trajectory.of([0, 1], [[0], [0]], vocab_size=2)


def test_rows_start_at_their_own_time() -> None:
    schedule = Schedule(
        [Step(0.2, 0.2, IdentityTransition(2)), Step(0.2, 0.2, IdentityTransition(2))]
    )
    samples = denoise_from(
        tiny_denoiser(schedule),
        Batch.from_lists([[0, INS, 1], [INS, DEL, 1]]),
        torch.tensor([1, 2]),
        generator=torch.Generator().manual_seed(0),
        keep_trajectories=True,
    )
    assert samples.trajectories is not None
    first, second = samples.trajectories
    assert first.times == (1, 0)
    assert first.states[0] == (0, INS, 1)
    assert second.times == (2, 1, 0)
    assert second.states[0] == (INS, DEL, 1)
