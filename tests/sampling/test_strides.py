"""Fewer calls of the network: exact in place, and otherwise an approximation with a known cost."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from indel import Batch
from indel.model import Denoiser
from indel.process import (
    AbsorbingTransition,
    IdentityTransition,
    MatrixTransition,
    NeighborTransition,
    Schedule,
    Step,
    UniformTransition,
)
from indel.sampling.generation import SamplingOptions, denoise_from, generate
from indel.sampling.strides import Strides, evenly_spaced
from stride_costs import CORRELATED, ONE_A_LENGTH, stride_cost
from support.denoisers import sequences, tiny_denoiser
from support.frequencies import Outcome, chi_square_p, count

DEL = 3
IN_PLACE = Schedule(
    [
        Step(0.0, 0.0, MatrixTransition([[0.9, 0.1], [0.2, 0.8]])),
        Step(0.0, 0.0, MatrixTransition([[0.7, 0.3], [0.1, 0.9]])),
        Step(0.0, 0.0, MatrixTransition([[0.8, 0.2], [0.4, 0.6]])),
        Step(0.0, 0.0, MatrixTransition([[0.5, 0.5], [0.3, 0.7]])),
        Step(0.0, 1.0, IdentityTransition(2)),
    ]
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ---------------------------------------------------------------- in place


def transition(first: int, last: int) -> Tensor:
    """A_{first+1} ⋯ A_last of IN_PLACE, a product of its matrices."""
    steps = (IN_PLACE.step(u).transition.matrix() for u in range(first + 1, last + 1))
    return reduce(torch.matmul, steps, torch.eye(2, dtype=torch.float64))


@torch.no_grad()
def stride_matrix(denoiser: Denoiser, s: int, t: int, rows: list[tuple[int, ...]]) -> Tensor:
    """p_θ(x_s | x_t) ∝ Π Σ_x p̃(x) Ā_s[x,y] A_{s→t}[y,z], token by token; at T nothing is seen."""
    result = torch.zeros(len(rows), len(rows), dtype=torch.float64)
    last = IN_PLACE.num_steps
    for i, later in enumerate(rows):
        shown = [DEL] * len(later) if t == last else list(later)
        guess = denoiser(Batch.from_lists([shown]), t).logits_token[0, :, :2].double().softmax(-1)
        values = guess @ transition(0, s)
        if t < last:
            values = values * transition(s, t)[:, list(later)].T
        values = values / values.sum(dim=-1, keepdim=True)
        for j, earlier in enumerate(rows):
            if len(earlier) == len(later):
                result[i, j] = values[torch.arange(len(earlier)), list(earlier)].prod()
    return result


@pytest.mark.parametrize("times", [(5, 2), (5, 4, 1), (5,), (5, 4, 3, 2, 1)])
def test_in_place_strides_follow_the_exact_law(times: tuple[int, ...]) -> None:
    denoiser, rows = tiny_denoiser(IN_PLACE, seed=1), sequences(range(2), 2)
    samples = generate(
        denoiser,
        30_000,
        generator=generator(),
        options=SamplingOptions(times=times, max_length=2, redraws=99),
    )
    assert samples.network_calls == len(times)
    found = count(samples.x.tokens, lengths=samples.x.lengths, longest=2)

    def law(of: Denoiser) -> dict[Outcome, float]:
        lengths = of.length.log_prob(torch.arange(3)).exp().detach().double()
        start = torch.tensor([tokens == (0,) * len(tokens) for tokens in rows]).double()
        start = start * (lengths / lengths.sum())[torch.tensor([len(tokens) for tokens in rows])]
        end = start
        for t, s in pairwise((*times, 0)):
            end = end @ stride_matrix(of, s, t, rows)
        return {(tokens,): prob for tokens, prob in zip(rows, end.tolist(), strict=True)}

    assert abs(sum(law(denoiser).values()) - 1.0) < 1e-9
    assert chi_square_p(found, law(denoiser)) > 0.01
    with torch.no_grad():
        denoiser.embedding.weight[0] += 0.3
    assert chi_square_p(found, law(denoiser)) < 1e-4


def test_strides_from_the_middle() -> None:
    denoiser, rows = tiny_denoiser(IN_PLACE, seed=2), sequences(range(2), 2)
    x_t = Batch.from_lists([(1, 0)] * 30_000)
    options = SamplingOptions(times=(4, 2))
    samples = denoise_from(denoiser, x_t, 4, generator=generator(), options=options)
    law = (stride_matrix(denoiser, 2, 4, rows) @ stride_matrix(denoiser, 0, 2, rows))[
        rows.index((1, 0))
    ]
    found = count(samples.x.tokens, lengths=samples.x.lengths, longest=2)
    probs = {(tokens,): prob for tokens, prob in zip(rows, law.tolist(), strict=True)}
    assert chi_square_p(found, probs) > 0.01


# ---------------------------------------------------------------- the coarse process


def quiet(family: str) -> Schedule:
    """Inserts and deletions at steps 2, 5 and 6 only, values change everywhere."""
    make = {
        "uniform": lambda keep: UniformTransition(3, keep),
        "absorbing": lambda keep: AbsorbingTransition(3, keep, mask=1),
        "dense": lambda keep: NeighborTransition(3, {0: [1], 1: [0, 2]}, keep),
    }[family]
    pi = torch.tensor([0.2, 0.5, 0.3])
    return Schedule(
        [
            Step(0.0, 0.0, make(0.9)),
            Step(0.2, 0.3, make(0.8), pi, 0.1),
            Step(0.0, 0.0, make(0.7), pi),
            Step(0.0, 0.0, make(0.6)),
            Step(0.1, 0.2, make(0.9), None, 0.4),
            Step(0.3, 0.1, make(0.8), pi.flip(0), 0.2),
        ]
    )


@pytest.mark.parametrize("family", ["uniform", "absorbing", "dense"])
def test_skipping_quiet_steps_is_exact(family: str) -> None:
    schedule = quiet(family)
    strides = Strides.of(schedule, (2, 5, 6))
    assert strides.exact
    for k, t in enumerate(strides.times, start=1):
        coarse, fine = strides.schedule.jump(k), schedule.jump(t)
        torch.testing.assert_close(coarse.insert, fine.insert)
        torch.testing.assert_close(coarse.delete, fine.delete)
        torch.testing.assert_close(coarse.replace, fine.replace)
        torch.testing.assert_close(torch.tensor(coarse.stop), torch.tensor(fine.stop))


@pytest.mark.parametrize("times", [(1, 2, 6), (3, 5, 6), (1, 2, 3, 4, 6)])
def test_skipping_others_is_not(times: tuple[int, ...]) -> None:
    schedule = quiet("uniform")
    if times[0] > 2:
        with pytest.raises(ValueError, match="must go down to 1, not only to 3"):
            Strides.of(schedule, times)
    else:
        assert not Strides.of(schedule, times).exact


def test_an_insert_that_a_skipped_step_deletes() -> None:
    still = IdentityTransition(2)
    kept = Step(0.0, 0.0, still, delete_inserted=0.0)
    eager = Step(0.0, 0.0, still, delete_inserted=0.5)
    inserting = Step(0.2, 0.0, still)
    assert Strides.of(Schedule([inserting, kept, kept]), (1, 3)).exact
    assert not Strides.of(Schedule([inserting, eager, kept]), (1, 3)).exact
    # Nobody inserts: nothing for the second step to delete.
    assert Strides.of(Schedule([kept, eager, kept]), (1, 3)).exact


@pytest.mark.parametrize("times", [(1, 4, 6), (1, 3, 5, 6), (1, 6)])
def test_markers_stay_until_the_end_of_a_stride(times: tuple[int, ...]) -> None:
    schedule = quiet("dense")
    strides = Strides.of(schedule, times)
    for k, (s, t) in enumerate(pairwise((0, *times)), start=1):
        product = torch.eye(5, dtype=torch.float64)
        for u in range(s + 1, t + 1):
            matrix = schedule.step(u).matrix()
            matrix[4, 4] = 1.0
            product = product @ matrix
        product[4, 4] = 0.0
        torch.testing.assert_close(strides.schedule.step(k).matrix(), product)
        # A token of x_0 has been deleted as often as in q, and otherwise has the same value.
        torch.testing.assert_close(
            torch.tensor(strides.schedule.jump(k).keep), torch.tensor(schedule.jump(t).keep)
        )
        torch.testing.assert_close(
            strides.schedule.jump(k).kept.matrix(), schedule.jump(t).kept.matrix()
        )
        # Inserts of a gap: those of q over the stride that are not deleted again.
        jump = Schedule(schedule.step(u) for u in range(s + 1, t + 1)).jump(t - s)
        alive = float(jump.insert[:-1].sum())
        assert strides.schedule.step(k).insert == pytest.approx(alive / (alive + jump.stop))


def test_all_times_leave_the_schedule_as_it_is() -> None:
    schedule = quiet("uniform")
    assert Strides.of(schedule).schedule is schedule
    assert Strides.of(schedule, range(1, 5)).schedule is schedule
    assert Strides.of(schedule, (3, 2, 1)).exact


def test_large_vocabularies_need_no_matrix() -> None:
    schedule = Schedule.paper(50_000, 12, 0.6)
    strides = Strides.of(schedule, evenly_spaced(12, 4))
    assert strides.schedule.tables(torch.device("cpu")).jump.vocab_size == 50_000


# ---------------------------------------------------------------- asking for it


def test_an_approximation_must_be_asked_for() -> None:
    denoiser = tiny_denoiser(Schedule.paper(2, 6, 0.5))
    times = evenly_spaced(6, 3)
    with pytest.raises(ValueError, match="approximate_strides=True"):
        generate(denoiser, 1, generator=generator(), options=SamplingOptions(times=times))
    options = SamplingOptions(times=times, approximate_strides=True)
    assert generate(denoiser, 1, generator=generator(), options=options).network_calls == 3


def test_a_start_must_be_among_the_times() -> None:
    denoiser = tiny_denoiser(Schedule.paper(2, 6, 0.0))
    with pytest.raises(ValueError, match="the time of every x_t, here 6"):
        generate(denoiser, 1, generator=generator(), options=SamplingOptions(times=(5, 1)))
    with pytest.raises(ValueError, match=r"times must lie in 1…6, got 7"):
        generate(denoiser, 1, generator=generator(), options=SamplingOptions(times=(7, 1)))
    with pytest.raises(ValueError, match="at least one time"):
        generate(denoiser, 1, generator=generator(), options=SamplingOptions(times=()))


def test_evenly_spaced_times() -> None:
    assert evenly_spaced(32, 32) == tuple(range(32, 0, -1))
    assert evenly_spaced(7, 1) == (7,)
    assert evenly_spaced(1, 1) == (1,)
    for calls in range(2, 11):
        times = evenly_spaced(11, calls)
        assert len(set(times)) == calls
        assert (times[0], times[-1]) == (11, 1)
    for calls in (0, 12):
        with pytest.raises(ValueError, match=r"calls must lie in 1…11"):
            evenly_spaced(11, calls)


# ---------------------------------------------------------------- its cost


def test_what_strides_cost() -> None:
    """Total variation between data and samples of an ideal denoiser, T = 8."""
    cost = {
        calls: stride_cost(ONE_A_LENGTH, rate=0.5, num_steps=8, calls=calls, rows=4_000)
        for calls in (8, 4, 2)
    }
    # Measured with 20,000 rows: 0.044, 0.102 and 0.234.
    assert cost[8] < 0.07
    assert cost[8] < cost[4] < 0.13
    assert cost[4] < cost[2] < 0.3


def test_in_place_nothing_but_independence_costs() -> None:
    in_place = stride_cost(ONE_A_LENGTH, rate=0.0, num_steps=8, calls=2, rows=4_000)
    assert in_place < 0.03
    assert stride_cost(CORRELATED, rate=0.0, num_steps=8, calls=8, rows=4_000) > 0.2
