"""The path of an edit flow against explicit generators, whose code it does not share."""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import edit_flow_golden as golden
from indel.batch import Batch
from indel.comparison.edit_flow import edit_divergence
from indel.comparison.edit_paths import EditSource, PendingEdits
from support.frequencies import chi_square_p

FOLDER = Path(__file__).parents[2] / "docs" / "golden" / "edit-flow"
SETTINGS = sorted(golden.SETTINGS)


def read(setting: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{setting}.json").read_text(encoding="utf-8"))
    return found


def source_of(setting: str) -> EditSource:
    blank, extra, _ = golden.SETTINGS[setting]
    return EditSource(2, blank, extra)


def rows_of(x_1: Any, states: list[Any], kappa: float) -> tuple[Batch, Batch, Any]:
    """One batch of the same x_1 with all states."""
    data = Batch.from_lists([list(x_1)] * len(states))
    x = Batch.from_lists([list(each) for each in states])
    return data, x, torch.full((len(states),), kappa, dtype=torch.float64)


def log_probs(source: EditSource, x_1: Any, states: list[Any], kappa: float) -> Any:
    return source.log_prob(*rows_of(x_1, states, kappa))


def found(source: EditSource, x_1: Any, states: list[Any], kappa: float) -> tuple[Any, Any]:
    """log p_κ(x | x_1) and the expected edits of all states, which must be possible."""
    rows = rows_of(x_1, states, kappa)
    return source.log_prob(*rows), source.expected_edits(*rows)


def check_states(xs: list[Any], edits: PendingEdits, wants: list[dict[str, Any]]) -> None:
    """All entries of all states in one comparison; what is behind the end must be zero."""
    insert, token = edits.insert.tolist(), edits.token.tolist()
    got: list[float] = []
    want: list[float] = []
    for row, (x, state) in enumerate(zip(xs, wants, strict=True)):
        size, zero = len(x), [[0.0, 0.0]] * len(insert[row])
        got += chain.from_iterable(insert[row])
        want += chain.from_iterable((state["insert"] + zero)[: len(insert[row])])
        for place, values in enumerate(token[row]):
            if place < size:
                here = x[place]
                want += [state["delete"][place], state["substitute"][place][1 - here], 1.0]
                got += [values[2], values[1 - here], sum(values)]
            else:
                want += [0.0] * 3
                got += values
    np.testing.assert_allclose(got, want, atol=2e-6)


@pytest.mark.parametrize("setting", SETTINGS)
def test_marginals_and_rates_are_the_golden_ones(setting: str) -> None:
    source, count = source_of(setting), 0
    for moment in read(setting)["times"]:
        for given in moment["given"]:
            states = given["states"]
            xs = [each["x"] for each in states]
            logp, edits = found(source, given["x_1"], xs, moment["kappa"])
            want = [each["probability"] for each in states]
            np.testing.assert_allclose(logp.exp().tolist(), want, rtol=1e-8)
            assert sum(want) == pytest.approx(1.0, abs=1e-8)
            check_states(xs, edits, states)
            count += len(states)
    assert count > 300


def compare_with_generators(setting: str, length: int) -> None:
    blank, extra, _ = golden.SETTINGS[setting]
    source, kappa = source_of(setting), 0.45
    for x_1 in golden.sequences(length):
        if len(x_1) == length:
            want = golden.conditional(x_1, blank, extra, kappa)
            logp, edits = found(source, x_1, list(want), kappa)
            np.testing.assert_allclose(
                logp.exp().tolist(), [state.prob for state in want.values()], rtol=1e-9
            )
            check_states(list(want), edits, [golden.plain(*each) for each in want.items()])


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("length", [0, 1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_all_short_sequences_agree_with_the_exponential_of_the_generator(
    setting: str, length: int
) -> None:
    compare_with_generators(setting, length)


def test_the_comparison_sees_a_wrong_rate() -> None:
    blank, extra, _ = golden.SETTINGS["all-edits"]
    off = EditSource(2, 1.1 * blank, extra)
    want = golden.conditional((0, 1), blank, extra, 0.45)
    logp = log_probs(off, (0, 1), list(want), 0.45)
    assert abs(logp.exp() - torch.tensor([s.prob for s in want.values()])).max() > 1e-3


@pytest.mark.parametrize("setting", SETTINGS)
def test_marginal_rates_of_data_and_the_way_back(setting: str) -> None:
    """Posterior means over x_1 of our expected edits; reversed flows balance."""
    source, data = source_of(setting), golden.DATA
    for moment in read(setting)["times"]:
        states, kappa = moment["data"], moment["kappa"]
        xs = [each["x"] for each in states]
        joint = torch.zeros(len(xs), dtype=torch.float64)
        insert = token = torch.zeros(())
        for x_1, share in data.items():
            logp = log_probs(source, x_1, xs, kappa)
            possible = (logp > -torch.inf).nonzero()[:, 0]
            _, edits = found(source, x_1, [xs[row] for row in possible.tolist()], kappa)
            prob = share * logp.exp()
            joint = joint + prob
            shape = (len(xs), max(map(len, xs)) + 1)
            one = torch.zeros(*shape, 2, dtype=torch.float64)
            two = torch.zeros(shape[0], shape[1] - 1, 3, dtype=torch.float64)
            width = edits.token.shape[1]
            weight = prob[possible, None, None]
            one[possible, : width + 1] = weight * edits.insert
            two[possible, :width] = weight * edits.token
            insert, token = insert + one, token + two
        np.testing.assert_allclose(
            joint.tolist(), [each["probability"] for each in states], rtol=1e-8
        )
        mean = PendingEdits(insert / joint[:, None, None], token / joint[:, None, None])
        check_states(xs, mean, states)
        prob_of = {tuple(each["x"]): each["probability"] for each in states}
        outflow = sum(
            each["probability"]
            * (np.sum(each["insert"]) + np.sum(each["delete"]) + np.sum(each["substitute"]))
            for each in states
        )
        backflow = sum(
            prob_of[tuple(each["x"])] * rate for each in states for _, rate in each["reverse"]
        )
        assert backflow * (1.0 - kappa) == pytest.approx(outflow, rel=1e-7)


@pytest.mark.parametrize("x_1", [(0, 1), (1, 1)])
def test_the_marginal_rates_carry_the_marginals(x_1: tuple[int, ...]) -> None:
    """dp/dκ = p · u with our rates u, integrated by Runge–Kutta, gives p_κ at the end."""
    source = source_of("all-edits")
    states = golden.sequences(2 * len(x_1) + 1)
    number = {x: place for place, x in enumerate(states)}

    def generator(kappa: float) -> np.ndarray:
        rates = np.zeros((len(states), len(states)))
        _, edits = found(source, x_1, states, kappa)
        for x, place in number.items():
            for edit in golden.edits_of(x):
                if edit.kind == "insert":
                    value = edits.insert[place, edit.place, edit.token]
                else:
                    which = 2 if edit.kind == "delete" else edit.token
                    value = edits.token[place, edit.place, which]
                if float(value) > 0.0:
                    rate = float(value) / (1.0 - kappa)
                    rates[place, number[golden.edited(x, edit)]] += rate
                    rates[place, place] -= rate
        return rates

    def law(kappa: float) -> np.ndarray:
        return log_probs(source, x_1, states, kappa).exp().numpy()

    p, (start, end), steps = law(0.1), (0.1, 0.7), 12
    knots = np.linspace(start, end, 2 * steps + 1)
    generators = [generator(float(kappa)) for kappa in knots]
    step = (end - start) / steps
    for first, middle, last in zip(
        generators[:-2:2], generators[1::2], generators[2::2], strict=True
    ):
        k_1 = p @ first
        k_2 = (p + step / 2 * k_1) @ middle
        k_3 = (p + step / 2 * k_2) @ middle
        k_4 = (p + step * k_3) @ last
        p = p + step / 6 * (k_1 + 2 * k_2 + 2 * k_3 + k_4)
    np.testing.assert_allclose(p, law(end), atol=1e-5)
    assert abs(law(start) - law(end)).max() > 0.05


# ---------------------------------------------------------------- the bound


def path_part(setting: str, x_1: tuple[int, ...], nodes: int) -> float:
    """E ∫ Σ_edits […] dκ/(1 − κ) with our law, our expected edits and our divergence."""
    source, total = source_of(setting), 0.0
    states = [x for x in golden.sequences(4) if len(x) <= 2 * len(x_1) + 1]
    for v, weight in golden.nodes_of_v(nodes):
        kappa = 1.0 - v * v
        logp = log_probs(source, x_1, states, kappa)
        xs = [x for x, each in zip(states, logp.tolist(), strict=True) if each > -np.inf]
        logp, pending = found(source, x_1, xs, kappa)
        batch = Batch.from_lists(map(list, xs))
        insert = torch.full((len(xs), batch.width + 1, 2), -torch.inf)
        token = torch.full((len(xs), batch.width, 3), -torch.inf)
        for row, x in enumerate(xs):
            for edit in golden.edits_of(x):
                rate = golden.model_rate(x, edit)
                log = float(np.log(rate * v * v)) if rate > 0.0 else -np.inf
                if edit.kind == "insert":
                    insert[row, edit.place, edit.token] = log
                else:
                    token[row, edit.place, 2 if edit.kind == "delete" else edit.token] = log
        divergence = edit_divergence(batch, pending, PendingEdits(insert, token))
        total += weight * 2.0 / v * float((logp.exp() * divergence).sum())
    return total


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_bound_is_the_golden_one(setting: str) -> None:
    for want in read(setting)["bounds"]:
        if len(want["x_1"]) <= 1 or want["x_1"] == [0, 0]:
            path = path_part(setting, tuple(want["x_1"]), nodes=16)
            assert path == pytest.approx(want["path"], abs=1e-3)


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_golden_bound_lies_above_by_the_golden_gap(setting: str) -> None:
    """The gap comes from the model's paths conditioned on their end: another integral."""
    for each in read(setting)["bounds"]:
        assert each["source"] + each["path"] - each["nll"] == pytest.approx(each["gap"], abs=2e-6)
        assert each["gap"] > 0.05


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_golden_files_are_what_the_script_writes(setting: str) -> None:
    stored, (blank, extra, _) = read(setting), golden.SETTINGS[setting]
    for moment in stored["times"]:
        for given in moment["given"]:
            if len(given["x_1"]) <= 1:
                fresh = golden.conditional(tuple(given["x_1"]), blank, extra, moment["kappa"])
                assert [golden.plain(x, state) for x, state in fresh.items()] == given["states"]
    length_law, _ = golden.BOUNDS[setting]
    fresh_bound = golden.bound((1,), blank, extra, length_law, nodes=16)
    (kept,) = (each for each in stored["bounds"] if each["x_1"] == [1])
    assert fresh_bound.path == pytest.approx(kept["path"], abs=1e-4)
    assert fresh_bound.nll == pytest.approx(kept["nll"], abs=1e-6)


# ---------------------------------------------------------------- drawing


def drawn(source: EditSource, x_1: list[int], kappa: float, rows: int) -> Counter[Any]:
    data = Batch.from_lists([x_1] * rows)
    path = source.path(data, generator=torch.Generator().manual_seed(3))
    x, _ = path.at(torch.full((rows,), kappa, dtype=torch.float64))
    return Counter((tuple(row),) for row in x.to_lists())


def test_draws_have_the_law_of_the_generator() -> None:
    blank, extra, _ = golden.SETTINGS["all-edits"]
    want = {(x,): state.prob for x, state in golden.conditional((0, 1), blank, extra, 0.45).items()}
    assert chi_square_p(drawn(EditSource(2, blank, extra), [0, 1], 0.45, 20_000), want) > 1e-3
    assert chi_square_p(drawn(EditSource(2, blank, 1.1 * extra), [0, 1], 0.45, 20_000), want) < 1e-6


def test_pending_edits_lead_to_the_data_and_average_to_the_expected_ones() -> None:
    source, rows = EditSource(2, 0.4, 0.3), 40_000
    data = Batch.from_lists([[0, 1]] * rows)
    kappa = torch.full((rows,), 0.3, dtype=torch.float64)
    x, pending = source.path(data, generator=torch.Generator().manual_seed(4)).at(kappa)
    shown = [0, 0, 1]
    same = torch.tensor([row == shown for row in x.to_lists()])
    mean = PendingEdits(pending.insert[same].mean(dim=0), pending.token[same].mean(dim=0))
    _, want = found(source, (0, 1), [shown], 0.3)
    assert same.sum() > 500
    assert torch.allclose(mean.insert[:4], want.insert[0], atol=0.06)
    assert torch.allclose(mean.token[:3], want.token[0], atol=0.06)


def test_at_the_end_the_data_stands_there_and_edits_go_one_by_one() -> None:
    source = EditSource(3, 0.5, 0.5)
    data = Batch.from_lists([[0, 1, 2, 2], [], [1]])
    path = source.path(data, generator=torch.Generator().manual_seed(0))
    end, none = path.at(torch.full((3,), 1.0, dtype=torch.float64))
    assert end.to_lists() == [[0, 1, 2, 2], [], [1]]
    assert not none.insert.any()
    times = sorted({0.0, *path.times.flatten().tolist()})
    lengths = [
        path.at(torch.full((3,), kappa + 1e-9, dtype=torch.float64))[0].lengths for kappa in times
    ]
    # Between two times of sites one site at most changes.
    assert all((after - before).abs().sum() <= 1 for before, after in pairwise(lengths))


def test_lengths_of_the_source() -> None:
    for setting in SETTINGS:
        blank, extra, _ = golden.SETTINGS[setting]
        law = EditSource(2, blank, extra).prob_length(2)
        for x_1 in [(), (1,), (0, 1)]:
            want = np.zeros(6)
            for x, state in golden.conditional(x_1, blank, extra, 0.0).items():
                want[len(x)] += state.prob
            np.testing.assert_allclose(law[len(x_1)].tolist(), want, atol=1e-12)


def test_long_sequences_of_noise_do_not_underflow() -> None:
    source = EditSource(500, 0.5, 0.5)
    generator = torch.Generator().manual_seed(0)
    data = Batch(torch.randint(500, (2, 300), generator=generator), torch.tensor([300, 250]))
    for kappa in (1e-4, 0.5, 1.0 - 1e-10):
        kappas = torch.full((2,), kappa, dtype=torch.float64)
        x, _ = source.path(data, generator=generator).at(kappas)
        edits = source.expected_edits(data, x, kappas)
        assert torch.allclose(edits.token.sum(dim=2)[x.mask], torch.tensor(1.0), atol=1e-4)
        present = edits.token[..., :-1].sum(dim=(1, 2)) + edits.insert.sum(dim=(1, 2))
        assert torch.allclose(present, data.lengths.float(), rtol=1e-4)


def test_bad_probabilities_and_impossible_pairs_are_named() -> None:
    with pytest.raises(ValueError, match=r"blank must lie in \[0, 1\], got 1\.5"):
        EditSource(2, 1.5, 0.0)
    with pytest.raises(ValueError, match="row 0: x cannot be made from x_1"):
        found(EditSource(2, 1.0, 0.0), (0,), [(1,)], 0.5)
