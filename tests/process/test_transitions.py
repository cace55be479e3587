"""Every transition against a dense matrix written down here."""

import json
from collections.abc import Callable, Iterable
from functools import partial, reduce
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from indel.process import (
    AbsorbingTransition,
    GaussianTransition,
    IdentityTransition,
    MatrixTransition,
    MixtureTransition,
    NeighborTransition,
    Transition,
    UniformTransition,
    checks,
    qwerty_neighbors,
)
from indel.process.measures import Measure, Point, Uniform
from indel.process.transitions import transition_from_dict

EXACT = {"atol": 1e-12, "rtol": 0}
KINDS = ("identity", "uniform", "absorbing", "gaussian", "neighbour", "matrix")
MIXTURES = KINDS[:3]
Pair = tuple[Transition, np.ndarray]


# ---------------------------------------------------------------- the same thing, written twice


def dense_mixture(size: int, keep: float, drawn: Callable[[int], float]) -> np.ndarray:
    return np.array(
        [[keep * (x == y) + (1 - keep) * drawn(y) for y in range(size)] for x in range(size)]
    )


def dense_gaussian(size: int, sigma: float, band: int | None) -> np.ndarray:
    matrix = np.zeros((size, size))
    for x, y in product(range(size), repeat=2):
        if band is None or abs(x - y) <= band:
            matrix[x, y] = np.exp(-((x - y) ** 2) / (2 * sigma**2))
    return matrix / matrix.sum(axis=1, keepdims=True)


def dense_neighbour(size: int, graph: dict[int, list[int]], keep: float) -> np.ndarray:
    matrix = np.zeros((size, size))
    for x in range(size):
        around = set(graph.get(x, []))
        matrix[x, x] = keep if around else 1.0
        for y in around:
            matrix[x, y] = (1 - keep) / len(around)
    return matrix


# Drawn as a recipe and made in the test: the type checker looks at a random entry of a list, and
# hypothesis wants no randomness but its own.
Recipe = tuple[Callable[[], Transition], np.ndarray]


@st.composite
def recipes(draw: st.DrawFn, size: int, kinds: tuple[str, ...] = KINDS) -> Recipe:
    keep = draw(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)))
    token = st.integers(0, size - 1)
    match draw(st.sampled_from(kinds)):
        case "identity":
            return partial(IdentityTransition, size), np.eye(size)
        case "uniform":
            dense = dense_mixture(size, keep, lambda y: 1 / size)
            return partial(UniformTransition, size, keep), dense
        case "absorbing":
            mask = draw(token)
            dense = dense_mixture(size, keep, lambda y: float(y == mask))
            return partial(AbsorbingTransition, size, keep, mask), dense
        case "gaussian":
            sigma, band = draw(st.floats(0.2, 5)), draw(st.none() | st.integers(0, size))
            return partial(GaussianTransition, size, sigma, band), dense_gaussian(size, sigma, band)
        case "neighbour":
            graph = {
                x: draw(st.lists(token.filter(lambda y, x=x: y != x), max_size=4))
                for x in draw(st.sets(token))
                if size > 1
            }
            dense = dense_neighbour(size, graph, keep)
            return partial(NeighborTransition, size, graph, keep), dense
        case _:
            weights = st.lists(st.sampled_from([0, 1, 2, 5]), min_size=size, max_size=size)
            rows = [draw(weights.filter(any)) for _ in range(size)]
            dense = np.array([[value / sum(row) for value in row] for row in rows])
            return partial(MatrixTransition, dense.tolist()), dense


@st.composite
def chains(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> list[Recipe]:
    size = draw(st.integers(1, 5))
    return draw(st.lists(recipes(size, kinds), min_size=1, max_size=4))


def compose(made: Iterable[Transition]) -> Transition:
    return reduce(lambda first, second: first.then(second), made)


def agrees(transition: Transition, dense: np.ndarray) -> None:
    """All that a transition offers, against the dense matrix."""
    size = len(dense)
    matrix = transition.matrix()
    assert transition.vocab_size == size
    assert matrix.dtype == torch.float64
    np.testing.assert_allclose(matrix, dense, **EXACT)
    np.testing.assert_allclose(matrix.sum(dim=1), 1, **EXACT)
    assert (matrix >= 0).all()
    weights = torch.linspace(0.1, 2, 6 * size, dtype=torch.float64).reshape(2, 3, size)
    np.testing.assert_allclose(transition.apply(weights), weights.numpy() @ dense, **EXACT)
    one = weights[0, 0]
    np.testing.assert_allclose(transition.apply(one), one.numpy() @ dense, **EXACT)
    measure = Measure.uniform(size, 0.25) + Measure.point(size, size - 1, 0.5)
    np.testing.assert_allclose(
        transition.push(measure).dense(), measure.dense().numpy() @ dense, **EXACT
    )
    tokens = torch.arange(2 * size).reshape(2, size) % size
    np.testing.assert_allclose(transition.likelihood(tokens), dense.T[tokens.numpy()], **EXACT)
    np.testing.assert_allclose(transition.likelihood(tokens[0, -1]), dense[:, -1], **EXACT)


@settings(deadline=None, max_examples=60)
@given(chains())
def test_products_are_the_products_of_the_matrices(chain: list[Recipe]) -> None:
    make, dense = chain[0]
    agrees(make(), dense)
    composed = compose(make() for make, _ in chain)
    agrees(composed, reduce(np.matmul, [dense for _, dense in chain]))


def examples(size: int) -> dict[str, Pair]:
    """One of each kind, none of which commutes with all others."""
    dense = [[(2 * x + y) % size + 1.0 for y in range(size)] for x in range(size)]
    matrix = np.array([[value / sum(row) for value in row] for row in dense])
    graph = {0: [1, size - 1], 1: [2]}
    return {
        "identity": (IdentityTransition(size), np.eye(size)),
        "uniform": (UniformTransition(size, 0.7), dense_mixture(size, 0.7, lambda y: 1 / size)),
        "absorbing": (
            AbsorbingTransition(size, 0.6, 2),
            dense_mixture(size, 0.6, lambda y: float(y == 2)),
        ),
        "gaussian": (GaussianTransition(size, 1.5, 2), dense_gaussian(size, 1.5, 2)),
        "neighbour": (NeighborTransition(size, graph, 0.3), dense_neighbour(size, graph, 0.3)),
        "matrix": (MatrixTransition(matrix.tolist()), matrix),
    }


@pytest.mark.parametrize("second", KINDS)
@pytest.mark.parametrize("first", KINDS)
def test_every_pair_composes(first: str, second: str) -> None:
    (before, dense_before), (after, dense_after) = examples(5)[first], examples(5)[second]
    agrees(before.then(after), dense_before @ dense_after)


def test_the_order_of_a_product_matters_in_these_tests() -> None:
    (a, _), (b, _) = examples(5)["absorbing"], examples(5)["matrix"]
    assert not torch.allclose(a.then(b).matrix(), b.then(a).matrix())


@settings(deadline=None, max_examples=30)
@given(chains(MIXTURES))
def test_records_are_exact(chain: list[Recipe]) -> None:
    composed = compose(make() for make, _ in chain)
    for transition in (chain[0][0](), composed):
        record = json.loads(json.dumps(transition.to_dict(), allow_nan=False))
        again = transition_from_dict(record)
        assert isinstance(again, MixtureTransition) == isinstance(transition, MixtureTransition)
        assert torch.equal(again.matrix(), transition.matrix())


def test_records_of_matrices_are_exact() -> None:
    for number in range(1, 30):
        gaussian = GaussianTransition(5, number / 7)
        for transition in (gaussian, gaussian.then(examples(5)["matrix"][0])):
            record = json.loads(json.dumps(transition.to_dict(), allow_nan=False))
            assert torch.equal(transition_from_dict(record).matrix(), transition.matrix())


def test_records_keep_the_last_digit_of_sums() -> None:
    for number in range(1, 60):
        keeps = (number / 61, 1 / 3, number / 67)
        composed = (
            AbsorbingTransition(5, keeps[0], 4)
            .then(AbsorbingTransition(5, keeps[1], 1))
            .then(UniformTransition(5, keeps[2]))
        )
        again = transition_from_dict(json.loads(json.dumps(composed.to_dict())))
        assert again.drawn.mass == composed.drawn.mass
        assert torch.equal(again.then(again).matrix(), composed.then(composed).matrix())


def test_a_record_of_what_was_read_is_the_same_record() -> None:
    record = AbsorbingTransition(4, 1.0, mask=2).to_dict()
    assert transition_from_dict(record).to_dict() == record


# ---------------------------------------------------------------- no K×K matrix

MILLION = 1_000_000


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(MIXTURES), min_size=2, max_size=8))
def test_mixtures_of_a_million_tokens_stay_a_few_numbers(kinds: list[str]) -> None:
    made: dict[str, Callable[[], MixtureTransition]] = {
        "identity": lambda: IdentityTransition(MILLION),
        "uniform": lambda: UniformTransition(MILLION, 0.9),
        "absorbing": lambda: AbsorbingTransition(MILLION, 0.8, MILLION - 1),
    }
    keeps = {"identity": 1.0, "uniform": 0.9, "absorbing": 0.8}
    composed = compose(made[kind]() for kind in kinds)
    assert isinstance(composed, MixtureTransition)
    assert composed.prob_keep == pytest.approx(np.prod([keeps[kind] for kind in kinds]), abs=1e-12)
    assert set(composed.drawn.weights) <= {Uniform(), Point(MILLION - 1)}
    assert composed.prob_keep + composed.drawn.mass == pytest.approx(1, abs=1e-12)
    pushed = composed.push(Measure.point(MILLION, 0))
    assert set(pushed.weights) <= {Uniform(), Point(0), Point(MILLION - 1)}
    assert pushed.weights[Point(0)] == pytest.approx(composed.prob_keep, abs=1e-12)
    assert pushed.mass == pytest.approx(1, abs=1e-12)
    with pytest.raises(ValueError, match=r"matrix\(\) .*1000000×1000000 .* limited to 4096"):
        composed.matrix()


@pytest.mark.parametrize("kind", MIXTURES)
def test_a_large_vocabulary_can_be_applied_and_observed(kind: str) -> None:
    size = 50_000
    transition: MixtureTransition = {
        "identity": IdentityTransition(size),
        "uniform": UniformTransition(size, 0.75),
        "absorbing": AbsorbingTransition(size, 0.75, 7),
    }[kind]
    keep = transition.prob_keep
    drawn = {"identity": 0.0, "uniform": 0.25 / size, "absorbing": 0.25}[kind]
    prob = torch.zeros(size, dtype=torch.float64)
    prob[3] = 1.0
    moved = transition.apply(prob)
    assert moved.sum().item() == pytest.approx(1, abs=1e-12)
    assert moved[7].item() == pytest.approx(drawn, abs=1e-15)
    column = transition.likelihood(torch.tensor([7]))
    assert column.shape == (1, size)
    assert column[0, 7].item() == pytest.approx(keep + drawn, abs=1e-15)
    assert column[0, 8].item() == pytest.approx(drawn, abs=1e-15)


@settings(deadline=None, max_examples=30)
@given(chains(MIXTURES))
def test_mixtures_stay_mixtures(chain: list[Recipe]) -> None:
    composed = compose(make() for make, _ in chain)
    assert isinstance(composed, MixtureTransition)
    again = transition_from_dict(json.loads(json.dumps(composed.to_dict())))
    assert isinstance(again.then(composed), MixtureTransition)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: GaussianTransition(4097, 1.0), "GaussianTransition"),
        (lambda: NeighborTransition(4097, {}, 0.5), "NeighborTransition"),
        (
            lambda: MatrixTransition(torch.ones(1, 1, dtype=torch.float64).expand(4097, 4097)),
            "MatrixTransition",
        ),
        (lambda: IdentityTransition(4097).matrix(), r"IdentityTransition.matrix\(\)"),
        (lambda: UniformTransition(4097, 0.5).matrix(), r"UniformTransition.matrix\(\)"),
        (lambda: AbsorbingTransition(4097, 0.5, 0).matrix(), r"AbsorbingTransition.matrix\(\)"),
    ],
)
def test_dense_matrices_are_refused_above_the_limit(call: Callable, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} .*4097×4097 .*limited to 4096 tokens"):
        call()


def test_the_limit_itself_is_allowed() -> None:
    checks.dense_size("matrix", 4096)
    assert checks.MAX_DENSE == 4096


# ---------------------------------------------------------------- each kind


@pytest.mark.parametrize("band", [None, 0, 1, 3, 99])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 40.0])
def test_gaussian_is_normalised_by_row_and_zero_outside_its_band(
    sigma: float, band: int | None
) -> None:
    size = 6
    matrix = GaussianTransition(size, sigma, band).matrix()
    np.testing.assert_allclose(matrix.sum(dim=1), 1, **EXACT)
    np.testing.assert_allclose(matrix, dense_gaussian(size, sigma, band), **EXACT)
    position = torch.arange(size)
    distance = (position[:, None] - position).abs()
    outside = distance > (size if band is None else band)
    assert not matrix[outside].any()
    # Within a row the ratio depends on the distances alone; the edges have fewer tokens to share.
    centre = torch.exp(-(distance.double() ** 2) / (2 * sigma**2)).masked_fill(outside, 0)
    np.testing.assert_allclose(matrix / matrix.diagonal()[:, None], centre, **EXACT)


def test_a_narrow_gaussian_stays() -> None:
    assert torch.equal(GaussianTransition(4, 1e-300).matrix(), torch.eye(4, dtype=torch.float64))


def test_qwerty_neighbors_touch_each_other() -> None:
    graph = qwerty_neighbors()
    assert sorted(graph) == [chr(code) for code in range(ord("a"), ord("z") + 1)]
    for letter, around in graph.items():
        assert letter not in around
        assert around == "".join(sorted(set(around)))
        assert 2 <= len(around) <= 6
        for other in around:
            assert letter in graph[other], f"{letter} touches {other} but not the other way"
    # Written down from a keyboard, not from the code.
    by_hand = {"q": "aw", "a": "qswz", "g": "bfhtvy", "p": "lo", "m": "jkn", "z": "asx"}
    assert {letter: graph[letter] for letter in by_hand} == by_hand


def test_qwerty_moves_letters_only() -> None:
    characters = "qwa -Q1z"
    matrix = NeighborTransition.qwerty(characters, 0.25).matrix()
    graph = {0: [1, 2], 1: [0, 2], 2: [0, 1, 7], 7: [2]}
    np.testing.assert_allclose(matrix, dense_neighbour(8, graph, 0.25), **EXACT)
    for other in " -Q1":
        place = characters.index(other)
        assert matrix[place, place] == 1.0
        assert matrix[:, place].sum() == 1.0


def test_a_letter_whose_neighbours_are_not_in_the_vocabulary_stays() -> None:
    matrix = NeighborTransition.qwerty("qmx", 0.25).matrix()
    assert torch.equal(matrix, torch.eye(3, dtype=torch.float64))


def test_a_neighbour_named_twice_counts_once() -> None:
    twice = NeighborTransition(3, {0: [1, 1, 2]}, 0.5).matrix()
    assert twice[0].tolist() == [0.5, 0.25, 0.25]


def test_qwerty_refuses_a_character_that_comes_twice() -> None:
    with pytest.raises(ValueError, match="'a'"):
        NeighborTransition.qwerty("aas", 0.5)


def test_matrix_gives_a_copy() -> None:
    for transition, dense in examples(3).values():
        transition.matrix()[0] = 7.0
        np.testing.assert_allclose(transition.matrix(), dense, **EXACT)


def test_a_transition_does_not_change_with_the_tensor_it_was_made_from() -> None:
    values = torch.eye(2, dtype=torch.float64)
    transition = MatrixTransition(values)
    values[0, 0] = 7.0
    assert torch.equal(transition.matrix(), torch.eye(2, dtype=torch.float64))


def test_rows_within_the_tolerance_stay_so_however_often_they_are_composed() -> None:
    nearly = MatrixTransition([[0.5, 0.5 + 9e-7], [0.25, 0.75]])
    composed = compose([nearly] * 100)
    np.testing.assert_allclose(composed.matrix().sum(dim=1), 1, atol=1e-12)


def test_float32_probabilities_are_applied_in_float32() -> None:
    for transition, dense in examples(4).values():
        prob = torch.tensor([0.1, 0.2, 0.3, 0.4])
        moved = transition.apply(prob)
        assert moved.dtype == torch.float32
        np.testing.assert_allclose(moved, prob.double() @ torch.tensor(dense), atol=1e-6)
