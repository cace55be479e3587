"""Counts with frozen tokens are Bayes' rule over every content of the gaps, enumerated."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import torch

import oracles
from indel import Batch
from indel.model.automata import Automaton
from indel.model.count_prior import CountPrior
from indel.model.denoiser import DenoiserOutput
from indel.model.edit_posterior import HeldPlaces, edit_posterior, gap_posterior
from indel.model.edit_weights import EditWeights
from indel.model.reverse import ReverseStep
from indel.process import Schedule
from oracles import Tokens
from support.cases import steps_of

CPU = torch.device("cpu")
SIZE, DEL = 2, 3
LONGEST = 6
"""Tokens in all gaps together; more have a probability of 0.3⁶ and less."""
FAR = 8
"""More deletions in one slot than that."""
# States: the start, read 0, read 1, read 1 after 1. The rest of a state goes to states 1 and 2.
LAST = [2, 0, 1, 1]
END = [0.1, 0.8, 0.7, 0.85]
FREQUENT = {(0, 1): 0.5, (0, 2): 0.3, (1, 2): 0.15, (2, 3): 0.25, (3, 1): 0.1}
COMMON = [0.6, 0.4]
SCHEDULE = Schedule.paper(SIZE, 4, 0.6)


class Part(NamedTuple):
    """What x_t has in a gap, or a frozen token."""

    tokens: Tokens
    frozen: bool


def gap(*tokens: int) -> Part:
    return Part(tokens, False)


def kept(*tokens: int) -> Part:
    return Part(tokens, True)


CASES = {
    "middle": (kept(1), gap(0), kept(1)),
    "an empty gap": (kept(0), gap(), kept(0, 1)),
    "neighbors": (kept(1, 1, 0), gap(1)),
    "two gaps": (gap(1), kept(0), gap(DEL, 0)),
    "a suffix": (gap(0, 1), kept(1, 1)),
    "no gap at the end": (gap(), kept(1)),
    "nothing frozen": (gap(1, 0),),
}


def transitions(perturbed: float = 0.0) -> dict[tuple[int, int], float]:
    found = defaultdict(float, FREQUENT)
    found[1, 2] += perturbed
    for state in range(4):
        rest = 1.0 - END[state] - sum(p for (s, _), p in found.items() if s == state)
        for token, share in enumerate(COMMON):
            found[state, token + 1] += rest * share
    return dict(found)


def automaton() -> Automaton:
    source, target = torch.tensor(list(FREQUENT)).T
    prob = torch.tensor(list(FREQUENT.values()))
    return Automaton.of(
        source, target, prob, torch.tensor(END), torch.tensor(LAST), torch.tensor(COMMON)
    )


@cache
def data_prob(x_0: Tokens, perturbed: float) -> float:
    table, here = transitions(perturbed), {0: 1.0}
    for token in x_0:
        after: dict[int, float] = defaultdict(float)
        for (s, target), p in table.items():
            if s in here and LAST[target] == token:
                after[target] += here[s] * p
        here = dict(after)
    return sum(p * END[s] for s, p in here.items())


def contents(parts: tuple[Part, ...], perturbed: float) -> Iterator[tuple[list[Tokens], float]]:
    """Every short content of the gaps, and the probability of the x_0 that has it."""
    gaps = sum(not part.frozen for part in parts)
    for lengths in itertools.product(range(LONGEST + 1), repeat=gaps):
        if sum(lengths) > LONGEST:
            continue
        for letters in itertools.product(range(SIZE), repeat=sum(lengths)):
            rest, each = iter(letters), []
            for length in lengths:
                each.append(tuple(itertools.islice(rest, length)))
            following = iter(each)
            whole = tuple(v for p in parts for v in (p.tokens if p.frozen else next(following)))
            yield each, data_prob(whole, perturbed)


@cache
def jump_law(t: int, x_0: Tokens, x_t: Tokens):  # type: ignore[no-untyped-def]
    steps = steps_of(SCHEDULE)[:t]
    if oracles.jump_prob(steps, x_0, x_t) == 0:
        return None
    return oracles.posterior_marginal(steps, x_0, x_t)


def exact_previous(parts: tuple[Part, ...], t: int, perturbed: float = 0.0) -> np.ndarray:
    """P(x_{t−1} has y at each gap token), over all contents of all gaps and all chains."""
    seen = [part.tokens for part in parts if not part.frozen]
    total: np.ndarray | float = 0.0
    for each, p in contents(parts, perturbed):
        laws = [jump_law(t, x_0, x_t) for x_0, x_t in zip(each, seen, strict=True)]
        if any(law is None for law in laws):
            continue
        weight = p * float(np.prod([law.prob for law in laws]))
        total = total + weight * np.concatenate([law.prob_previous for law in laws])
    assert isinstance(total, np.ndarray)
    return total / total.sum(axis=1, keepdims=True)


class Alignments(NamedTuple):
    total: float
    numbers: np.ndarray
    """[slot, n]: n deletions in the slot."""
    values: np.ndarray
    """[token, v]: it is kept from v, or inserted (last)."""


@cache
def alignments(t: int, x_0: Tokens, x_t: Tokens) -> Alignments:
    """All alignments of one gap, a pair being a deletion and an insertion; by plain recursion."""
    jump = SCHEDULE.jump(t)
    stays = jump.keep * jump.kept.matrix()
    now = SCHEDULE.jump(t - 1).keep - jump.keep
    inserts = [*jump.inserts.dense().tolist(), None, jump.insert_del]
    pairs = [*jump.background.dense().tolist(), None, jump.replace_del - now]

    @cache
    def ways(x_0: Tokens, z: Tokens, run: int, may_insert: bool) -> Alignments:
        total = 0.0
        numbers, values = np.zeros((len(z) + 1, LONGEST + 2)), np.zeros((len(z), SIZE + 1))

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
                same = now if z[0] == DEL else float(stays[x_0[0], z[0]])
                take(same, after, (run, x_0[0]))
                take(pairs[z[0]], after, (run + 1, SIZE))
        elif not z:
            total = numbers[0, run] = 1.0
        return Alignments(total, numbers, values)

    return ways(x_0, x_t, 0, True)


def exact_edits(parts: tuple[Part, ...], t: int, perturbed: float = 0.0) -> Alignments:
    """The slots and tokens of all gaps, one after the other."""
    seen = [part.tokens for part in parts if not part.frozen]
    total, numbers, values = 0.0, np.zeros(()), np.zeros(())
    for each, p in contents(parts, perturbed):
        found = [alignments(t, x_0, x_t) for x_0, x_t in zip(each, seen, strict=True)]
        if any(one.total == 0.0 for one in found):
            continue
        weight = p * float(np.prod([one.total for one in found]))
        total += weight
        numbers = numbers + weight * np.concatenate([one.numbers / one.total for one in found])
        values = values + weight * np.concatenate([one.values / one.total for one in found])
    return Alignments(total, numbers / total, values / total)


class Laid(NamedTuple):
    seen: Batch
    held: HeldPlaces
    free: list[int]
    """The places of the gap tokens."""
    slots: list[int]
    """The slots of the gaps."""


def laid_out(parts: tuple[Part, ...]) -> Laid:
    """As the library has it, beside another row, so that padding is there."""
    tokens, frozen, slots = list[int](), list[bool](), list[int]()
    for part in parts:
        if not part.frozen:
            slots += range(len(tokens), len(tokens) + len(part.tokens) + 1)
        tokens += part.tokens
        frozen += [part.frozen] * len(part.tokens)
    width = max(len(tokens), 4)
    marks = torch.zeros(2, width, dtype=torch.bool)
    marks[0, : len(tokens)] = torch.tensor(frozen)
    is_open = torch.zeros(2, width + 1, dtype=torch.bool)
    is_open[0, slots] = True
    is_open[1] = True
    seen = Batch.from_lists([tokens, [0] * 4])
    free = [place for place, mark in enumerate(frozen) if not mark]
    return Laid(seen, HeldPlaces(marks, is_open), free, slots)


def possible(parts: tuple[Part, ...], t: int) -> bool:
    return all(
        part.frozen
        or oracles.jump_prob(steps_of(SCHEDULE)[:t], (0,) * len(part.tokens), part.tokens) > 0
        for part in parts
    )


TIMED = [(name, t) for name, parts in CASES.items() for t in (1, 2, 3, 4) if possible(parts, t)]


@pytest.mark.parametrize(("name", "t"), TIMED)
def test_edits_in_gaps_are_those_of_all_contents_and_alignments(name: str, t: int) -> None:
    parts = CASES[name]
    exact = exact_edits(parts, t)
    numbers, values = edits(parts, t)
    assert numbers == pytest.approx(exact.numbers, abs=1e-3)
    assert values == pytest.approx(exact.values, abs=1e-3)


def edits(parts: tuple[Part, ...], t: int) -> tuple[np.ndarray, np.ndarray]:
    seen, held, free, slots = laid_out(parts)
    jump, time = SCHEDULE.tables(CPU).jump, torch.tensor(t)
    found = edit_posterior(
        automaton(),
        jump,
        seen,
        torch.tensor([t, 1]),
        counts=LONGEST + 1,
        remembered=FAR,
        held=held,
    )
    # Where no gap is, nothing was deleted, and nothing frozen was inserted.
    closed = [i for i in range(int(seen.lengths[0]) + 1) if i not in slots]
    assert bool((found.deletions[0, closed, 0] == 1).all())
    assert not bool((found.inserted * held.frozen).any())
    # What q says of the token itself is left out of `kept` and `inserted`.
    tokens = seen.tokens[0, free]
    stays = jump.keep[t] * jump.kept.columns(time, tokens.clamp_max(SIZE - 1))
    stays = torch.where(tokens[:, None] > SIZE, jump.keep[t - 1] - jump.keep[t], stays)
    inserted = found.inserted[0, free] * jump.insert_prob(time, tokens)
    values = torch.cat([found.kept[0, free] * stays, inserted[:, None]], dim=1)
    values = values / values.sum(dim=1, keepdim=True)
    return found.deletions[0, slots].numpy(), values.numpy()


def test_another_model_of_the_data_is_seen() -> None:
    numbers, values = edits(CASES["middle"], 3)
    exact = exact_edits(CASES["middle"], 3, perturbed=-0.1)
    assert np.abs(values - exact.values).max() > 5e-3
    assert np.abs(numbers - exact.numbers).max() > 5e-3


def test_what_is_frozen_is_seen() -> None:
    """The same x_t with its frozen tokens taken for noise has another posterior."""
    exact = exact_edits(CASES["middle"], 3)
    whole = edits((gap(1, 0, 1),), 3)[1]
    assert np.abs(whole[1:2] - exact.values).max() > 0.02


@pytest.mark.parametrize("weights", [EditWeights.normalized, EditWeights.joint])
@pytest.mark.parametrize(("name", "t"), [case for case in TIMED if laid_out(CASES[case[0]]).free])
def test_the_step_back_is_that_of_bayes_rule(name, t, weights) -> None:  # type: ignore[no-untyped-def]
    parts = CASES[name]
    seen, held, free, _ = laid_out(parts)
    tables = SCHEDULE.tables(CPU)
    chosen, times = weights(tables.jump), torch.tensor([t, 1])
    prior = CountPrior(SIZE, 8, SCHEDULE.num_steps, 4, remembered=FAR, max_length=12)
    prior._automaton = automaton()
    source, deletions = prior(tables, chosen, seen, times, 10, held)
    output = DenoiserOutput(source[:, :-1], deletions)
    step = ReverseStep.of(SCHEDULE, output, seen, times, weights=chosen, given=held.frozen)
    # Insertions in the place of deleted tokens count as any others (App. B.4).
    assert step.logp_previous[0, free].exp().numpy() == pytest.approx(
        exact_previous(parts, t), abs=5e-3
    )


STARTS = {
    "middle": (kept(1), gap(), kept(1)),
    "two gaps": (gap(), kept(0), gap(), kept(1, 1)),
    "prompt": (kept(1, 1), gap()),
}


@pytest.mark.parametrize("name", STARTS)
def test_the_start_is_the_law_of_the_gaps_at_t(name: str) -> None:
    """How many tokens x_0 has in each gap, and how many DELs x_T has then."""
    parts = STARTS[name]
    seen, held, _, slots = laid_out(parts)
    most = 2 * LONGEST
    numbers, at_end = np.zeros((len(slots), most + 1)), np.zeros((len(slots), most + 1))
    for each, p in contents(parts, 0.0):
        for place, content in enumerate(each):
            numbers[place, len(content)] += p
            at_end[place] += p * dels_at_end(len(content), most)
    numbers, at_end = (law / law.sum(axis=1, keepdims=True) for law in (numbers, at_end))
    frozen = seen.rows(torch.tensor([0]))
    places = HeldPlaces(*(mask[:1] for mask in held))
    found = gap_posterior(automaton(), frozen, places, counts=most, remembered=FAR)
    assert found.deletions[0, slots].numpy() == pytest.approx(numbers, abs=1e-3)
    prior = CountPrior(SIZE, 8, SCHEDULE.num_steps, 4, remembered=FAR, max_length=12)
    prior._automaton = automaton()
    start = prior.start(SCHEDULE, frozen, places, most).deletions[0, slots].exp().numpy()
    assert start == pytest.approx(at_end, abs=2e-3)
    assert np.abs(start - numbers).max() > 0.02


WHOLE = {2: 5, 4: 3, 5: 2}
"""How many sequences of the data have each length."""


@pytest.mark.parametrize("name", ["middle", "prompt"])
def test_the_start_knows_how_long_sequences_are(name: str) -> None:
    """One gap: the counts, and each length as often as in the data, by enumeration."""
    parts, most = STARTS[name], 2 * LONGEST
    frozen_tokens = sum(len(part.tokens) for part in parts)
    by_counts = {
        length: sum(data_prob(x, 0.0) for x in itertools.product(range(SIZE), repeat=length))
        for length in WHOLE
    }
    at_end = np.zeros(most + 1)
    for (content,), p in contents(parts, 0.0):
        length = frozen_tokens + len(content)
        if length in WHOLE:
            at_end += p * WHOLE[length] / by_counts[length] * dels_at_end(len(content), most)
    at_end /= at_end.sum()
    seen, held, _, slots = laid_out(parts)
    frozen = seen.rows(torch.tensor([0]))
    places = HeldPlaces(*(mask[:1] for mask in held))
    prior = CountPrior(SIZE, 8, SCHEDULE.num_steps, 4, remembered=FAR, max_length=12)
    prior._automaton = automaton()
    without = prior.start(SCHEDULE, frozen, places, most).deletions[0, slots].exp().numpy()
    prior.fit_lengths(torch.tensor([n for n, many in WHOLE.items() for _ in range(many)]))
    start = prior.start(SCHEDULE, frozen, places, most).deletions[0, slots].exp().numpy()
    assert start[0] == pytest.approx(at_end, abs=3e-3)
    assert np.abs(without[0] - at_end).max() > 0.1


@cache
def dels_at_end(length: int, most: int) -> np.ndarray:
    """P(x_T is n DELs | x_0 has so many tokens), n = 0…most, step by step: numbers alone matter."""
    law = {length: 1.0}
    for step in steps_of(SCHEDULE)[:-1]:
        after: dict[int, float] = defaultdict(float)
        for n, p in law.items():
            for survivors, stay in enumerate(binomial(n, 1.0 - step.delete)):
                for new, more in enumerate(negative_binomial(n + 1, step.insert, most)):
                    if survivors + new <= most + 8:
                        after[survivors + new] += p * stay * more
        law = dict(after)
    return np.array([law.get(n, 0.0) for n in range(most + 1)])


def binomial(n: int, prob: float) -> list[float]:
    law = [1.0]
    for _ in range(n):
        law = [
            (law[k] if k < len(law) else 0.0) * (1 - prob) + (law[k - 1] if k else 0.0) * prob
            for k in range(len(law) + 1)
        ]
    return law


def negative_binomial(places: int, more: float, most: int) -> list[float]:
    """A number of inserts, each place having a geometric one."""
    law = [1.0] + [0.0] * most
    for _ in range(places):
        law = [
            sum(law[k - j] * (1 - more) * more**j for j in range(k + 1)) for k in range(most + 1)
        ]
    return law
