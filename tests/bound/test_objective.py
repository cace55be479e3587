"""A term of the loss is the expectation of Eq. (3), and the objective draws it."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import oracles
from indel import Batch
from indel.bound.noised import Noised
from indel.bound.objective import Objective, length_term, step_terms
from indel.model import LengthTable
from indel.model.denoiser import DenoiserOutput
from indel.process import (
    IdentityTransition,
    Schedule,
    Step,
    UniformTransition,
)
from oracles import Tokens
from support.cases import every_previous, steps_of
from support.loss_cases import (
    LONGEST,
    RARE,
    SCHEDULES,
    WEIGHTS,
    Network,
    closed_form,
    log_reverse,
    marginal_form,
    over_all_times,
    sequences,
    some_lengths,
    times_of,
    with_edits,
)

# --- one term -----------------------------------------------------------------------------------


def by_brute_force(
    schedule: Schedule, network: Network, x_0: Tokens, x_t: Tokens, t: int, choice: str
) -> float:
    """E[−log p_θ(x_{t−1}|x_t) + log q(x_t|x_{t−1}) | x_t, x_0], over x_{t−1} one by one.

    Only the number of its DELs has no limit; more are tried until less than 1e−10 is missing
    from q(x_t|x_0).
    """
    steps, size = steps_of(schedule), schedule.vocab_size
    total = oracles.jump_prob(steps[:t], x_0, x_t)
    length = len(x_t) - x_t.count(schedule.ins)
    found: list[Tokens] = []
    weight: list[float] = []
    for dels in range(30):
        for x_prev in every_previous(length, size, dels=dels):
            after = oracles.step_prob(steps[t - 1], x_prev, x_t)
            prob = after and after * oracles.jump_prob(steps[: t - 1], x_0, x_prev)
            if prob > 0:
                found.append(x_prev)
                weight.append(prob)
        if total - math.fsum(weight) < 1e-10 * total:
            break
    else:
        raise AssertionError("too many DELs matter")
    logp = log_reverse(schedule, network, found, [x_t] * len(found), t, choice)
    logq = np.log([oracles.step_prob(steps[t - 1], x_prev, x_t) for x_prev in found])
    return float(np.array(weight) @ (logq - logp)) / math.fsum(weight)


def cases_of(name: str, t: int) -> list[tuple[Tokens, Tokens]]:
    """Pairs (x_0, x_t) with INS, with DEL, with nothing on either side."""
    schedule = SCHEDULES[name]
    last, ins, del_ = schedule.vocab_size - 1, schedule.ins, schedule.del_
    if t == schedule.num_steps:
        pairs = [((), (del_,)), ((last,), ()), ((0, last), (del_,)), ((last,), (del_, del_))]
    else:
        pairs = [
            ((), ()),
            ((), (ins, 0)),
            ((last,), (ins,)),
            ((0, last), (last,)),
            ((last, 0), (0, ins, del_)),
        ]
    steps = steps_of(schedule)[:t]
    return [pair for pair in pairs if oracles.jump_prob(steps, *pair) > 0]


@over_all_times
def test_a_term_is_the_expectation_over_all_x_prev(name: str, t: int) -> None:
    """For each x_t: with the edits drawn (the mean over their law) and with them summed over."""
    schedule = SCHEDULES[name]
    network = Network(schedule, seed=t)
    for number, (x_0, x_t) in enumerate(cases_of(name, t)):
        choice = list(WEIGHTS)[number % 2]
        expected = by_brute_force(schedule, network, x_0, x_t, t, choice)
        x_ts, sources, probs = with_edits(schedule, x_0, [x_t], t)
        each = closed_form(schedule, network, x_0, x_ts, sources, t, choice).total.numpy()
        assert np.average(each, weights=probs) == pytest.approx(expected, abs=1e-6)
        (summed,) = marginal_form(schedule, network, x_0, [x_t], t, choice).total.tolist()
        assert summed == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("choice", WEIGHTS)
@over_all_times
def test_edits_summed_over_are_the_mean_over_their_law(name: str, t: int, choice: str) -> None:
    """Part by part and for every x_t of up to three tokens."""
    schedule = SCHEDULES[name]
    network, size = Network(schedule), schedule.vocab_size
    first = size if t == schedule.num_steps else 0
    for x_0 in [(), (0, size - 1, 0)]:
        x_ts, sources, probs = with_edits(schedule, x_0, sequences(size, 3, first=first), t)
        each = closed_form(schedule, network, x_0, x_ts, sources, t, choice)
        distinct = list(dict.fromkeys(x_ts))
        where = np.array([distinct.index(x_t) for x_t in x_ts])
        summed = marginal_form(schedule, network, x_0, distinct, t, choice)
        total = np.bincount(where, weights=probs)
        for part, expected in zip(each, summed, strict=True):
            mean = np.bincount(where, weights=probs * part.numpy()) / total
            np.testing.assert_allclose(mean, expected, rtol=1e-9, atol=1e-9)


def test_the_report_adds_up() -> None:
    schedule = SCHEDULES["uniform"]
    x_0 = Batch.from_lists([[0, 1], [], [1], [1, 1, 0]])
    loss = Objective(schedule)(
        Network(schedule), some_lengths(), x_0, generator=torch.Generator().manual_seed(0)
    )
    assert loss.weight.tolist() == pytest.approx([schedule.num_steps] * 4)
    torch.testing.assert_close(loss.total, loss.weight * loss.terms.total + loss.length)
    assert bool((loss.terms.tokens >= 0).all())
    assert bool((loss.terms.deletions >= 0).all())
    assert bool((loss.terms.forward <= 0).all())
    torch.testing.assert_close(loss.length, length_term(schedule, some_lengths(), x_0.lengths))


def test_over_long_sequences_are_drawn_again() -> None:
    schedule = Schedule.paper(2, 6, 0.9)
    x_0 = Batch.from_lists([[0, 1, 1]] * 200)
    seen: list[Batch] = []

    def denoise(x_t: Batch, t: Tensor) -> DenoiserOutput:
        seen.append(x_t)
        return Network(schedule)(x_t, t)

    for limit, longest in [(4, 4), (None, 5)]:
        objective = Objective(schedule, max_length=limit)
        objective(denoise, some_lengths(), x_0, generator=torch.Generator().manual_seed(0))
        assert (seen[-1].width <= longest) == (limit is not None)


class Informed(Network):
    """A network that has a fair idea: z comes from z, few deletions."""

    def __call__(self, seen: Batch, t: Tensor) -> DenoiserOutput:
        output = super().__call__(seen, t)
        logits = output.logits_token * 0.3
        one_hot = torch.nn.functional.one_hot(seen.tokens.clamp_min(0), self.eos)
        counts = torch.arange(output.logits_deletions.shape[-1])
        return DenoiserOutput(
            logits + 2.0 * one_hot[..., : logits.shape[-1]],
            output.logits_deletions * 0.3 - 1.5 * counts,
        )


@pytest.mark.parametrize("kind", [Network, Informed], ids=["random", "informed"])
def test_summing_over_the_edits_keeps_the_mean_and_lowers_the_variance(kind: type) -> None:
    """On one batch of x_t for each t: sampled − summed has mean zero, and costs variance."""
    schedule, rows, draws = Schedule.paper(4, 6, 0.7), 400, 4
    network = kind(schedule, most=10)
    generator = torch.Generator().manual_seed(1)
    x_0 = Batch.from_lists([[0, 1, 1, 2, 3, 0, 2, 2]] * rows)
    totals = torch.zeros(3, dtype=torch.float64)
    for t in range(1, 7):
        noised = Noised.draw(schedule, x_0, times_of(rows, t), generator=generator)
        output = network(noised.seen, noised.t)
        known = [noised] + [
            noised.with_other_edits(schedule, generator=generator) for _ in range(draws - 1)
        ]
        each = torch.stack([step_terms(schedule, output, one).total for one in known])
        summed = step_terms(schedule, output, noised.with_edits(None)).total
        difference = each.mean(dim=0) - summed
        error = float(difference.std() / rows**0.5)
        assert float(difference.mean()) == pytest.approx(0.0, abs=4 * error + 1e-12)
        variances = torch.stack([each[0].var(), each.mean(dim=0).var(), summed.var()])
        one, four, all_ = variances.tolist()
        print(f"t={t}: variance {one:.3f} of one summary, {four:.3f} of four, {all_:.3f} of all")
        if 1 < t < 6:  # at T the random lengths drown all else, at 1 there is one summary only
            totals += variances
    one, four, all_ = totals.tolist()
    print(f"2 to 5: {one:.2f} of one, {four:.2f} of four, {all_:.2f} of all ({all_ / one:.1%})")
    assert all_ < one
    assert four < one


@pytest.mark.parametrize("t", [2, 3])
def test_the_variance_falls_exactly(t: int) -> None:
    """Var over (x_t, a), enumerated: that of the sum over edits, plus the mean of that over a."""
    name, x_0 = "one token", (0, 0)
    schedule = RARE[name]
    network = Network(schedule)
    first = schedule.del_ if t == schedule.num_steps else 0
    x_ts, sources, probs = with_edits(schedule, x_0, sequences(1, LONGEST[name], first=first), t)
    each = closed_form(schedule, network, x_0, x_ts, sources, t).total.numpy()
    summed = marginal_form(schedule, network, x_0, x_ts, t).total.numpy()
    mean = np.average(each, weights=probs)
    assert np.average(summed, weights=probs) == pytest.approx(mean, abs=1e-9)
    sampled, exact = (np.average((term - mean) ** 2, weights=probs) for term in (each, summed))
    within = np.average((each - summed) ** 2, weights=probs)
    print(f"t={t}: variance {sampled:.4f} of one summary, {exact:.4f} of all")
    assert sampled == pytest.approx(exact + within, abs=1e-9)
    assert within > 1e-3


# --- what cannot be -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "last",
    [
        Step(0.0, 0.9, IdentityTransition(2)),
        Step(0.1, 1.0, IdentityTransition(2)),
        Step(0.0, 1.0, IdentityTransition(2), delete_inserted=0.5),
    ],
)
def test_the_last_step_must_delete_all(last: Step) -> None:
    schedule = Schedule([Step(0.1, 0.2, UniformTransition(2, 0.5)), last])
    with pytest.raises(ValueError, match="last step must delete everything and insert nothing"):
        Objective(schedule)
    with pytest.raises(ValueError, match="last step must delete everything and insert nothing"):
        length_term(schedule, LengthTable(3), torch.tensor([1]))


def test_at_least_one_summary() -> None:
    with pytest.raises(ValueError, match="edit_samples must be at least 1, got 0"):
        Objective(SCHEDULES["uniform"], edit_samples=0)


def test_times_come_with_their_weights() -> None:
    schedule = SCHEDULES["uniform"]
    with pytest.raises(ValueError, match="t and weight must be given together"):
        Objective(schedule)(
            Network(schedule),
            some_lengths(),
            Batch.from_lists([[0]]),
            generator=torch.Generator(),
            t=torch.tensor([1]),
        )


@pytest.mark.parametrize("name", ["deletions alone", "dense"])
def test_more_deletions_than_the_network_knows(name: str) -> None:
    schedule = SCHEDULES[name]
    network = Network(schedule, most=1)
    with pytest.raises(ValueError, match="max_deletions must be at least 2"):
        closed_form(schedule, network, (0, 1, 1), [(1,)], [(2,)], 2)


def test_more_deletions_than_the_network_knows_with_edits_summed_over() -> None:
    """Where no insert explains the DELs instead, the loss would be infinite."""
    schedule = SCHEDULES["deletions alone"]
    network = Network(schedule, most=0)
    with pytest.raises(ValueError, match="max_deletions must be at least"):
        marginal_form(schedule, network, (0, 1), [(1,)], 2)


@pytest.mark.parametrize("name", ["uniform", "dense"])
@pytest.mark.parametrize(
    ("x_0", "x_t", "source", "t"),
    [
        ((0,), (0, 1), (0, -1), 1),  # an insert is still INS at t = 1
        ((0, 1), (0,), (0,), 1),  # a deletion is still DEL
        ((0,), (0,), (0,), 3),  # at T there is DEL alone
        ((0,), (3, 2), (0, -1), 3),  # and nothing is inserted
    ],
)
def test_an_x_t_that_q_cannot_make(
    name: str, x_0: Tokens, x_t: Tokens, source: Tokens, t: int
) -> None:
    schedule = SCHEDULES[name]
    network = Network(schedule)
    with pytest.raises(ValueError, match=f"row 0: q cannot make these edits at t = {t}"):
        closed_form(schedule, network, x_0, [x_t], [source], t)
    with pytest.raises(ValueError, match="row 0: q cannot produce this x_t"):
        marginal_form(schedule, network, x_0, [x_t], t)
