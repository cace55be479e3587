"""The terms of the loss add up to the bound of Eq. (2)."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch

import oracles
from indel import Batch
from indel.bound.objective import Objective, length_term
from indel.bound.times import TimeDistribution
from indel.model import LengthTable
from indel.model.reverse import EditWeights, ReverseStep
from indel.process import (
    Schedule,
)
from oracles import Tokens
from support.cases import steps_of
from support.loss_cases import (
    CPU,
    LONGEST,
    RARE,
    WEIGHTS,
    Network,
    closed_form,
    log_reverse,
    sequences,
    some_lengths,
    times_of,
    with_edits,
)


@dataclass(frozen=True)
class Expected:
    """E[L_{t−1}] by enumeration, and how much of the mass was not listed."""

    term: float
    lost: float


def expected_term(
    name: str, network: Network, x_0: Tokens, t: int, *, choice: str = "normalised"
) -> Expected:
    """Σ q(x_t, a|x_0) times the closed form, over every x_t that is not too long."""
    schedule = RARE[name]
    first = schedule.del_ if t == schedule.num_steps else 0
    every = sequences(schedule.vocab_size, LONGEST[name], first=first)
    x_ts, sources, probs = with_edits(schedule, x_0, every, t)
    total = closed_form(schedule, network, x_0, x_ts, sources, t, choice).total.numpy()
    return Expected(float(np.array(probs) @ total), 1 - math.fsum(probs))


def expected_pair(
    name: str, network: Network, x_0: Tokens, t: int, *, choice: str = "normalised"
) -> Expected:
    """Σ q(x_{t−1}|x_0) q(x_t|x_{t−1}) (−log p_θ(x_{t−1}|x_t) + log q(x_t|x_{t−1})), all pairs."""
    x_prevs, x_ts, probs, after = pairs(name, x_0, t)
    logp = log_reverse(RARE[name], network, x_prevs, x_ts, t, choice)
    return Expected(float(np.array(probs) @ (np.log(after) - logp)), 1 - math.fsum(probs))


@cache
def pairs(
    name: str, x_0: Tokens, t: int
) -> tuple[list[Tokens], list[Tokens], list[float], list[float]]:
    """All x_{t−1} and x_t, q(x_{t−1}, x_t|x_0) and q(x_t|x_{t−1})."""
    schedule = RARE[name]
    size, longest, steps = schedule.vocab_size, LONGEST[name], steps_of(schedule)
    first = schedule.del_ if t == schedule.num_steps else 0
    by_kept: dict[int, list[Tokens]] = {}
    for x_t in sequences(size, longest, first=first):
        by_kept.setdefault(len(x_t) - x_t.count(size), []).append(x_t)
    found: list[tuple[Tokens, Tokens]] = []
    probs: list[float] = []
    after: list[float] = []
    for x_prev in sequences(size, longest):
        before = oracles.jump_prob(steps[: t - 1], x_0, x_prev)
        # What is left out is counted as lost.
        if before < 1e-14:
            continue
        for x_t in by_kept.get(len(x_prev) - x_prev.count(size + 1), []):
            prob = oracles.step_prob(steps[t - 1], x_prev, x_t)
            if before * prob > 1e-15:
                found.append((x_prev, x_t))
                probs.append(before * prob)
                after.append(prob)
    x_prevs, x_ts = (list(column) for column in zip(*found, strict=True))
    return x_prevs, x_ts, probs, after


@pytest.mark.parametrize("choice", WEIGHTS)
@pytest.mark.parametrize("t", [1, 2, 3])
@pytest.mark.parametrize(("name", "x_0"), [("one token", (0, 0)), ("two tokens", (1,))])
def test_the_mean_loss_is_the_term_of_equation_2(
    name: str, x_0: Tokens, t: int, choice: str
) -> None:
    network = Network(RARE[name], seed=t)
    closed = expected_term(name, network, x_0, t, choice=choice)
    brute = expected_pair(name, network, x_0, t, choice=choice)
    assert abs(closed.lost) < 1e-10
    assert abs(brute.lost) < 1e-10
    assert closed.term == pytest.approx(brute.term, abs=1e-6)


def test_a_wrong_term_would_be_seen() -> None:
    """The same comparison with a network that is off by a little in one logit."""
    name, x_0, t = "two tokens", (1,), 2
    network = Network(RARE[name])
    brute = expected_pair(name, network, x_0, t)
    network.token[1, t, 1, 0] += 1e-3
    assert abs(expected_term(name, network, x_0, t).term - brute.term) > 1e-5


def lengths_of(schedule: Schedule, x_0: Tokens, longest: int) -> LengthTable:
    """The best table for a single x_0: the law of |x_T| itself."""
    table = LengthTable(longest).double()
    law = [
        oracles.jump_prob(steps_of(schedule), x_0, (schedule.del_,) * n) for n in range(longest + 2)
    ]
    with torch.no_grad():
        table.logits.copy_(torch.tensor(law, dtype=torch.float64).log())
    return table


def bound_of(
    name: str, network: Network, table: LengthTable, x_0: Tokens, choice: str = "normalised"
) -> float:
    """L_T + Σ_t L_{t−1}, enumerated."""
    schedule = RARE[name]
    terms = [
        expected_term(name, network, x_0, t, choice=choice)
        for t in range(1, schedule.num_steps + 1)
    ]
    assert max(abs(each.lost) for each in terms) < 1e-10
    at_end = length_term(schedule, table, torch.tensor([len(x_0)])).item()
    return at_end + math.fsum(each.term for each in terms)


def summed_over_chains(
    schedule: Schedule, network: Network, table: LengthTable, x_0: Tokens, choice: str
) -> tuple[float, float]:
    """p_θ(x_0) = Σ p(x_T) Π p_θ(x_{t−1}|x_t), chain by chain, and the mass that was dropped."""
    ins, del_ = schedule.ins, schedule.del_
    weights = WEIGHTS[choice](schedule.tables(CPU).jump)
    start = table.log_prob(torch.arange(table.max_length + 1)).exp().tolist()
    law = {(del_,) * length: prob for length, prob in enumerate(start)}
    lost = 1 - math.fsum(start)
    for t in range(schedule.num_steps, 0, -1):
        seen = Batch.from_lists(law).without(ins)
        times = times_of(len(law), t)
        reverse = ReverseStep.of(schedule, network(seen, times), seen, times, weights=weights)
        values = reverse.logp_previous.exp().tolist()
        counts = reverse.logp_observed().exp().tolist()
        earlier: dict[Tokens, float] = {}
        for row, prob in enumerate(law.values()):
            length = int(seen.lengths[row])
            lost += prob * (length + 1) * 1e-12  # the numbers of DELs that are not listed
            choices = [[((del_,) * n, p) for n, p in enumerate(counts[row][0])]]
            for position in range(length):
                choices.append([((y,), p) for y, p in enumerate(values[row][position])])
                choices.append([((del_,) * n, p) for n, p in enumerate(counts[row][position + 1])])
            partial = {(): prob}
            for options in choices:
                longer: dict[Tokens, float] = {}
                for done, weight in partial.items():
                    for more, p in options:
                        x_prev = done + more
                        if weight * p < 1e-15:
                            lost += weight * p
                        # Tokens that are no INS at t = 1 stay; so many cannot become x_0.
                        elif t > 2 or len(x_prev) - x_prev.count(ins) <= len(x_0):
                            longer[x_prev] = longer.get(x_prev, 0.0) + weight * p
                partial = longer
            for x_prev, weight in partial.items():
                earlier[x_prev] = earlier.get(x_prev, 0.0) + weight
        law = earlier
    return law.get(x_0, 0.0), lost


@pytest.mark.parametrize("choice", WEIGHTS)
@pytest.mark.parametrize(
    ("name", "x_0"), [("one token", ()), ("one token", (0,)), ("two tokens", (1,))]
)
def test_the_bound_is_one(name: str, x_0: Tokens, choice: str) -> None:
    schedule = RARE[name]
    for seed in range(2):
        network, table = Network(schedule, most=1, seed=seed), some_lengths(2, seed)
        prob, lost = summed_over_chains(schedule, network, table, x_0, choice)
        assert lost < 1e-10
        # Chains left out make −log p too large, so this is a little more than a bound must be.
        assert bound_of(name, network, table, x_0, choice) > -math.log(prob)


def test_the_bound_of_a_fitted_network_is_close_and_still_one() -> None:
    """After some training on a single x_0 nearly nothing is left between the two."""
    name, x_0 = "one token", (0,)
    schedule = RARE[name]
    network, table = Network(schedule, most=1), lengths_of(schedule, x_0, 2)
    with torch.no_grad():
        table.logits[-1] = -30.0  # what is longer than any chain that is listed
    parameters = [network.token.requires_grad_(), network.deletions.requires_grad_()]
    optimizer = torch.optim.Adam(parameters, lr=0.6)
    batches = []
    for t in range(1, schedule.num_steps + 1):
        first = schedule.del_ if t == schedule.num_steps else 0
        x_ts, sources, probs = with_edits(
            schedule, x_0, sequences(1, LONGEST[name], first=first), t
        )
        likely = np.argsort(probs)[-40:]
        weight = torch.tensor(np.array(probs)[likely])
        batches.append((t, [x_ts[i] for i in likely], [sources[i] for i in likely], weight))
    for _ in range(40):
        loss = sum(
            weight @ closed_form(schedule, network, x_0, x_ts, sources, t).total
            for t, x_ts, sources, weight in batches
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for parameter in parameters:
        parameter.requires_grad_(False)
    prob, lost = summed_over_chains(schedule, network, table, x_0, "normalised")
    bound = bound_of(name, network, table, x_0)
    assert lost < 1e-10
    print(f"bound {bound:.6f}, -log p {-math.log(prob):.6f} nats")
    assert 0 < bound + math.log(prob) < 0.1


@pytest.mark.parametrize("choice", WEIGHTS)
@pytest.mark.parametrize("name", RARE)
def test_the_bound_is_tight_where_the_posterior_is_a_product(name: str, choice: str) -> None:
    """For x_0 = () every token was inserted: a network that says so has p_θ = q(x_{t−1}|x_t, x_0).

    Then L = KL(q(x_T|x_0) ‖ p(x_T)), whatever the steps in between.
    """
    schedule = RARE[name]
    network = Network(schedule)
    network.token[:], network.deletions[:] = -20.0, -20.0
    network.token[..., -1], network.deletions[..., 0] = 20.0, 20.0
    terms = [
        expected_term(name, network, (), t, choice=choice) for t in range(1, schedule.num_steps + 1)
    ]
    lengths = [
        oracles.jump_prob(steps_of(schedule), (), (schedule.del_,) * n)
        for n in range(LONGEST[name] + 1)
    ]
    entropy = -math.fsum(prob * math.log(prob) for prob in lengths)
    assert math.fsum(each.term for each in terms) == pytest.approx(-entropy, abs=1e-7)
    table = lengths_of(schedule, (), 5)
    assert bound_of(name, network, table, (), choice) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("name", RARE)
def test_the_length_term_is_the_mean_over_the_lengths_of_x_t(name: str) -> None:
    schedule, table = RARE[name], some_lengths(6)
    rows = [(), (0,), (0, 0, 0), (0,)]
    actual = length_term(schedule, table, torch.tensor([len(row) for row in rows]))
    logp = table.log_prob(torch.arange(12)).tolist()
    for x_0, value in zip(rows, actual.tolist(), strict=True):
        law = [oracles.jump_prob(steps_of(schedule), x_0, (schedule.del_,) * n) for n in range(12)]
        assert value == pytest.approx(-math.fsum(map(math.prod, zip(law, logp, strict=True))))


def test_the_length_term_knows_impossible_lengths() -> None:
    """A table fitted without smoothing: what never happens costs nothing, the rest is infinite."""
    table = LengthTable(6)
    table.fit(torch.tensor([0, 3, 4]), smoothing=0.0)
    in_place = length_term(Schedule.paper(2, 4, 0.0), table, torch.tensor([1, 2, 3]))
    assert in_place[:2].tolist() == pytest.approx([math.log(7 / 3), math.log(7 / 4)])
    assert in_place[2] == math.inf
    assert length_term(Schedule.paper(2, 4, 0.5), table, torch.tensor([1])).item() == math.inf


@pytest.mark.parametrize(
    "options",
    [{}, {"edit_samples": 3}, {"marginalize": True}, {"weights": "joint"}],
    ids=["one summary", "three summaries", "all summaries", "joint"],
)
def test_the_loss_is_unbiased_for_any_law_of_times(options: dict) -> None:
    """The mean over many draws is the enumerated sum over t; with the wrong weights it is not."""
    name, x_0, rows = "one token", (0, 0), 6000
    schedule = RARE[name]
    network, table = Network(schedule), some_lengths()
    choice = options.get("weights", "normalised")
    if "weights" in options:
        options = {"weights": EditWeights.joint(schedule.tables(CPU).jump)}
    times = TimeDistribution(torch.tensor([0.6, 0.15, 0.25], dtype=torch.float64))
    batch = Batch.from_lists([x_0] * rows)
    generator = torch.Generator().manual_seed(3)
    t, weight = times.draw(rows, generator=generator)
    with torch.no_grad():
        loss = Objective(schedule, **options)(
            network, table, batch, generator=generator, t=t, weight=weight
        )
    expected = bound_of(name, network, table, x_0, choice)
    error = float(loss.total.std() / rows**0.5)
    assert float(loss.total.mean()) == pytest.approx(expected, abs=4 * error)
    wrong = 3 * loss.terms.total + loss.length
    assert abs(float(wrong.mean()) - expected) > 8 * error
