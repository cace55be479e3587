"""Counts and the exact q combined are Bayes' rule over every x_0, enumerated."""

from __future__ import annotations

import itertools
from collections import defaultdict
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import torch

import oracles
from indel import Batch
from indel.model import pruned_passes
from indel.model.automata import Automaton
from indel.model.count_prior import CountPrior
from indel.model.denoiser import DenoiserOutput
from indel.model.edit_posterior import edit_posterior
from indel.model.edit_weights import EditWeights
from indel.model.reverse import ReverseStep
from indel.process import Schedule
from oracles import Tokens
from support.cases import steps_of

CPU = torch.device("cpu")
SIZE = 2
LONGEST = 7
"""Longer x_0 have a probability of 0.35⁷ and less."""
# States: the start, read 0, read 1, read 1 after 1. The rest of a state goes to states 1 and 2.
LAST = [2, 0, 1, 1]
SHORTER = [0, 1, 2, 2]
END = [0.1, 0.7, 0.65, 0.75]
FREQUENT = {(0, 1): 0.5, (0, 2): 0.3, (1, 1): 0.05, (1, 2): 0.2, (2, 3): 0.3, (3, 1): 0.2}
COMMON = [0.75, 0.25]
FAR = 12
"""More deletions in one slot than any x_0 here has tokens."""

SCHEDULES = {
    "insert and delete": Schedule.paper(SIZE, 4, 0.6),
    "in place": Schedule.paper(SIZE, 4, 0.0),
    "often": Schedule.paper(SIZE, 3, 0.9),
}
SEEN = {
    "insert and delete": [(0, 1), (1, 1, 0), (3, 1), (), (1,)],
    "in place": [(0, 1), (1, 1, 0), (1,)],
    "often": [(0, 1, 1), (3, 0), ()],
}


@pytest.fixture(params=[False, True], ids=["all contexts", "pruned"], autouse=True)
def passes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to compute the passes; with nothing left out the second one is exact too."""
    if request.param and not pruned_passes.available(CPU):
        pytest.skip("there is no C compiler here")
    monkeypatch.setattr(pruned_passes, "worth_it", lambda model: request.param)
    monkeypatch.setattr(pruned_passes, "LEAST", 0.0)


def possible(schedule: Schedule, t: int, x_t: Tokens) -> bool:
    return oracles.jump_prob(steps_of(schedule)[:t], (0,) * len(x_t), x_t) > 0


CASES = [
    (name, t, x_t)
    for name, schedule in SCHEDULES.items()
    for t in range(1, schedule.num_steps + 1)
    for x_t in SEEN[name]
    if possible(schedule, t, x_t)
]
WITH_TOKENS = [case for case in CASES if case[2]]


def transitions(perturbed: float = 0.0) -> dict[tuple[int, int], float]:
    """Every transition with what goes to the states of one token."""
    found = defaultdict(float, FREQUENT)
    found[1, 2] += perturbed
    for state in range(4):
        rest = 1.0 - END[state] - sum(p for (s, _), p in found.items() if s == state)
        for token, share in enumerate(COMMON):
            found[state, token + 1] += rest * share
    return dict(found)


def automaton(perturbed: float = 0.0) -> Automaton:
    frequent = dict(FREQUENT)
    frequent[1, 2] += perturbed
    source, target = torch.tensor(list(frequent)).T
    prob = torch.tensor(list(frequent.values()))
    return Automaton.of(
        source,
        target,
        prob,
        torch.tensor(END),
        torch.tensor(LAST),
        torch.tensor(COMMON),
        shorter=torch.tensor(SHORTER),
    )


@cache
def data() -> dict[Tokens, float]:
    """p(x_0) of all short sequences, by walking along them."""
    table, found = transitions(), {}
    for length in range(LONGEST + 1):
        for x_0 in itertools.product(range(SIZE), repeat=length):
            here = {0: 1.0}
            for token in x_0:
                after: dict[int, float] = defaultdict(float)
                for (s, target), p in table.items():
                    if s in here and LAST[target] == token:
                        after[target] += here[s] * p
                here = dict(after)
            found[x_0] = sum(p * END[s] for s, p in here.items())
    assert sum(found.values()) > 0.9995
    return found


@cache
def exact_previous(name: str, t: int, x_t: Tokens) -> np.ndarray:
    """P(x_{t−1} has y at each token of x_t), over all x_0 and chains."""
    steps = steps_of(SCHEDULES[name])[:t]
    total: np.ndarray | float = 0.0
    for x_0, p in data().items():
        if oracles.jump_prob(steps, x_0, x_t) > 0:
            law = oracles.posterior_marginal(steps, x_0, x_t)
            total = total + p * law.prob * law.prob_previous
    assert isinstance(total, np.ndarray)
    return total / total.sum(axis=1, keepdims=True)


class Alignments(NamedTuple):
    """Sums over alignments: of weights, and of weights times what is counted."""

    total: float
    numbers: np.ndarray
    """[slot, n]: n deletions in the slot."""
    values: np.ndarray
    """[token, v]: it is kept from v, or inserted (last)."""


def exact_edits(schedule: Schedule, t: int, x_t: Tokens) -> Alignments:
    """All x_0 and alignments, a pair being a deletion and an insertion; by plain recursion."""
    jump = schedule.jump(t)
    kept, del_ = jump.keep * jump.kept.matrix(), SIZE + 1
    # A DEL that was a token of x_0 until this step.
    now = schedule.jump(t - 1).keep - jump.keep
    inserts = [*jump.inserts.dense().tolist(), None, jump.insert_del]
    pairs = [*jump.background.dense().tolist(), None, jump.replace_del - now]

    @cache
    def ways(x_0: Tokens, z: Tokens, run: int, may_insert: bool) -> Alignments:
        total = 0.0
        numbers, values = np.zeros((len(z) + 1, LONGEST + 3)), np.zeros((len(z), SIZE + 1))

        def take(weight: float, rest: Alignments, edit: tuple[int, int] | None = None) -> None:
            nonlocal total
            total += weight * rest.total
            done = 0 if edit is None else 1
            numbers[done:] += weight * rest.numbers
            values[done:] += weight * rest.values
            if edit is not None:
                numbers[0, edit[0]] += weight * rest.total
                values[0, edit[1]] += weight * rest.total

        if may_insert:
            if z:
                take(inserts[z[0]], ways(x_0, z[1:], 0, True), (run, SIZE))
            take(jump.stop, ways(x_0, z, run, False))
        elif x_0:
            take(jump.prob_delete, ways(x_0[1:], z, run + 1, False))
            if z:
                after = ways(x_0[1:], z[1:], 0, True)
                stays = now if z[0] == del_ else float(kept[x_0[0], z[0]])
                take(stays, after, (run, x_0[0]))
                take(pairs[z[0]], after, (run + 1, SIZE))
        elif not z:
            total = numbers[0, run] = 1.0
        return Alignments(total, numbers, values)

    parts = [(p, ways(x_0, x_t, 0, True)) for x_0, p in data().items()]
    return Alignments(*(sum(p * found[i] for p, found in parts) for i in range(3)))


@pytest.mark.parametrize("weights", [EditWeights.normalized, EditWeights.joint])
@pytest.mark.parametrize(("name", "t", "x_t"), WITH_TOKENS)
def test_the_tokens_of_the_step_back_are_those_of_bayes_rule(name, t, x_t, weights) -> None:  # type: ignore[no-untyped-def]
    schedule = SCHEDULES[name]
    # What an insertion in the place of a deleted token was is taken for what any insertion was
    # (App. B.4), so p_θ cannot be exact where such pairs are frequent.
    assert previous(schedule, t, x_t, weights) == pytest.approx(
        exact_previous(name, t, x_t), abs=5e-3
    )


def previous(schedule: Schedule, t: int, x_t: Tokens, weights, perturbed: float = 0.0):  # type: ignore[no-untyped-def]
    tables = schedule.tables(CPU)
    chosen = weights(tables.jump)
    prior = CountPrior(SIZE, 8, schedule.num_steps, 4, remembered=FAR, max_length=12)
    prior._automaton = automaton(perturbed)
    # Beside another row, so that padding is there.
    seen = Batch.from_lists([list(x_t), [0] * 4])
    times = torch.tensor([t, 1])
    source, deletions = prior(tables, chosen, seen, times, 10)
    output = DenoiserOutput(source[:, :-1], deletions)
    step = ReverseStep.of(schedule, output, seen, times, weights=chosen)
    return step.logp_previous[0, : len(x_t)].exp().numpy()


def test_another_model_of_the_data_is_seen() -> None:
    exact = exact_previous("insert and delete", 3, (1, 1, 0))
    schedule, weights = SCHEDULES["insert and delete"], EditWeights.normalized
    off = previous(schedule, 3, (1, 1, 0), weights, perturbed=0.05)
    assert np.abs(off - exact).max() > 3e-3


@pytest.mark.parametrize(("name", "t", "x_t"), CASES)
def test_edits_are_those_of_all_alignments(name, t, x_t) -> None:  # type: ignore[no-untyped-def]
    schedule = SCHEDULES[name]
    exact = exact_edits(schedule, t, x_t)
    # Beside another row, so that padding is there.
    seen, jump = Batch.from_lists([list(x_t), [0] * 4]), schedule.tables(CPU).jump
    found = edit_posterior(
        automaton(), jump, seen, torch.tensor([t, 1]), counts=LONGEST + 2, remembered=FAR
    )
    slots = found.deletions[0, : len(x_t) + 1].numpy()
    assert slots == pytest.approx(exact.numbers / exact.total, abs=1e-3)
    # What q says of the token itself is left out of `kept` and `inserted`.
    now = jump.keep[t - 1] - jump.keep[t]
    tokens = seen.tokens[0, : len(x_t)]
    stays = jump.keep[t] * jump.kept.columns(torch.tensor(t), tokens.clamp_max(SIZE - 1))
    stays = torch.where(tokens[:, None] > SIZE, now, stays)
    kept = found.kept[0, : len(x_t)] * stays
    inserted = found.inserted[0, : len(x_t)] * jump.insert_prob(torch.tensor(t), tokens)
    values = torch.cat([kept, inserted[:, None]], dim=1)
    values = values / values.sum(dim=1, keepdim=True)
    assert values.numpy() == pytest.approx(exact.values / exact.total, abs=1e-3)


def test_forgetting_the_context_keeps_the_total_and_costs_little() -> None:
    """After the remembered deletions the sum goes on from the stationary distribution."""
    jump, times = SCHEDULES["often"].tables(CPU).jump, torch.tensor([2])
    seen = Batch.from_lists([[0, 1, 1]])
    laws = [
        edit_posterior(automaton(), jump, seen, times, counts=40, remembered=n).deletions
        for n in (0, 2, FAR)
    ]
    for law in laws:
        torch.testing.assert_close(law.sum(dim=-1), torch.ones(1, 4), atol=1e-4, rtol=0.0)
    errors = [float((law - laws[-1]).abs().max()) for law in laws[:-1]]
    assert errors[1] < 0.3 * errors[0] < 0.3 * 0.1


def test_rows_do_not_depend_on_each_other() -> None:
    model, schedule = automaton(), SCHEDULES["insert and delete"]
    rows, times = [[0, 1], [1, 1, 0, 0, 1], []], torch.tensor([2, 3, 1])
    jump = schedule.tables(CPU).jump
    together = edit_posterior(model, jump, Batch.from_lists(rows), times, counts=5, remembered=2)
    for i, row in enumerate(rows):
        alone = edit_posterior(
            model, jump, Batch.from_lists([row]), times[i : i + 1], counts=5, remembered=2
        )
        n = len(row)
        torch.testing.assert_close(together.kept[i, :n], alone.kept[0])
        torch.testing.assert_close(together.inserted[i, :n], alone.inserted[0])
        torch.testing.assert_close(together.deletions[i, : n + 1], alone.deletions[0])
