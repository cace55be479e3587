"""Stacked tables of all times: mixtures and dense matrices say the same."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

from indel.process import (
    AbsorbingTransition,
    GaussianTransition,
    IdentityTransition,
    MatrixTransition,
    MixtureTransition,
    Transition,
    UniformTransition,
    stacks,
)
from indel.process.measures import Measure
from indel.process.stacks import (
    Basis,
    Kernels,
    Measures,
    stack_measures,
    stack_transitions,
)
from support.frequencies import chi_square_p

EXACT = {"atol": 1e-12, "rtol": 0}
LARGEST = 1 - 2.0**-53  # below 1 in float64
SIZE = 4

# What a measure is made of: the mass drawn uniformly, on one token, and by given weights.
Parts = tuple[float, tuple[tuple[int, float], ...], tuple[tuple[int, ...], float]]
MASSES = st.one_of(st.just(0.0), st.floats(0.01, 2.0))


@st.composite
def parts(draw: st.DrawFn) -> Parts:
    points = draw(st.lists(st.tuples(st.integers(0, SIZE - 1), MASSES), max_size=2))
    ratios = st.lists(st.sampled_from([0, 1, 3]), min_size=SIZE, max_size=SIZE).filter(any)
    return draw(MASSES), tuple(points), (tuple(draw(ratios)), draw(MASSES))


def measure_of(recipe: Parts) -> tuple[Measure, np.ndarray]:
    """The measure, and its weights written down token by token."""
    uniform, points, (ratios, given_mass) = recipe
    measure = Measure.uniform(SIZE, uniform)
    dense = np.full(SIZE, uniform / SIZE)
    for token, mass in points:
        measure = measure + Measure.point(SIZE, token, mass)
        dense[token] += mass
    share = np.array(ratios) / sum(ratios)
    measure = measure + Measure.given(torch.tensor(share)) * given_mass
    return measure, dense + given_mass * share


def both(recipes: Sequence[Parts]) -> tuple[list[Measures], np.ndarray]:
    measures, dense = zip(*map(measure_of, recipes), strict=True)
    # Parts that occur at other times only, or nowhere, have weight 0.
    basis = Basis.of([*measures, Measure.point(SIZE, 1)], SIZE)
    return [stack_measures(measures, form) for form in (basis, None)], np.stack(dense)


STACKS = st.lists(parts(), min_size=1, max_size=4)


@settings(deadline=None, max_examples=40)
@given(STACKS)
def test_both_forms_of_measures_agree_with_the_weights(recipes: list[Parts]) -> None:
    forms, dense = both(recipes)
    times = torch.arange(len(dense))
    tokens = torch.arange(SIZE)
    for form in forms:
        np.testing.assert_allclose(form.mass, dense.sum(axis=1), **EXACT)
        np.testing.assert_allclose(form.vectors(times), dense, **EXACT)
        np.testing.assert_allclose(form.prob(times[:, None], tokens), dense, **EXACT)
        # A time or a token alone, and a time for each of two rows of tokens.
        np.testing.assert_allclose(form.prob(times[0], tokens), dense[0], **EXACT)
        np.testing.assert_allclose(form.prob(times, tokens[1]), dense[:, 1], **EXACT)
        some = torch.tensor([[3, 0, 1], [2, 2, 3]])
        at = torch.tensor([[len(dense) - 1], [0]])
        np.testing.assert_allclose(form.prob(at, some), dense[at.numpy(), some.numpy()], **EXACT)
        np.testing.assert_allclose(form.vectors(at), dense[at.numpy()], **EXACT)
        np.testing.assert_allclose(form.vectors(times[-1]), dense[-1], **EXACT)


@settings(deadline=None, max_examples=40)
@given(STACKS, st.lists(st.floats(0, LARGEST), min_size=1, max_size=8))
def test_samples_of_a_measure_never_have_weight_zero(recipes, drawn: list[float]) -> None:
    forms, dense = both(recipes)
    times = torch.from_numpy(np.flatnonzero(dense.sum(axis=1) > 0))
    noise = torch.tensor([0.0, *drawn], dtype=torch.float64).expand(len(times), -1)
    for form in forms:
        tokens = form.sample(times[:, None], noise)
        assert tokens.shape == noise.shape
        assert (dense[times.numpy()[:, None], tokens.numpy()] > 0).all()


@pytest.mark.parametrize("mixture", [True, False])
def test_nor_with_the_largest_noise(mixture: bool) -> None:
    """Shares of a sum do not always sum to 1: what is above the last one belongs to nobody."""
    tenths = [number / 30 for number in range(1, 30)]
    measures = [
        Measure.point(SIZE, 0, a) + Measure.point(SIZE, 1, b) for a in tenths for b in tenths
    ]
    measures.append(Measure.point(SIZE, 3))
    stack = stack_measures(measures, Basis.of(measures, SIZE) if mixture else None)
    times = torch.arange(len(measures) - 1)
    noise = torch.tensor([0.0, LARGEST], dtype=torch.float64).expand(len(times), -1)
    assert set(stack.sample(times[:, None], noise).flatten().tolist()) == {0, 1}


@settings(deadline=None, max_examples=15)
@given(parts().filter(lambda recipe: recipe[0] + recipe[2][1] > 0))
def test_a_grid_of_noise_gives_each_token_its_share(recipe: Parts) -> None:
    """Each part claims one stretch of [0, 1), so counts are off by a few grid points at most."""
    forms, dense = both([recipe, recipe])
    count = 2000
    noise = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    for form in forms:
        tokens = form.sample(torch.ones(count, dtype=torch.int64), noise)
        found = np.bincount(tokens, minlength=SIZE) / count
        np.testing.assert_allclose(found, dense[1] / dense[1].sum(), atol=8 / count)


MIXED: list[Parts] = [
    (0.0, (), ((1, 0, 3, 0), 0.7)),
    (0.5, ((1, 0.25), (3, 0.5)), ((0, 1, 1, 0), 0.4)),
    (0.0, ((2, 0.3), (0, 0.1)), ((1, 1, 1, 1), 0.0)),
    (1.0, (), ((1, 1, 1, 1), 0.0)),
]


@pytest.mark.parametrize("time", range(len(MIXED)))
def test_measures_are_sampled_in_proportion(time: int) -> None:
    forms, dense = both(MIXED)
    probs = dict(enumerate(dense[time] / dense[time].sum()))
    for form in forms:
        noise = torch.rand(
            40, 500, generator=torch.Generator().manual_seed(time), dtype=torch.float64
        )
        tokens = form.sample(torch.full((40, 1), time), noise)
        assert tokens.shape == noise.shape
        assert chi_square_p(Counter(tokens.flatten().tolist()), probs) > 1e-3


def test_a_uniform_stack_needs_no_parts() -> None:
    """The form of the paper's own schedule: scalars only, whatever the vocabulary."""
    size = 50_000
    measures = [Measure.uniform(size), Measure.zero(size)]
    stack = stack_measures(measures, Basis.of(measures, size))
    at = torch.tensor([0])
    assert stack.sample(at, torch.tensor([0.0, 0.5, LARGEST], dtype=torch.float64)).tolist() == [
        0,
        size // 2,
        size - 1,
    ]
    assert stack.prob(at, torch.tensor([7])).item() == pytest.approx(1 / size, rel=1e-12)
    assert stack.mass.tolist() == [1.0, 0.0]


def test_a_basis_is_every_part_once() -> None:
    given = torch.tensor([0.5, 0.0, 0.5, 0.0], dtype=torch.float64)
    measures = [
        Measure.point(SIZE, 3) + Measure.given(given),
        Measure.uniform(SIZE) + Measure.point(SIZE, 0),
        Measure.given(given.clone()) + Measure.point(SIZE, 3, 0.5),
    ]
    basis = Basis.of(measures, SIZE)
    assert (basis.vocab_size, basis.points, len(basis.given)) == (SIZE, (0, 3), 1)
    tokens = torch.tensor([[0, 1], [2, 3]])
    densities = basis.densities(tokens)
    assert densities[..., 0].tolist() == [[0.25, 0.25], [0.25, 0.25]]
    assert densities[..., 1].tolist() == [[1, 0], [0, 0]]
    assert densities[..., 2].tolist() == [[0, 0], [0, 1]]
    assert densities[..., 3].tolist() == [[0.5, 0], [0.5, 0]]
    weights = stack_measures(measures, basis).weights
    dense = np.stack([measure.dense().numpy() for measure in measures])
    np.testing.assert_allclose(weights @ basis.densities(torch.arange(SIZE)).T, dense, **EXACT)


def test_a_basis_without_given_parts_can_be_cast() -> None:
    basis = Basis(SIZE, (1,), ()).to(torch.device("cpu"), torch.float32)
    assert basis.densities(torch.arange(SIZE)).dtype == torch.float32


# ---------------------------------------------------------------- transitions

CHAIN: list[MixtureTransition] = [
    IdentityTransition(SIZE),
    UniformTransition(SIZE, 0.6),
    AbsorbingTransition(SIZE, 0.5, 2),
    UniformTransition(SIZE, 0.0),
    AbsorbingTransition(SIZE, 1.0, 1),
    MixtureTransition(0.25, Measure.given(torch.tensor([0.25, 0.0, 0.5, 0.0]).double())),
]
CHAIN.append(CHAIN[1].then(CHAIN[2]))  # type: ignore[arg-type]
CHAIN.append(CHAIN[5].then(CHAIN[6]))  # type: ignore[arg-type]
MATRICES = np.stack([each.matrix().numpy() for each in CHAIN])


def kernels() -> list[Kernels]:
    basis = Basis.of([each.drawn for each in CHAIN], SIZE)
    return [stack_transitions(CHAIN, form) for form in (basis, None)]


@pytest.mark.parametrize("form", kernels(), ids=["mixture", "dense"])
def test_both_forms_of_transitions_agree_with_the_matrices(form: Kernels) -> None:
    times = torch.arange(len(CHAIN))
    tokens = torch.arange(SIZE)
    every = form.prob(times[:, None, None], tokens[:, None], tokens)
    np.testing.assert_allclose(every, MATRICES, **EXACT)
    np.testing.assert_allclose(form.prob(times, tokens[1], tokens[2]), MATRICES[:, 1, 2], **EXACT)
    columns = form.columns(times[:, None], tokens)
    np.testing.assert_allclose(columns, MATRICES.transpose(0, 2, 1), **EXACT)
    np.testing.assert_allclose(form.columns(times[1], tokens[3]), MATRICES[1, :, 3], **EXACT)
    some = torch.tensor([[3, 0], [1, 1], [2, 2]])
    at = torch.tensor([[1], [5], [6]])
    np.testing.assert_allclose(
        form.columns(at, some), MATRICES.transpose(0, 2, 1)[at.numpy(), some.numpy()], **EXACT
    )
    weights = torch.linspace(0, 3, len(CHAIN) * 2 * SIZE, dtype=torch.float64)
    weights = weights.reshape(len(CHAIN), 2, SIZE)
    np.testing.assert_allclose(form.apply(times, weights), weights.numpy() @ MATRICES, **EXACT)
    backwards = times.flip(0)
    np.testing.assert_allclose(
        form.apply(backwards, weights), weights.numpy() @ MATRICES[::-1], **EXACT
    )


@pytest.mark.parametrize("form", kernels(), ids=["mixture", "dense"])
def test_logarithms_are_applied_as_weights_are(form: Kernels) -> None:
    times = torch.arange(len(CHAIN))
    weights = torch.linspace(0, 3, len(CHAIN) * 2 * SIZE, dtype=torch.float64)
    weights = weights.reshape(len(CHAIN), 2, SIZE)
    weights[2, 0] = 0.0
    weights[3, 1, 1:] = 0.0
    expected = weights.numpy() @ MATRICES
    logp = weights.log().requires_grad_()
    moved = form.log_apply(times, logp)
    np.testing.assert_allclose(moved.detach().exp(), expected, **EXACT)
    assert torch.equal(moved.detach() == -torch.inf, torch.from_numpy(expected) == 0)
    # What is impossible has no gradient, and what is possible has a finite one.
    torch.where(moved > -torch.inf, moved, 0.0).sum().backward()
    assert torch.isfinite(logp.grad).all()
    # A common factor far below the smallest float comes out again.
    tiny = form.log_apply(times, weights.log() - 2000.0)
    np.testing.assert_allclose((tiny + 2000.0).exp(), expected, atol=1e-9)


@pytest.mark.parametrize("form", kernels(), ids=["mixture", "dense"])
def test_transitions_are_sampled_in_proportion(form: Kernels) -> None:
    generator = torch.Generator().manual_seed(5)
    noise = torch.rand(len(CHAIN), SIZE, 4000, generator=generator, dtype=torch.float64)
    times = torch.arange(len(CHAIN))[:, None, None]
    tokens = form.sample(times, torch.arange(SIZE)[:, None], noise)
    assert tokens.shape == noise.shape
    p_values = [
        chi_square_p(Counter(tokens[time, x].tolist()), dict(enumerate(MATRICES[time, x])))
        for time in range(len(CHAIN))
        for x in range(SIZE)
        if MATRICES[time, x].max() < 1
    ]
    assert len(p_values) > len(CHAIN)
    assert min(p_values) > 1e-3 / len(p_values), p_values


@pytest.mark.parametrize("form", kernels(), ids=["mixture", "dense"])
def test_what_a_token_becomes_never_has_weight_zero(form: Kernels) -> None:
    noise = torch.tensor([0.0, 2.0**-53, 0.25, 0.5, LARGEST], dtype=torch.float64)
    times, tokens = torch.arange(len(CHAIN))[:, None, None], torch.arange(SIZE)[:, None]
    found = form.sample(times, tokens, noise.expand(len(CHAIN), SIZE, -1))
    weights = MATRICES[times.numpy(), tokens.numpy(), found.numpy()]
    assert (weights > 0).all()


@pytest.mark.parametrize("form", kernels(), ids=["mixture", "dense"])
def test_one_time_for_each_row_broadcasts_over_its_tokens(form: Kernels) -> None:
    generator = torch.Generator().manual_seed(6)
    at = torch.tensor([[6], [1], [2]])
    tokens = torch.randint(SIZE, (3, 7), generator=generator)
    noise = torch.rand(3, 7, generator=generator, dtype=torch.float64)
    together = form.sample(at, tokens, noise)
    for row, time in enumerate(at[:, 0].tolist()):
        alone = form.sample(torch.full((7,), time), tokens[row], noise[row])
        assert torch.equal(together[row], alone)


def test_forms_can_be_cast() -> None:
    device = torch.device("cpu")
    at, tokens = torch.arange(len(CHAIN))[:, None, None], torch.arange(SIZE)
    for form in kernels():
        prob = form.to(device, torch.float32).prob(at, tokens[:, None], tokens)
        assert prob.dtype == torch.float32
        np.testing.assert_allclose(prob, MATRICES, atol=1e-6)
    for form in both(MIXED)[0]:
        cast = form.to(device, torch.float32)
        assert cast.vectors(at[0]).dtype == cast.mass.dtype == torch.float32
        np.testing.assert_allclose(cast.mass, form.mass, atol=1e-6)


def test_a_stack_that_would_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    chain: list[Transition] = [GaussianTransition(10, 1.0)] * 3
    monkeypatch.setattr(stacks, "MAX_STACK_BYTES", 2400)
    stack_transitions(chain, None)
    with pytest.raises(ValueError, match=r"4 dense transitions over 10 tokens need .* GiB"):
        stack_transitions([*chain, MatrixTransition(torch.eye(10))], None)


def test_a_given_distribution_is_searched_in_place() -> None:
    """One running sum serves for all entries: 2 000 draws of 50 000 tokens are no 800 MB."""
    weights = torch.ones(50_000, dtype=torch.float64) / 50_000
    measure = Measure.given(weights)
    stack = stack_measures([measure], Basis.of([measure], len(weights)))
    noise = torch.rand(2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with Largest() as largest:
        tokens = stack.sample(torch.zeros(2, 1, dtype=torch.int64), noise)
    assert torch.equal(tokens, (noise * 50_000).long())
    assert largest.numel <= len(weights)


class Largest(TorchFunctionMode):
    """Watches the size of all tensors that are made."""

    numel = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        # A view stores nothing, so an expanded one is not large.
        if isinstance(result, torch.Tensor):
            stored = result.untyped_storage().nbytes() // result.element_size()
            self.numel = max(self.numel, stored)
        return result
