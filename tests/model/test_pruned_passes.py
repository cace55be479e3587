"""Following the likeliest contexts alone finds nearly what following all of them finds.

`test_edit_posterior` compares it with enumeration, with nothing left out.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from indel import Batch
from indel.model import pruned_passes
from indel.model.automata import Automaton
from indel.model.edit_posterior import EditPosterior, HeldPlaces, edit_posterior, gap_posterior
from indel.process import Schedule
from indel.process.corruption import corrupt
from indel.process.tables import Tables

CPU = torch.device("cpu")
SIZE, ROWS = 4, 24
ALL = 10**6

pytestmark = pytest.mark.skipif(
    not pruned_passes.available(CPU), reason="there is no C compiler here"
)


def sequences(count: int) -> list[list[int]]:
    rng = np.random.default_rng(1)
    return [rng.integers(0, SIZE, rng.integers(0, 40)).tolist() for _ in range(count)]


@cache
def automaton() -> Automaton:
    """All contexts of up to five tokens; longer ones predict a little differently."""
    rng = np.random.default_rng(0)
    words = [()] + [w for n in range(1, 6) for w in itertools.product(range(SIZE), repeat=n)]
    number = {word: state for state, word in enumerate(words)}
    prob, source, target = np.zeros((len(words), SIZE)), [], []
    for state, word in enumerate(words):
        other = rng.dirichlet(np.full(SIZE, 0.3)) * 0.9
        prob[state] = 0.6 * prob[number[word[1:]]] + 0.4 * other if len(word) > 1 else other
        for token in range(SIZE):
            source.append(state)
            target.append(number[(*word, token)[-5:]])
    shorter = [number[word[1:]] if len(word) > 1 else state for state, word in enumerate(words)]
    return Automaton.of(
        torch.tensor(source),
        torch.tensor(target),
        torch.from_numpy(prob).flatten().float(),
        torch.full((len(words),), 0.05),
        torch.tensor([SIZE, *(word[-1] for word in words[1:])]),
        torch.tensor([0.4, 0.3, 0.2, 0.1]),
        shorter=torch.tensor(shorter),
    )


def noisy(schedule: Schedule, t: int) -> Batch:
    x_0 = Batch.from_lists(sequences(ROWS))
    times = torch.full((ROWS,), t)
    found = corrupt(schedule, x_0, times, generator=torch.Generator().manual_seed(0))
    return found.x_t.without(SIZE)


def tables(schedule: Schedule) -> Tables:
    return schedule.tables(CPU)


def posterior(model: Automaton, schedule: Schedule, t: int, remembered: int) -> EditPosterior:
    seen, times = noisy(schedule, t), torch.full((ROWS,), t)
    jump = tables(schedule).jump
    return edit_posterior(model, jump, seen, times, counts=6, remembered=remembered)


def of_tokens(found: EditPosterior, rows: Batch) -> torch.Tensor:
    """The law of the edit of each token."""
    weights = torch.cat([found.kept, found.inserted[..., None]], dim=-1)[rows.mask]
    return weights / weights.sum(dim=-1, keepdim=True)


def distance(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The mean total variation."""
    return float((found - expected).abs().sum(dim=-1).mean() / 2)


def set_limits(monkeypatch: pytest.MonkeyPatch, least: float, most: int) -> None:
    monkeypatch.setattr(pruned_passes, "worth_it", lambda model: True)
    monkeypatch.setattr(pruned_passes, "LEAST", least)
    monkeypatch.setattr(pruned_passes, "MOST", most)


@pytest.mark.parametrize("rate", [0.0, 0.6])
@pytest.mark.parametrize("remembered", [0, 1, 3])
@pytest.mark.parametrize("t", [2, 6])
def test_with_nothing_left_out_it_finds_what_torch_finds(
    rate: float, remembered: int, t: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule, model = Schedule.paper(SIZE, 8, rate), automaton()
    set_limits(monkeypatch, 0.0, ALL)
    found = posterior(model, schedule, t, remembered)
    monkeypatch.setenv("INDEL_NATIVE", "0")
    expected = posterior(model, schedule, t, remembered)
    rows = noisy(schedule, t)
    laws, others = of_tokens(found, rows), of_tokens(expected, rows)
    torch.testing.assert_close(laws, others, atol=1e-5, rtol=1e-3)
    slots = torch.nn.functional.pad(rows.mask, (1, 0), value=True)
    numbers, others = found.deletions[slots], expected.deletions[slots]
    torch.testing.assert_close(numbers, others, atol=1e-5, rtol=1e-3)


def test_gaps_agree_with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Batch.from_lists(sequences(ROWS))
    generator = torch.Generator().manual_seed(0)
    open_slots = torch.rand(ROWS, rows.width + 1, generator=generator) < 0.3
    held, model = HeldPlaces(rows.mask, open_slots), automaton()
    set_limits(monkeypatch, 0.0, ALL)
    found = gap_posterior(model, rows, held, counts=6, remembered=1)
    monkeypatch.setenv("INDEL_NATIVE", "0")
    expected = gap_posterior(model, rows, held, counts=6, remembered=1)
    laws = (each.kept[rows.mask] for each in (found, expected))
    laws, others = (each / each.sum(dim=-1, keepdim=True) for each in laws)
    torch.testing.assert_close(laws, others, atol=1e-5, rtol=1e-3)
    slots = torch.nn.functional.pad(rows.mask, (1, 0), value=True)
    numbers, others = found.deletions[slots], expected.deletions[slots]
    torch.testing.assert_close(numbers, others, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("t", [2, 5, 7])
def test_the_likeliest_contexts_say_nearly_all(t: int, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, model = Schedule.paper(SIZE, 8, 0.6), automaton()
    assert len(model.end) > 1000
    rows = noisy(schedule, t)
    least = pruned_passes.LEAST
    set_limits(monkeypatch, 0.0, ALL)
    exact = of_tokens(posterior(model, schedule, t, 1), rows)
    set_limits(monkeypatch, least, 256)
    usual = distance(of_tokens(posterior(model, schedule, t, 1), rows), exact)
    set_limits(monkeypatch, 1.0, 1)
    crude = distance(of_tokens(posterior(model, schedule, t, 1), rows), exact)
    assert usual < 0.01
    assert crude > 3 * usual


def test_with_all_left_out_it_knows_pairs_of_tokens_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, model = Schedule.paper(SIZE, 8, 0.0), automaton()
    # p(token | last token), whatever context it leads to.
    by_target = model.frequent.to_dense()[1:, : SIZE + 1].T
    pair = torch.zeros(SIZE + 1, SIZE).index_add(1, model.last[1:], by_target)
    source = torch.arange(SIZE + 1).repeat_interleave(SIZE)
    small = Automaton.of(
        source,
        1 + torch.arange(SIZE).repeat(SIZE + 1),
        pair.flatten(),
        model.end[: SIZE + 1],
        model.last[: SIZE + 1],
        model.common,
        model.rest[: SIZE + 1],
    )
    set_limits(monkeypatch, 1.1, 1)
    found = posterior(model, schedule, 5, 1)
    monkeypatch.setenv("INDEL_NATIVE", "0")
    expected = posterior(small, schedule, 5, 1)
    rows = noisy(schedule, 5)
    laws, others = of_tokens(found, rows), of_tokens(expected, rows)
    torch.testing.assert_close(laws, others, atol=1e-5, rtol=1e-4)


def test_a_row_does_not_depend_on_its_neighbors(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, model = Schedule.paper(SIZE, 8, 0.6), automaton()
    set_limits(monkeypatch, 1e-5, 64)
    seen, jump = noisy(schedule, 5), tables(schedule).jump
    together = edit_posterior(model, jump, seen, torch.full((ROWS,), 5), counts=4, remembered=1)
    some = torch.tensor([20, 3])
    alone = edit_posterior(
        model, jump, seen.rows(some), torch.full((2,), 5), counts=4, remembered=1
    )
    for row, place in enumerate(some.tolist()):
        n = int(seen.lengths[place])
        assert torch.equal(alone.kept[row, :n], together.kept[place, :n])


def test_few_contexts_are_all_followed() -> None:
    assert pruned_passes.worth_it(automaton())
    assert not pruned_passes.worth_it(replace(automaton(), stationary=automaton().end))


def test_shorter_contexts_end_alike() -> None:
    model = automaton()
    state = torch.arange(SIZE + 1, len(model.end))
    assert bool((model.shorter[state] < state).all())
    assert torch.equal(model.last[model.shorter[state]], model.last[state])
    assert torch.equal(model.shorter[: SIZE + 1], torch.arange(SIZE + 1))


@pytest.mark.parametrize("damage", [-1, 30])
def test_damaged_counts_are_refused(damage: int) -> None:
    model, wrong = automaton(), automaton().shorter.clone()
    wrong[20] = damage
    given = (torch.tensor([0]), torch.tensor([1]), torch.tensor([0.5]), model.end, model.last)
    with pytest.raises(ValueError, match="damaged: a shorter context must have a smaller number"):
        Automaton.of(*given, model.common, shorter=wrong)
