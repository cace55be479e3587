"""p_θ(x_{t−1} | x_t) is Eq. (1), sums to one, is zero where q is zero, and is what is drawn."""

import itertools
import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

import oracles
from indel import Batch
from indel.model.denoiser import DenoiserOutput
from indel.model.reverse import EditWeights, ReverseStep
from indel.process import (
    AbsorbingTransition,
    GaussianTransition,
    IdentityTransition,
    Schedule,
    Step,
    Transition,
    UniformTransition,
)
from indel.process.counts import observed_limit
from indel.randomness import RowSeeds
from oracles import OracleStep, Tokens
from support.cases import Case, cases, every_previous, steps_of
from support.frequencies import chi_square_p, count
from support.reverse_reference import reference

CPU = torch.device("cpu")
WEIGHTS = {"normalised": EditWeights.normalized, "joint": EditWeights.joint}


def in_steps(
    transitions: list[Transition], *, insert: float = 0.06, delete: float = 0.25
) -> Schedule:
    steps = [Step(insert, delete, transition) for transition in transitions]
    return Schedule([*steps, Step(0.0, 1.0, IdentityTransition(transitions[0].vocab_size))])


SCHEDULES = {
    "uniform": in_steps([UniformTransition(2, 0.7), UniformTransition(2, 0.6)]),
    "absorbing": in_steps([AbsorbingTransition(2, 0.7, 1), AbsorbingTransition(2, 0.5, 1)]),
    "dense": in_steps([GaussianTransition(3, 0.8, band=1), GaussianTransition(3, 0.5)]),
    "one token": in_steps([UniformTransition(1, 0.5)] * 3),
    "in place": in_steps([UniformTransition(2, 0.7)] * 2, insert=0.0, delete=0.0),
    "deletions alone": in_steps([UniformTransition(2, 0.7)] * 2, insert=0.0, delete=0.4),
    "insertions alone": in_steps([AbsorbingTransition(2, 0.7, 0)] * 2, delete=0.0),
    "given inserts": Schedule(
        [
            Step(0.1, 0.2, UniformTransition(2, 0.8), torch.tensor([1.0, 0.0]), 0.0),
            Step(0.1, 0.3, IdentityTransition(2), torch.tensor([1.0, 0.0]), 0.5),
            Step(0.0, 1.0, IdentityTransition(2)),
        ]
    ),
    # Nothing outlives the first step, and nothing regular is there after it.
    "all deleted at once": Schedule(
        [
            Step(0.1, 1.0, UniformTransition(2, 0.9), torch.tensor([1.0, 0.0])),
            Step(0.05, 0.2, IdentityTransition(2)),
            Step(0.05, 0.2, IdentityTransition(2)),
            Step(0.0, 1.0, IdentityTransition(2)),
        ]
    ),
}


def random_output(
    seen: Batch, size: int, most: int, seed: int = 0, scale: float = 1.5
) -> DenoiserOutput:
    """What a network might say: any logits; those at padding are absurd."""
    rng = np.random.default_rng(seed)
    token = rng.normal(size=(len(seen), seen.width, size + 1)) * scale
    deletions = rng.normal(size=(len(seen), seen.width + 1, most + 1)) * scale
    logits_token = torch.from_numpy(token)
    logits_token[~seen.mask] = 1e4
    logits_deletions = torch.from_numpy(deletions)
    logits_deletions[torch.arange(seen.width + 1) > seen.lengths[:, None]] = -1e4
    return DenoiserOutput(logits_token, logits_deletions)


def one_step(
    schedule: Schedule, x_t: Tokens, t: int, choice: str, *, most: int = 2, seed: int = 0
) -> tuple[ReverseStep, DenoiserOutput]:
    seen = Batch.from_lists([x_t]).without(schedule.ins)
    output = random_output(seen, schedule.vocab_size, most, seed)
    weights = WEIGHTS[choice](schedule.tables(CPU).jump)
    return ReverseStep.of(schedule, output, seen, torch.tensor([t]), weights=weights), output


def log_prob(reverse: ReverseStep, every: list[Tokens]) -> torch.Tensor:
    """log p_θ of many x_{t−1} for a single x_t."""
    rows = torch.zeros(len(every), dtype=torch.int64)
    many = ReverseStep(
        reverse.seen.rows(rows),
        reverse.logp_previous[rows],
        reverse.logp_deleted[rows],
        reverse.tables,
        reverse.t[rows],
    )
    return many.log_prob(Batch.from_lists(every))


@contextmanager
def limit_of_seconds(seconds: int) -> Iterator[None]:
    """An endless loop fails instead of hanging."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def x_ts(schedule: Schedule, t: int) -> list[Tokens]:
    """Some x_t with INS, DEL, both, neither and nothing at all."""
    size, ins, del_ = schedule.vocab_size, schedule.ins, schedule.del_
    if t == schedule.num_steps:
        return [(), (del_,), (del_, del_)]
    return [(), (0,), (ins,), (ins, del_, ins), (size - 1, del_), (ins, size - 1, ins, 0)]


def possible_x_ts(name: str, t: int) -> list[Tokens]:
    """Those with tokens that q can make; the others are refused."""
    schedule, found = SCHEDULES[name], []
    for x_t in x_ts(schedule, t):
        seen = tuple(token for token in x_t if token != schedule.ins)
        zeros = np.zeros((len(seen), schedule.vocab_size + 1)), np.zeros((len(seen) + 1, 1))
        if reference(steps_of(SCHEDULES[name])[:t], seen, *zeros, "joint").possible:
            found.append(x_t)
    return found


def over_all_times(test):
    times = [(name, t) for name in SCHEDULES for t in range(1, SCHEDULES[name].num_steps + 1)]
    test = pytest.mark.parametrize(("name", "t"), times)(test)
    return pytest.mark.parametrize("choice", WEIGHTS)(test)


@over_all_times
def test_it_sums_to_one(name: str, t: int, choice: str) -> None:
    """Over every x_{t−1} with few DELs; the mass of the others is bounded from their law."""
    schedule, most = SCHEDULES[name], 2
    loop = schedule.jump(t - 1).insert_del
    for x_t in possible_x_ts(name, t):
        reverse, _ = one_step(schedule, x_t, t, choice, most=most)
        length = int(reverse.seen.lengths)
        # At most two explicit DELs in each slot, so three chances of a loop in each.
        explicit, chances = most * (length + 1), (most + 1) * (length + 1)
        tail = stats.nbinom(chances, 1 - loop).sf
        limit = next(dels for dels in itertools.count(explicit) if tail(dels - explicit) < 1e-10)
        every = [
            x_prev
            for dels in range(limit + 1)
            for x_prev in every_previous(length, schedule.vocab_size, dels=dels)
        ]
        total = log_prob(reverse, every).exp().sum().item()
        assert total == pytest.approx(1.0, abs=2e-10)


@over_all_times
def test_it_is_zero_where_q_is_zero_and_only_there(name: str, t: int, choice: str) -> None:
    """q(x_{t−1}|x_0) q(x_t|x_{t−1}) > 0 for some x_0; one of length |x_{t−1}| is long enough."""
    schedule = SCHEDULES[name]
    steps = steps_of(schedule)
    size = schedule.vocab_size

    @lru_cache
    def reachable(x_prev: Tokens) -> bool:
        return any(
            oracles.jump_prob(steps[: t - 1], x_0, x_prev) > 0
            for length in range(len(x_prev) + 1)
            for x_0 in itertools.product(range(size), repeat=length)
        )

    for x_t in possible_x_ts(name, t):
        reverse, _ = one_step(schedule, x_t, t, choice, most=3)
        seen = tuple(reverse.seen.to_lists()[0])
        every = [
            x_prev
            for dels in range(3 if len(seen) < 2 else 2)
            for x_prev in every_previous(len(seen), size, dels=dels)
        ]
        every += [(0,) * (len(seen) + 1), (size + 1,) * (len(seen) + 1)]
        for x_prev, logp in zip(every, log_prob(reverse, every).tolist(), strict=True):
            possible = oracles.step_prob(steps[t - 1], x_prev, seen) > 0 and reachable(x_prev)
            assert (logp > -math.inf) == possible, (x_t, x_prev, logp)
            assert not math.isnan(logp)


@over_all_times
def test_log_prob_is_the_formula(name: str, t: int, choice: str) -> None:
    for x_t in possible_x_ts(name, t):
        reverse, output = one_step(SCHEDULES[name], x_t, t, choice)
        check_formula(reverse, output, steps_of(SCHEDULES[name])[:t], choice)


UNIFORM = OracleStep(0.3, 0.2, 0.2, ((0.8, 0.2), (0.2, 0.8)), (0.5, 0.5))
LAST = OracleStep(0.0, 1.0, 1.0, ((1.0, 0.0), (0.0, 1.0)), (0.5, 0.5))


@settings(deadline=None, max_examples=60)
@example(Case((replace(UNIFORM, delete=1.0), UNIFORM), (), (0, 2)), "normalised", 0)
@example(Case((UNIFORM,) * 3, (), ()), "normalised", 1)
@example(Case((UNIFORM,) * 3, (), (2, 2)), "joint", 1)
@example(Case((UNIFORM, UNIFORM, LAST), (), (3, 3)), "joint", 2)
@given(cases(), st.sampled_from(list(WEIGHTS)), st.integers(0, 5))
def test_log_prob_is_the_formula_for_any_process(case: Case, choice: str, seed: int) -> None:
    """Random steps, with probabilities 0 and 1 in them; x_t that q cannot make are refused."""
    size = case.steps[0].vocab_size
    seen = tuple(token for token in case.x_t if token != size)
    zeros = np.zeros((len(seen), size + 1)), np.zeros((len(seen) + 1, 1))
    if not reference(case.steps, seen, *zeros, choice).possible:
        with pytest.raises(ValueError, match="q cannot produce token"):
            one_step(case.schedule, case.x_t, case.t, choice)
        return
    reverse, output = one_step(case.schedule, case.x_t, case.t, choice, most=3, seed=seed)
    check_formula(reverse, output, case.steps, choice, rows=25)


def check_formula(
    reverse: ReverseStep,
    output: DenoiserOutput,
    steps: tuple[OracleStep, ...],
    choice: str,
    *,
    rows: int = 60,
) -> None:
    seen, size = tuple(reverse.seen.to_lists()[0]), steps[0].vocab_size
    expected = reference(
        steps, seen, output.logits_token[0].numpy(), output.logits_deletions[0].numpy(), choice
    )
    rng = np.random.default_rng(len(seen))
    every: list[Tokens] = [(size + 1,) * 4]
    for _ in range(rows):
        x_prev: list[int] = []
        for position in range(len(seen) + 1):
            x_prev += [size + 1] * int(rng.choice([0, 0, 1, 2, 5]))
            x_prev += [int(rng.integers(size + 1))] if position < len(seen) else []
        every.append(tuple(x_prev))
    actual = log_prob(reverse, every).exp().tolist()
    np.testing.assert_allclose(
        actual, [expected.prob(x_prev) for x_prev in every], rtol=1e-9, atol=1e-13
    )


def test_an_x_prev_that_does_not_fit_has_probability_zero() -> None:
    schedule = SCHEDULES["uniform"]
    reverse, _ = one_step(schedule, (0, 3), 2, "normalised")
    assert log_prob(reverse, [(), (0,), (0, 1, 1), (3, 3), (2,)]).tolist() == [-math.inf] * 5


@pytest.mark.parametrize(
    ("x_t", "t", "says"),
    [
        ((0, 1), 3, ["token 0", "row 0", "position 0", "t = 3"]),
        ((2, 3, 2, 1), 3, ["token 1", "position 1 without INS"]),
    ],
)
def test_an_x_t_that_q_cannot_make_is_refused(x_t: Tokens, t: int, says: list[str]) -> None:
    with pytest.raises(ValueError, match="q cannot produce") as error:
        one_step(SCHEDULES["uniform"], x_t, t, "normalised")
    for part in says:
        assert part in str(error.value)


@pytest.mark.parametrize("choice", WEIGHTS)
def test_rows_of_a_batch_do_not_mix(choice: str) -> None:
    """Different lengths and times, absurd logits at padding: what each row gives alone."""
    schedule = SCHEDULES["uniform"]
    rows = [((0, 3, 1), 2, (3, 2, 3, 3, 0, 1)), ((), 1, ()), ((3,), 3, (3, 0)), ((1,), 1, (0,))]
    seen = Batch.from_lists([row[0] for row in rows]).widened(5)
    t = torch.tensor([row[1] for row in rows])
    x_prev = Batch.from_lists([row[2] for row in rows])
    output = random_output(seen, 2, 3)
    weights = WEIGHTS[choice](schedule.tables(CPU).jump)
    together = ReverseStep.of(schedule, output, seen, t, weights=weights)
    logp, modes = together.log_prob(x_prev), together.mode().to_lists()
    drawn = together.sample(generator=RowSeeds(torch.arange(4))).to_lists()
    assert bool((logp > -torch.inf).all())
    for row, (x_t, _, prev) in enumerate(rows):
        alone_output = DenoiserOutput(
            output.logits_token[row : row + 1, : len(x_t)],
            output.logits_deletions[row : row + 1, : len(x_t) + 1],
        )
        batch = Batch.from_lists([x_t])
        alone = ReverseStep.of(schedule, alone_output, batch, t[row : row + 1], weights=weights)
        assert alone.log_prob(Batch.from_lists([prev])).item() == pytest.approx(
            logp[row].item(), abs=1e-12
        )
        assert alone.mode().to_lists() == [modes[row]]
        seeds = RowSeeds(torch.tensor([row]))
        assert alone.sample(generator=seeds).to_lists() == [drawn[row]]


def test_nothing_at_all() -> None:
    schedule = SCHEDULES["uniform"]
    empty = Batch.from_lists([])
    output = random_output(empty, 2, 3)
    reverse = ReverseStep.of(schedule, output, empty, torch.zeros(0, dtype=torch.int64))
    assert reverse.log_prob(empty).shape == (0,)
    assert len(reverse.mode()) == len(reverse.sample(generator=torch.Generator())) == 0


@over_all_times
def test_the_mode_is_the_most_likely(name: str, t: int, choice: str) -> None:
    schedule = SCHEDULES[name]
    for seed, x_t in enumerate(possible_x_ts(name, t)):
        reverse, _ = one_step(schedule, x_t, t, choice, seed=seed)
        length = int(reverse.seen.lengths)
        every = [
            x_prev
            for dels in range(2 * length + 3)  # up to two, the most that is predicted, in each slot
            for x_prev in every_previous(length, schedule.vocab_size, dels=dels)
        ]
        logp = log_prob(reverse, every)
        assert tuple(reverse.mode().to_lists()[0]) == every[int(logp.argmax())]


def test_the_number_of_dels_is_listed_as_far_as_it_matters() -> None:
    for t in (1, 2, 3, 4):
        reverse, _ = one_step(Schedule.paper(2, 4, 0.9), (3,), t, "normalised", most=6)
        total = reverse.logp_observed().exp().sum(dim=-1)
        torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-11)


@pytest.mark.parametrize("most", [0, 30, 300, 4000])
def test_limit_of_the_number_of_dels(most: int) -> None:
    """Also where the chance of no loop at all is too small for a number: 0.8^4000."""
    schedule = Schedule.paper(2, 10, 0.9)
    jump, t = schedule.tables(CPU).jump, torch.tensor([2, 10])
    with limit_of_seconds(10):
        limit = observed_limit(jump, t, most)
    loop = float(jump.insert_del[9])
    assert stats.nbinom.sf(limit - most - 1, most + 2, 1 - loop) < 1.1e-12
    assert stats.nbinom.sf(0.9 * (limit - most - 1) - 5, most + 2, 1 - loop) > 1e-12


# --- sampling -----------------------------------------------------------------------------------

DRAWS, LONGEST = 60_000, 6
SAMPLED = [("uniform", 2, (0, 2, 3)), ("dense", 2, (1,)), ("absorbing", 3, (3, 3))]


def law_and_samples(
    case: tuple[str, int, Tokens], choice: str, seed: int, *, nudge: float = 0.0, head: int = 0
) -> float:
    """The p-value of samples against the enumerated law, one logit of which may be off."""
    name, t, x_t = case
    schedule = SCHEDULES[name]
    seen = Batch.from_lists([x_t]).without(schedule.ins)
    output = random_output(seen, schedule.vocab_size, 2)
    weights = WEIGHTS[choice](schedule.tables(CPU).jump)
    times = torch.tensor([t])
    reverse = ReverseStep.of(schedule, output, seen, times, weights=weights)
    every = [
        x_prev
        for dels in range(LONGEST + 1 - int(seen.lengths))
        for x_prev in every_previous(int(seen.lengths), schedule.vocab_size, dels=dels)
    ]
    probs = log_prob(reverse, every).exp().tolist()
    output[head][0, 0, 0] += nudge
    rows = torch.zeros(DRAWS, dtype=torch.int64)
    many = ReverseStep.of(
        schedule,
        DenoiserOutput(output.logits_token[rows], output.logits_deletions[rows]),
        seen.rows(rows),
        times[rows],
        weights=weights,
    )
    drawn = many.sample(generator=torch.Generator().manual_seed(seed))
    samples = count(drawn.tokens, lengths=drawn.lengths, longest=LONGEST)
    law = {(x_prev,): prob for x_prev, prob in zip(every, probs, strict=True)}
    return chi_square_p(samples, law)


@pytest.mark.parametrize("choice", WEIGHTS)
@pytest.mark.parametrize("case", SAMPLED, ids=str)
def test_samples_follow_the_enumerated_law(case: tuple[str, int, Tokens], choice: str) -> None:
    assert law_and_samples(case, choice, seed=1) > 0.001


@pytest.mark.parametrize("head", [0, 1])
@pytest.mark.parametrize("case", SAMPLED, ids=str)
def test_the_same_test_sees_a_logit_that_is_off(case: tuple[str, int, Tokens], head: int) -> None:
    assert law_and_samples(case, "normalised", seed=1, nudge=0.2, head=head) < 0.001


def test_samples_have_no_value_of_probability_zero() -> None:
    """At t = 1 nothing was inserted or deleted; at rate 0 never."""
    for name, t in [("uniform", 1), ("in place", 1), ("in place", 2), ("in place", 3)]:
        schedule = SCHEDULES[name]
        token = schedule.del_ if t == 3 else 0
        seen = Batch.from_lists([[token] * 3] * 2000)
        output = random_output(seen, 2, 3, scale=3.0)
        reverse = ReverseStep.of(schedule, output, seen, torch.full((2000,), t))
        drawn = reverse.sample(generator=torch.Generator().manual_seed(0))
        assert bool((drawn.lengths == 3).all())
        assert set(drawn.tokens.flatten().tolist()) == {0, 1}
