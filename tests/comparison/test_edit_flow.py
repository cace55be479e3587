"""The edit flow: loss, bound, leaps, infilling and repair."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import expm

import edit_flow_golden as golden
from indel.batch import Batch
from indel.comparison.edit_flow import EditFlow, build, edit_divergence
from indel.comparison.edit_moves import leap
from indel.comparison.edit_paths import PendingEdits
from support.comparison_toys import BACKBONE, WORDS, trained, untrained
from support.frequencies import chi_square_p

INSERTIONS = {"blank": 1.0, "extra": 0.0}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def flow() -> EditFlow:
    learned: EditFlow = trained(build, {"steps": 24}, steps=200)
    return learned


# ---------------------------------------------------------------- the bound


def exact_bound(flow: EditFlow, x_1: tuple[int, ...], nodes: int) -> float:
    """The bound by enumeration of all x and quadrature over κ, for two letters."""
    blank, extra = flow.source.blank, flow.source.extra
    total = float(flow.length_divergence(torch.tensor([len(x_1)])))
    for v, weight in golden.nodes_of_v(nodes):
        kappa = 1.0 - v * v
        states = golden.conditional(x_1, blank, extra, kappa)
        x = Batch.from_lists(map(list, states))
        insert, token = (
            torch.zeros(len(x), x.width + 1, 2),
            torch.zeros(len(x), x.width, 3),
        )
        for row, state in enumerate(states.values()):
            for edit, number in state.pending.items():
                if edit.kind == "insert":
                    insert[row, edit.place, edit.token] = number
                else:
                    value = 2 if edit.kind == "delete" else edit.token
                    token[row, edit.place, value] = number
        with torch.no_grad():
            guess = flow.log_expected(x, torch.full((len(x),), kappa, dtype=torch.float64))
        each = edit_divergence(x, PendingEdits(insert, token), guess)
        prob = torch.tensor([state.prob for state in states.values()])
        total += weight * 2.0 / v * float((prob * each).sum())
    return total


@pytest.mark.parametrize("options", [{"blank": 0.4, "extra": 0.3}, INSERTIONS])
def test_the_likelihood_estimates_the_enumerated_bound(options: dict[str, Any]) -> None:
    torch.manual_seed(2)
    flow = build(2, BACKBONE, 3, {**options, "likelihood_draws": 1}).eval()
    x_1, rows = (0, 1), 4000
    data = Batch.from_lists([list(x_1)] * rows)
    draws = flow.negative_log_likelihood(data, generator=seeded())
    error = float(draws.std()) / rows**0.5
    want = exact_bound(flow, x_1, nodes=16)
    assert abs(float(draws.mean()) - want) < 4 * error
    assert error < 0.04 * want, "too noisy to see an error"


def test_one_alignment_bounds_from_above_and_has_the_same_gradient() -> None:
    """E[sampled] − E[all] does not depend on the network, and is positive."""
    data = Batch.from_lists([[1, 1, 0]] * 5_000)
    gaps = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        flow = build(2, BACKBONE, 3, {"blank": 0.6, "extra": 0.4})
        flow.eval()
        v = 0.8
        kappa = torch.full((len(data),), 1.0 - v * v, dtype=torch.float64)
        x, pending = flow.source.path(data, generator=seeded(7)).at(kappa)
        with torch.no_grad():
            guess = flow.log_expected(x, kappa)
        every = flow.source.expected_edits(data, x, kappa)
        gap = edit_divergence(x, pending, guess) - edit_divergence(x, every, guess)
        gaps.append((float(gap.mean()), float(gap.std()) / len(data) ** 0.5))
    (first, error), (second, other) = gaps
    assert first > 10 * error
    assert abs(first - second) < 4 * (error**2 + other**2) ** 0.5


def test_both_losses_learn(flow: EditFlow) -> None:
    sampled = trained(build, {"alignments": "sampled"}, steps=40)
    start = untrained(build, {})
    data = Batch.from_lists(WORDS * 40)
    scores = [
        float(each.negative_log_likelihood(data, generator=seeded()).mean())
        for each in (start, sampled, flow)
    ]
    assert scores[0] > scores[1] + 1.0
    assert scores[1] > scores[2] > np.log(3)


def test_the_divergence_is_zero_only_where_the_network_is_right() -> None:
    x = Batch.from_lists([[0, 1], [1]])
    flow = untrained(build, {})
    data, kappa = Batch.from_lists([[0, 1, 1], [1]]), torch.tensor([0.5, 0.9])
    pending = flow.source.expected_edits(data, x, kappa)
    right = PendingEdits(pending.insert.log(), pending.token.log())
    assert torch.allclose(edit_divergence(x, pending, right), torch.zeros(2), atol=1e-6)
    off = PendingEdits(right.insert + 0.5, right.token)
    assert (edit_divergence(x, pending, off) > 1e-4).all()


def test_gradients_are_finite_where_edits_are_impossible() -> None:
    for options in (INSERTIONS, {"blank": 0.0, "extra": 0.0}, {"blank": 1.0, "extra": 0.5}):
        flow = build(4, BACKBONE, 6, options)
        flow.loss(Batch.from_lists([*WORDS, []]), generator=seeded()).sum().backward()
        for name, parameter in flow.named_parameters():
            if parameter.grad is not None:
                assert torch.isfinite(parameter.grad).all(), name


def test_lengths_are_counted_in_training_only_and_the_law_is_proper() -> None:
    flow = build(4, BACKBONE, 6, {})
    data = Batch.from_lists(WORDS * 20)
    before = float(flow.length_divergence(torch.tensor([4])))
    flow.eval().loss(data, generator=seeded())
    assert not flow.length_counts.any()
    flow.train().loss(data, generator=seeded())
    assert flow.length_counts.tolist() == [0, 0, 0, 20, 20, 20, 0]
    assert float(flow.length_divergence(torch.tensor([4]))) < before
    assert float(flow._source_lengths().sum()) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="at most max_length = 6 tokens, got 7"):
        flow.loss(Batch.from_lists([[0] * 7]), generator=seeded())


# ---------------------------------------------------------------- leaps


def leaps_of_the_golden_model(steps: int, rows: int, factor: float) -> Counter[Any]:
    """Leaps of κ from 0 to 1 with the rates of `golden.model_rate`, from the empty sequence."""
    states = golden.sequences(golden.LONGEST)
    number = {x: place for place, x in enumerate(states)}
    insert = torch.zeros(len(states), golden.LONGEST + 1, 2)
    token = torch.zeros(len(states), golden.LONGEST, 3)
    for x, place in number.items():
        for edit in golden.edits_of(x):
            rate = factor * golden.model_rate(x, edit)
            if edit.kind == "insert":
                insert[place, edit.place, edit.token] = rate
            else:
                token[place, edit.place, 2 if edit.kind == "delete" else edit.token] = rate
    x, generator = Batch.from_lists([[]] * rows), seeded(5)
    for _ in range(steps):
        places = torch.tensor([number[tuple(row)] for row in x.to_lists()])
        width = x.width
        rates = PendingEdits(insert[places, : width + 1], token[places, :width])
        x = leap(x, rates, 1.0 / steps, generator=generator, limit=golden.LONGEST)
    return Counter((tuple(row),) for row in x.to_lists())


def test_many_small_leaps_have_the_law_of_the_generator() -> None:
    states = golden.sequences(golden.LONGEST)
    law = golden.model_start([1.0]) @ expm(golden.model_generator(states))
    want = {(x,): float(prob) for x, prob in zip(states, law, strict=True)}
    assert chi_square_p(leaps_of_the_golden_model(80, 1500, 1.0), want) > 1e-3
    assert chi_square_p(leaps_of_the_golden_model(80, 1500, 1.3), want) < 1e-6


def test_a_perfect_network_generates_the_data() -> None:
    """With the exact posterior edits of three sequences, leaps come near the data's law."""
    data = {(0, 1): 0.5, (1, 1): 0.3, (0,): 0.2}

    class Perfect(EditFlow):
        def expected(self, x: Batch, kappa: float) -> PendingEdits:
            insert = torch.zeros(len(x), x.width + 1, 2)
            token = torch.zeros(len(x), x.width, 3)
            kappas = torch.full((len(x),), kappa, dtype=torch.float64)
            logs = []
            for x_1, share in data.items():
                given = Batch.from_lists([list(x_1)] * len(x))
                logs.append(self.source.log_prob(given, x, kappas) + np.log(share))
            posterior = torch.softmax(torch.stack(logs), dim=0).nan_to_num(0.0).float()
            for x_1, weight in zip(data, posterior, strict=True):
                rows = (weight > 0).nonzero()[:, 0]
                given = Batch.from_lists([list(x_1)] * len(rows))
                if len(rows):
                    part = self.source.expected_edits(given, x.rows(rows), kappas[rows])
                    insert[rows] += weight[rows, None, None] * part.insert
                    token[rows] += weight[rows, None, None] * part.token
            return PendingEdits(insert, token)

    def far(steps: int) -> float:
        options = build(2, BACKBONE, 2, {"steps": steps}).options
        flow = Perfect(2, BACKBONE, 2, options).eval()
        flow.length_counts.copy_(torch.tensor([0.0, 2000.0, 8000.0]))
        rows = 1000
        counts = Counter(map(tuple, flow.generate(rows, generator=seeded()).sequences))
        return 0.5 * sum(abs(counts[x] / rows - data.get(x, 0.0)) for x in {*counts, *data})

    near = far(48)
    assert near < 0.12
    assert far(2) > 2 * near


# ---------------------------------------------------------------- use


def test_it_generates_the_words_and_counts_its_calls(flow: EditFlow) -> None:
    drawn = flow.generate(200, generator=seeded())
    assert drawn.calls == 24
    counts = Counter(map(tuple, drawn.sequences))
    hits = [counts[tuple(word)] for word in WORDS]
    assert sum(hits) > 80
    assert min(hits) > 10


def test_infilling_keeps_what_is_given_and_the_length(flow: EditFlow) -> None:
    left, right = [[0, 1], [3], [], [2, 2]], [[3], [0], [], [2, 2]]
    wanted = [1, 1, 4, 3]
    for each in (
        flow,
        untrained(build, {"steps": 4}),
        untrained(build, {**INSERTIONS, "steps": 4}),
    ):
        drawn = each.infill(left, right, wanted, generator=seeded())
        for row, known, end, size in zip(drawn.sequences, left, right, wanted, strict=True):
            assert row[: len(known)] == known
            assert row[len(row) - len(end) :] == end
            assert len(row) == len(known) + size + len(end)
        free = each.infill(left, right, None, generator=seeded())
        for row, known, end in zip(free.sequences, left, right, strict=True):
            assert row[: len(known)] == known
            assert row[len(row) - len(end) :] == end
            assert len(row) >= len(known) + len(end)
    answers = flow.infill([[0, 1]] * 50, [[3]] * 50, [1] * 50, generator=seeded()).sequences
    assert answers.count([0, 1, 2, 3]) > 25


def test_repair_mends_a_typo(flow: EditFlow) -> None:
    noisy = Batch.from_lists([[0, 1, 1, 3], [3, 3, 0, 2], [0, 1, 2, 3]])
    drawn = flow.repair(noisy, generator=seeded())
    assert drawn is not None
    assert drawn.sequences == [[0, 1, 2, 3], [3, 3, 0], [0, 1, 2, 3]]
    assert untrained(build, INSERTIONS).repair(noisy, generator=seeded()) is None


def test_padding_and_other_rows_change_nothing() -> None:
    flow = untrained(build, {})
    rows = [[0, 1, 2, 3], [], [3, 1]]
    kappa = torch.tensor([0.2, 0.6, 0.95], dtype=torch.float64)
    data = Batch.from_lists([[0, 2, 3], [1], [3, 3, 1, 0]])
    x = Batch.from_lists(rows)
    with torch.no_grad():
        wide = x.widened(9)
        together = flow.log_expected(wide, kappa)
        pending = flow.source.expected_edits(data.widened(7), wide, kappa)
        whole = edit_divergence(wide, pending, together)
        for row in range(3):
            only = torch.tensor([row])
            alone = x.rows(only).trimmed()
            guess = flow.log_expected(alone, kappa[only])
            size = alone.width
            assert torch.allclose(together.insert[row, : size + 1], guess.insert[0], atol=1e-4)
            assert torch.allclose(together.token[row, :size], guess.token[0], atol=1e-4)
            part = flow.source.expected_edits(data.rows(only).trimmed(), alone, kappa[only])
            assert torch.allclose(pending.insert[row, : size + 1], part.insert[0], atol=1e-6)
            assert torch.allclose(whole[row], edit_divergence(alone, part, guess)[0], rtol=1e-4)
    noisy = Batch.from_lists(rows)
    answers = flow.repair(noisy.widened(8), generator=seeded())
    for row, want in zip(rows, answers.sequences, strict=True):
        assert flow.repair(Batch.from_lists([row]), generator=seeded()).sequences == [want]


def test_the_state_comes_back(flow: EditFlow) -> None:
    other = build(4, BACKBONE, 6, {"steps": 24}).eval()
    other.load_state_dict(flow.state_dict())
    assert other.generate(5, generator=seeded()) == flow.generate(5, generator=seeded())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be an integer ≥ 1, got 0"),
        ({"alignments": "one"}, "alignments must be one of all, sampled; got 'one'"),
        ({"blank": 1.5}, "blank must lie in [0, 1], got 1.5"),
        ({"leaps": 3}, "unknown: leaps"),
        ({"repair_start": 1.0}, "repair_start must be a number ≥ 0 and < 1, got 1.0"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        build(4, BACKBONE, 6, options)
