"""The closed-form loss is the expectation of Eq. (2), and its sum is a bound."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

import oracles
from indel import Batch, IntegerVocabulary
from indel.bound.noised import Noised
from indel.bound.objective import Objective, StepTerms, length_term, step_terms
from indel.bound.times import TimeDistribution
from indel.model import Denoiser, LengthTable
from indel.model.denoiser import DenoiserOutput
from indel.model.reverse import EditWeights, ReverseStep
from indel.process import (
    AbsorbingTransition,
    Edits,
    GaussianTransition,
    IdentityTransition,
    Schedule,
    Step,
    Transition,
    UniformTransition,
)
from indel.randomness import RowSeeds
from oracles import Tokens
from support.cases import every_previous, steps_of
from support.denoisers import tiny_denoiser

CPU = torch.device("cpu")
WEIGHTS = {"normalised": EditWeights.normalised, "joint": EditWeights.joint}


def then_delete_all(steps: list[Step]) -> Schedule:
    return Schedule([*steps, Step(0.0, 1.0, IdentityTransition(steps[0].vocab_size))])


def alike(transition: Transition, *, insert: float, delete: float, count: int = 2) -> Schedule:
    return then_delete_all([Step(insert, delete, transition)] * count)


SCHEDULES = {
    "uniform": alike(UniformTransition(2, 0.7), insert=0.08, delete=0.2),
    "absorbing": alike(AbsorbingTransition(2, 0.6, 1), insert=0.05, delete=0.3),
    "dense": alike(GaussianTransition(2, 0.8), insert=0.08, delete=0.2),
    "one token": alike(UniformTransition(1, 0.7), insert=0.1, delete=0.2, count=3),
    "deletions alone": alike(UniformTransition(2, 0.7), insert=0.0, delete=0.4),
    "insertions alone": alike(UniformTransition(2, 0.7), insert=0.1, delete=0.0),
    "spared": then_delete_all(
        [
            Step(0.1, 0.2, UniformTransition(2, 0.8), torch.tensor([0.3, 0.7]), 0.0),
            Step(0.05, 0.4, UniformTransition(2, 0.5), torch.tensor([1.0, 0.0]), 0.0),
        ]
    ),
    "all deleted at once": then_delete_all(
        [
            Step(0.1, 1.0, UniformTransition(2, 0.9)),
            Step(0.05, 0.2, UniformTransition(2, 0.9)),
        ]
    ),
}
# Few enough insertions that all sequences up to a short length hold all of the mass but 1e−10.
RARE = {
    "one token": alike(UniformTransition(1, 0.5), insert=0.002, delete=0.25),
    "two tokens": then_delete_all(
        [
            Step(0.002, 0.3, UniformTransition(2, 0.6)),
            Step(0.002, 0.2, AbsorbingTransition(2, 0.7, 0)),
        ]
    ),
}
LONGEST = {"one token": 6, "two tokens": 5}


def sequences(size: int, longest: int, *, first: int = 0) -> list[Tokens]:
    """Everything over the regular tokens from `first` on, INS and DEL."""
    return [
        tokens
        for length in range(longest + 1)
        for tokens in itertools.product(range(first, size + 2), repeat=length)
    ]


class Network:
    """Fixed random logits that depend on t, on a token and on both of its neighbours."""

    def __init__(self, schedule: Schedule, *, most: int = 6, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        times, tokens = schedule.num_steps + 1, schedule.vocab_size + 3

        def table(values: int) -> Tensor:
            shape = (3, times, tokens, values)
            return torch.randn(shape, generator=generator, dtype=torch.float64)

        self.token, self.deletions = table(schedule.vocab_size + 1), table(most + 1)
        self.eos, self.seed = schedule.vocab_size + 2, seed

    def __call__(self, seen: Batch, t: Tensor) -> DenoiserOutput:
        pad = torch.nn.functional.pad
        closed = pad(seen.tokens, (1, 2), value=-1)
        closed = torch.where(closed < 0, self.eos, closed)
        left, own, right = closed[:, :-2], closed[:, 1:-1], closed[:, 2:]
        at = t[:, None]
        logits = [
            each[0, at, left] + each[1, at, own] + each[2, at, right]
            for each in (self.token, self.deletions)
        ]
        return DenoiserOutput(logits[0][:, :-1], logits[1])


def times_of(rows: int, t: int) -> Tensor:
    return torch.full((rows,), t)


def with_edits(
    schedule: Schedule, x_0: Tokens, every: list[Tokens], t: int
) -> tuple[list[Tokens], list[Tokens], list[float]]:
    """All (x_t, a) of positive probability: x_t, source, q(x_t, a | x_0)."""
    found = [
        (x_t, source, prob)
        for x_t in every
        for source, prob in oracles.edit_probs(steps_of(schedule)[:t], x_0, x_t).items()
    ]
    x_ts, sources, probs = zip(*found, strict=True)
    return list(x_ts), list(sources), list(probs)


def closed_form(
    schedule: Schedule,
    network: Network,
    x_0: Tokens,
    x_ts: list[Tokens],
    sources: list[Tokens],
    t: int,
    choice: str = "normalised",
) -> StepTerms:
    first, last = Batch.from_lists([x_0] * len(x_ts)), Batch.from_lists(x_ts)
    padded = [[*source, *[-1] * (last.width - len(source))] for source in sources]
    source = torch.tensor(padded, dtype=torch.int64).reshape(last.tokens.shape)
    edits = Edits.from_source(first, last, source)
    noised = Noised.of(schedule, first, last, edits, times_of(len(x_ts), t))
    weights = WEIGHTS[choice](schedule.tables(CPU).jump)
    return step_terms(schedule, network(noised.seen, noised.t), noised, weights)


def marginal_form(
    schedule: Schedule,
    network: Network,
    x_0: Tokens,
    x_ts: list[Tokens],
    t: int,
    choice: str = "normalised",
) -> StepTerms:
    first, last = Batch.from_lists([x_0] * len(x_ts)), Batch.from_lists(x_ts)
    noised = Noised.of(schedule, first, last, None, times_of(len(x_ts), t))
    weights = WEIGHTS[choice](schedule.tables(CPU).jump)
    return step_terms(schedule, network(noised.seen, noised.t), noised, weights)


def log_reverse(
    schedule: Schedule,
    network: Network,
    x_prevs: list[Tokens],
    x_ts: list[Tokens],
    t: int,
    choice: str = "normalised",
) -> np.ndarray:
    """log p_θ(x_{t−1} | x_t) of pairs."""
    seen, times = Batch.from_lists(x_ts).without(schedule.ins), times_of(len(x_ts), t)
    weights = WEIGHTS[choice](schedule.tables(CPU).jump)
    reverse = ReverseStep.of(schedule, network(seen, times), seen, times, weights=weights)
    return reverse.log_prob(Batch.from_lists(x_prevs)).numpy()


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


def over_all_times(test):
    times = [(name, t) for name in SCHEDULES for t in range(1, SCHEDULES[name].num_steps + 1)]
    return pytest.mark.parametrize(("name", "t"), times)(test)


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


# --- their sum ----------------------------------------------------------------------------------


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
    logp = log_reverse(schedule, network, x_prevs, x_ts, t, choice)
    return Expected(float(np.array(probs) @ (np.log(after) - logp)), 1 - math.fsum(probs))


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


def some_lengths(max_length: int = 3, seed: int = 0) -> LengthTable:
    """A table in which next to nothing is longer than its last entry."""
    table = LengthTable(max_length).double()
    with torch.no_grad():
        table.logits.normal_(generator=torch.Generator().manual_seed(seed))
        table.logits[-1] = -30.0
    return table


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


# --- drawn at random ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"edit_samples": 3}, {"marginalise": True}, {"weights": "joint"}],
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


# --- through a network --------------------------------------------------------------------------

THREE = {
    "uniform": Schedule.paper(3, 4, 0.7),
    "rate one": Schedule.paper(3, 4, 1.0),
    "in place": Schedule.paper(3, 4, 0.0),
    "absorbing": Schedule.paper(
        3, 4, 0.6, transition=lambda size, keep: AbsorbingTransition(size, keep, 2)
    ),
    "dense": Schedule.paper(
        3, 4, 0.6, transition=lambda size, keep: GaussianTransition(size, 1.0, band=1)
    ),
}
ROWS = [[0, 1, 2, 0, 1, 1], [], [2], [], [1, 0]]


def denoiser_of(schedule: Schedule) -> Denoiser:
    return tiny_denoiser(schedule, max_length=12, max_deletions=None, num_layers=2)


@pytest.mark.parametrize("rows", [ROWS, [[], []]], ids=["some empty", "all empty"])
@pytest.mark.parametrize("choice", WEIGHTS)
@pytest.mark.parametrize("name", THREE)
def test_gradients_are_finite_at_every_time(name: str, choice: str, rows: list) -> None:
    schedule = THREE[name]
    denoiser = denoiser_of(schedule)
    x_0 = Batch.from_lists(rows)
    weights = WEIGHTS[choice](schedule.tables(CPU).jump)
    for t in range(1, schedule.num_steps + 1):
        noised = Noised.draw(
            schedule, x_0, times_of(len(rows), t), generator=torch.Generator().manual_seed(t)
        )
        for known in (noised, noised.with_edits(None)):
            denoiser.zero_grad()
            terms = step_terms(schedule, denoiser(noised.seen, noised.t), known, weights)
            at_end = length_term(schedule, denoiser.length, x_0.lengths)
            loss = terms.total + at_end
            assert loss.dtype == torch.float32
            assert bool(loss.isfinite().all())
            loss.sum().backward()
            for parameter, value in denoiser.named_parameters():
                if value.grad is not None:
                    assert bool(value.grad.isfinite().all()), (t, parameter)
            assert bool((denoiser.length.logits.grad != 0).any())
            if noised.seen.width:
                moved = denoiser.embedding.weight.grad.abs().sum()
                assert float(moved) > 0 or (name in ("in place", "rate one"))


def test_there_is_zero_probability_inside() -> None:
    """What the gradients above pass by: at t = 1 and where masks are certain."""
    schedule = THREE["absorbing"]
    seen = Batch.from_lists([[0, 2, 1]])
    for t in (1, 2):
        output = Network(schedule)(seen, times_of(1, t))
        reverse = ReverseStep.of(schedule, output, seen, times_of(1, t))
        assert bool((reverse.logp_previous == -math.inf).any())
    assert bool((reverse.logp_previous[0, 0] == -math.inf).any())


@pytest.mark.parametrize("marginalise", [False, True])
@pytest.mark.parametrize("name", THREE)
def test_batches_of_nothing(name: str, marginalise: bool) -> None:
    schedule = THREE[name]
    denoiser = denoiser_of(schedule)
    objective = Objective(schedule, marginalise=marginalise)
    for rows in ([], [[]], [[], [], [], [], [], [], [], []]):
        batch = Batch.from_lists(rows)
        generator = torch.Generator().manual_seed(0)
        loss = objective(denoiser, denoiser.length, batch, generator=generator)
        assert loss.total.shape == (len(rows),)
        assert bool(loss.total.isfinite().all())
        loss.total.sum().backward()
    for value in denoiser.parameters():
        assert value.grad is None or bool(value.grad.isfinite().all())


@pytest.mark.parametrize("name", ["uniform", "dense"])
def test_half_precision_ends_at_the_logits(name: str) -> None:
    """Under autocast a network gives bfloat16; the loss of the same numbers is not coarser."""
    schedule = THREE[name]
    x_0 = Batch.from_lists([[0, 1, 2, 0, 1, 1] * 4] * 8)
    for t in range(1, schedule.num_steps + 1):
        noised = Noised.draw(
            schedule, x_0, times_of(len(x_0), t), generator=torch.Generator().manual_seed(t)
        )
        logits = Network(schedule, most=24)(noised.seen, noised.t)
        half = DenoiserOutput(*(each.bfloat16() for each in logits))
        exact = DenoiserOutput(*(each.double() for each in half))
        for known in (noised, noised.with_edits(None)):
            ours, expected = (step_terms(schedule, output, known) for output in (half, exact))
            assert ours.total.dtype == torch.float32
            torch.testing.assert_close(ours.total.double(), expected.total, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("padding", [0, 5, 70])
def test_a_sequence_gets_the_same_noise_and_logits_in_any_company(padding: int) -> None:
    """One seed per row: alone, among 64, and however wide the padding."""
    schedule = THREE["uniform"]
    denoiser = denoiser_of(schedule)
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(0, 9, (64,), generator=generator).tolist()
    rows = [torch.randint(0, 3, (n,), generator=generator).tolist() for n in lengths]
    seeds = torch.randint(2**40, (64,), generator=generator)
    times = torch.randint(1, 5, (64,), generator=generator)

    def run(x_0: Batch, seeds: Tensor, times: Tensor) -> tuple[Noised, DenoiserOutput, Tensor]:
        noised = Noised.draw(schedule, x_0, times, generator=RowSeeds(seeds), max_length=11)
        with torch.no_grad():
            terms = step_terms(schedule, denoiser(noised.seen, times), noised)
            output = denoiser(noised.seen.widened(x_0.width), times)
        return noised, output, terms.total

    noised, output, total = run(Batch.from_lists(rows).widened(padding), seeds, times)
    assert len(set(noised.x_t.lengths.tolist())) > 5
    for row in range(64):
        one = slice(row, row + 1)
        alone, own_output, own_total = run(Batch.from_lists(rows[one]), seeds[one], times[one])
        assert alone.x_t.to_lists() == [noised.x_t.to_lists()[row]]
        length, kept = int(noised.x_t.lengths[row]), int(noised.seen.lengths[row])
        own_source = alone.edits.source[0, :length].tolist()
        assert own_source == noised.edits.source[row, :length].tolist()
        for ours, theirs, end in zip(own_output, output, (kept, kept + 1), strict=True):
            torch.testing.assert_close(ours[0, :end], theirs[row, :end], rtol=0, atol=1e-5)
        torch.testing.assert_close(own_total[0], total[row], rtol=1e-5, atol=1e-4)


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
