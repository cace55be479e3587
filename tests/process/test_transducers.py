"""The generic machines against direct computation: exact fractions, symbols, brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest
import sympy
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from indel.process.composition import compose
from indel.process.edit_transducers import (
    derive_jump,
    identity_transducer,
    jump_parameters,
    jump_transducer,
    step_transducer,
)
from indel.process.transducers import EPSILON, Arc, Transducer, format_label, geometric_series
from support.transducer_arcs import (
    AA,
    AB,
    BB,
    MIDDLE_TAPE,
    arcs_of,
    expected_jump,
    figure5_arcs,
    figure6_arcs,
    start_parameters,
)

# ---------------------------------------------------------------- exact numeric processes


def distribution(size: int) -> st.SearchStrategy[list[Fraction]]:
    """Fractions that sum to 1, zeros included."""
    counts = st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any)
    return counts.map(lambda ns: [Fraction(n, sum(ns)) for n in ns])


def chance(*, below_one: bool = False) -> st.SearchStrategy[Fraction]:
    return st.integers(0, 7 if below_one else 8).map(lambda n: Fraction(n, 8))


@st.composite
def steps(draw: st.DrawFn, vocab_size: int) -> tuple[Fraction, np.ndarray]:
    """(α, Q) with 0 ≤ α < 1 and 0 ≤ d ≤ 1 for each token, both ends included."""
    matrix = np.full((vocab_size + 2, vocab_size + 2), Fraction(0), dtype=object)
    for x in range(vocab_size + 1):
        deleted = draw(chance())
        matrix[x, :vocab_size] = [(1 - deleted) * p for p in draw(distribution(vocab_size))]
        matrix[x, -1] = deleted
    return draw(chance(below_one=True)), matrix


@st.composite
def chains(draw: st.DrawFn, longest: int = 3) -> tuple[int, list[tuple[Fraction, np.ndarray]]]:
    vocab_size = draw(st.integers(1, 3))
    return vocab_size, draw(st.lists(steps(vocab_size), min_size=1, max_size=longest))


def plain_step(insert: Fraction, delete: Fraction) -> tuple[Fraction, np.ndarray]:
    """Two tokens that are only kept or deleted."""
    matrix = np.full((4, 4), Fraction(0), dtype=object)
    matrix[0, 0] = matrix[1, 1] = matrix[2, 0] = 1 - delete
    matrix[:3, 3] = delete
    return insert, matrix


NEVER, HALF, ALWAYS = Fraction(0), Fraction(1, 2), Fraction(1)
# Nothing happens, only inserts, all is deleted (the last step of the paper), and on from there.
EDGE_CASES = (
    2,
    [
        plain_step(NEVER, NEVER),
        plain_step(HALF, NEVER),
        plain_step(NEVER, ALWAYS),
        plain_step(HALF, HALF),
    ],
)


def run(chain: list[tuple[Fraction, np.ndarray]], vocab_size: int) -> tuple[Any, Any, Any]:
    parameters = start_parameters(vocab_size)
    for insert, matrix in chain:
        parameters = expected_jump(parameters, insert, matrix)
    return parameters


@example((2, EDGE_CASES[1][:1]))
@example((2, EDGE_CASES[1][:3]))
@example(EDGE_CASES)
@given(chains())
@settings(max_examples=30, deadline=None)
def test_composition_is_figure_5(process: tuple[int, Any]) -> None:
    vocab_size, chain = process
    jump = run(chain[:-1], vocab_size)
    machine = compose(jump_transducer(*jump), step_transducer(*chain[-1]))
    assert machine.states == (AA, AB, BB)
    assert (machine.initial, machine.accepting) == (AA, {BB})
    assert machine.tape_sizes == (vocab_size, vocab_size + 2, vocab_size + 2)
    assert arcs_of(machine) == figure5_arcs(jump, *chain[-1])


@example((2, EDGE_CASES[1][:1]))
@example((2, EDGE_CASES[1][:3]))
@example(EDGE_CASES)
@given(chains())
@settings(max_examples=30, deadline=None)
def test_marginalising_the_middle_tape_is_figure_6(process: tuple[int, Any]) -> None:
    vocab_size, chain = process
    jump = run(chain[:-1], vocab_size)
    machine = compose(jump_transducer(*jump), step_transducer(*chain[-1])).marginalize(MIDDLE_TAPE)
    assert machine.states == (AA, AB, BB)
    assert machine.tape_sizes == (vocab_size, vocab_size + 2)
    assert arcs_of(machine) == figure6_arcs(jump, *chain[-1])


@pytest.mark.parametrize("vocab_size", [1, 3])
def test_eq4_identity_copies_and_does_nothing_else(vocab_size: int) -> None:
    machine = identity_transducer(vocab_size)
    alpha, beta, replace = jump_parameters(machine)
    assert alpha == (0,) * (vocab_size + 2)
    assert beta == (0,) * vocab_size
    assert replace == tuple(
        tuple(np.eye(vocab_size, vocab_size + 2, dtype=int)[x]) for x in range(vocab_size)
    )
    sequences = [s for n in range(3) for s in product(range(vocab_size), repeat=n)]
    for x, z in product(sequences, sequences):
        assert machine.probability(x, z) == (x == z)


@example(EDGE_CASES)
@given(chains())
@settings(max_examples=40, deadline=None)
def test_eq10_eq11_eq12_are_what_elimination_gives(process: tuple[int, Any]) -> None:
    vocab_size, chain = process
    machine, expected = identity_transducer(vocab_size), start_parameters(vocab_size)
    for step in chain:
        machine, expected = (
            derive_jump(machine, step_transducer(*step)),
            expected_jump(expected, *step),
        )
        alpha, beta, replace = jump_parameters(machine)
        assert list(alpha) == list(expected[0])
        assert list(beta) == list(expected[1])
        assert [list(row) for row in replace] == expected[2].tolist()
        assert arcs_of(machine) == arcs_of(jump_transducer(*expected)), "1 − Σ ᾱ included"


@given(chains())
@settings(max_examples=30, deadline=None)
def test_derived_jump_is_normalised(process: tuple[int, Any]) -> None:
    vocab_size, chain = process
    machine = identity_transducer(vocab_size)
    for step in chain:
        machine = derive_jump(machine, step_transducer(*step))
    alpha, beta, replace = jump_parameters(machine)
    assert sum(alpha) + machine.weight("A", "B", (EPSILON, EPSILON)) == 1
    assert all(deleted + sum(row) == 1 for deleted, row in zip(beta, replace, strict=True))


@given(chains(longest=2))
@settings(max_examples=15, deadline=None)
def test_floats_and_tensors_agree_with_fractions(process: tuple[int, Any]) -> None:
    vocab_size, chain = process
    machine = identity_transducer(vocab_size)
    for insert, matrix in chain:
        tensor = torch.tensor(matrix.astype(float), dtype=torch.float64)
        machine = derive_jump(machine, step_transducer(torch.tensor(float(insert)), tensor))
    for derived, exact in zip(jump_parameters(machine), run(chain, vocab_size), strict=True):
        np.testing.assert_allclose(np.array(derived, dtype=float), exact.astype(float), atol=1e-12)
    assert all(isinstance(arc.weight, float | int) for arc in machine.arcs)


# ---------------------------------------------------------------- probabilities of sequences


def short(size: int, longest: int) -> list[tuple[int, ...]]:
    return [s for n in range(longest + 1) for s in product(range(size), repeat=n)]


@given(steps(2))
@settings(max_examples=8, deadline=None)
def test_probability_of_a_step_is_the_product_over_positions(step: Any) -> None:
    insert, matrix = step
    machine = step_transducer(insert, matrix)
    for before, after in product(short(4, 2), short(4, 2)):
        read = [x for x in before if x != 3]
        written = [z for z in after if z != 2]
        expected = insert ** after.count(2) * (1 - insert) ** (len(written) + 1)
        for x, z in zip(read, written, strict=False):
            expected *= matrix[x, z]
        expected *= len(read) == len(written)
        assert machine.probability(before, after) == expected


@given(steps(1), steps(1), steps(1))
@settings(max_examples=6, deadline=None)
def test_composed_probability_is_the_product(first: Any, second: Any, third: Any) -> None:
    jump = jump_transducer(*run([first, second], 1))
    step = step_transducer(*third)
    composed = compose(jump, step)
    for x, y, z in product([(), (0, 0)], short(3, 2), [(), (0,), (2,), (1, 0)]):
        expected = jump.probability(x, y) * step.probability(y, z)
        assert composed.probability(x, y, z) == expected


def middles(non_del: int, deletions: int) -> list[tuple[int, ...]]:
    """All x_{t−1} over {0, INS, DEL} with this many DEL and other tokens."""
    every = product(range(3), repeat=non_del + deletions)
    return [y for y in every if y.count(2) == deletions]


@pytest.mark.parametrize(("x", "z"), [((), (2,)), ((0,), (0,)), ((0, 0), (1,)), ((0,), (1, 2, 1))])
def test_marginal_is_the_sum_over_all_middle_sequences(x: Any, z: Any) -> None:
    """With a proven cut: what is left out is bounded, not hoped to be small.

    x_{t−1} must hold exactly n = #(z ≠ INS) tokens besides DEL, or q(x_t|x_{t−1}) = 0. Of more than
    M DELs at least M+1−|x| are inserted, each with probability l = ᾱ[DEL], in one of at most
    r = |x|+n+1 runs. All other choices of the jump together have probability at most 1,
    so the sum over |x_{t−1}| > n+M is at most Σ_{m>M−|x|} C(m+r−1, r−1) lᵐ.
    """
    half, eighth = Fraction(1, 2), Fraction(1, 8)
    matrix = [[half, 0, half], [1 - eighth, 0, eighth], [0, 0, 0]]
    jump_numbers = run([(eighth, np.array(matrix, dtype=object))] * 2, 1)
    jump, step = jump_transducer(*jump_numbers), step_transducer(eighth, matrix)
    composed = compose(jump, step)
    most, non_del = 5 + len(x), sum(token != 1 for token in z)
    total = sum(composed.probability(x, y, z) for m in range(most + 1) for y in middles(non_del, m))
    loop, runs = float(jump_numbers[0][-1]), len(x) + non_del + 1
    bound = sum(comb(m + runs - 1, runs - 1) * loop**m for m in range(most - len(x) + 1, 200))
    assert bound < 1e-6
    for machine in (composed.marginalize(MIDDLE_TAPE), derive_jump(jump, step)):
        assert 0 < machine.probability(x, z) - total <= bound
    for y in short(3, 2):
        if sum(token != 2 for token in y) != non_del:
            assert composed.probability(x, y, z) == 0


@given(chains(longest=2))
@settings(max_examples=8, deadline=None)
def test_elimination_keeps_every_probability(process: tuple[int, Any]) -> None:
    vocab_size, chain = process
    jump = jump_transducer(*run(chain[:-1], vocab_size))
    step = step_transducer(*chain[-1])
    marginal = compose(jump, step).marginalize(MIDDLE_TAPE)
    derived = derive_jump(jump, step)
    for x, z in product(short(vocab_size, 1), short(vocab_size + 2, 2)):
        assert derived.probability(x, z) == marginal.probability(x, z)


STATE, ENTRY = st.sampled_from("pq"), st.sampled_from([EPSILON, 0, 1])
# Any labels, ε cycles included. Plain data: building a machine here would draw random numbers,
# for beartype looks at random items of long tuples.
ANY_MACHINE = st.tuples(
    st.dictionaries(
        st.tuples(STATE, STATE, st.tuples(ENTRY, ENTRY)), st.integers(1, 3), max_size=10
    ),
    st.sets(STATE, min_size=1),
)


def built(description: tuple[dict[Any, int], set[str]]) -> Transducer:
    """Weights so small that all sums over ε cycles converge, and a way from p to q."""
    weights, accepting = description
    arcs = [Arc(*key, Fraction(weight, 16)) for key, weight in weights.items()]
    through = Arc("p", "q", (EPSILON, EPSILON), Fraction(1, 16))
    return Transducer("p", frozenset(accepting), (*arcs, through), (2, 2))


@given(ANY_MACHINE, ANY_MACHINE)
@settings(max_examples=25, deadline=None)
def test_composition_counts_each_pair_of_paths_once(one: Any, other: Any) -> None:
    first, second = built(one), built(other)
    composed = compose(first, second)
    for x, y, z in product(short(2, 1), [(), (0,), (1, 0)], short(2, 1)):
        expected = first.probability(x, y) * second.probability(y, z)
        assert composed.probability(x, y, z) == expected


def test_states_of_a_composition_stay_apart_when_the_filter_needs_it() -> None:
    loop = Arc("s", "s", (EPSILON, EPSILON), Fraction(1, 4))
    copy = Arc("s", "s", (0, 0), Fraction(1, 2))
    machine = Transducer("s", frozenset("s"), (loop, copy), (1, 1))
    composed = compose(machine, machine)
    assert set(composed.states) == {("s", "s", False), ("s", "s", True)}
    assert composed.probability((0,), (0,), (0,)) == machine.probability((0,), (0,)) ** 2


def test_probability_sums_silent_cycles_over_several_states() -> None:
    """p ⇄ q without tokens: Σ_n (1/2·1/3)ⁿ = 6/5 ways to end where one began."""
    silence = (EPSILON,)
    arcs = (Arc("p", "q", silence, Fraction(1, 2)), Arc("q", "p", silence, Fraction(1, 3)))
    assert Transducer("p", frozenset("p"), arcs, (1,)).probability(()) == Fraction(6, 5)
    assert Transducer("p", frozenset("q"), arcs, (1,)).probability(()) == Fraction(3, 5)


# ---------------------------------------------------------------- the type itself


def test_parallel_arcs_are_added_and_zero_arcs_left_out() -> None:
    arcs = [Arc("p", "q", (0,), 0.25), Arc("p", "q", (0,), 0.5), Arc("q", "p", (0,), 0.0)]
    machine = Transducer("p", frozenset("q"), tuple(arcs), (1,))
    assert machine.arcs == (Arc("p", "q", (0,), 0.75),)
    assert machine.weight("p", "q", (0,)) == 0.75
    assert machine.weight("q", "p", (0,)) == 0
    assert machine.states == ("p", "q")


def test_trimming_removes_dead_ends_and_unreachable_states() -> None:
    useful = Arc("p", "q", (0,), 1)
    arcs = (useful, Arc("p", "dead", (0,), 1), Arc("island", "q", (0,), 1))
    assert Transducer("p", frozenset("q"), arcs, (1,)).trimmed().arcs == (useful,)


def small_step() -> Transducer:
    return step_transducer(0.25, [[0.5, 0, 0.5], [0.5, 0, 0.5], [0, 0, 0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: step_transducer(0.1, [[1, 0], [0, 1]]), r"\(K\+2\)×\(K\+2\)"),
        (lambda: step_transducer(1.5, [[1, 0, 0], [1, 0, 0], [0, 0, 0]]), r"insert .* got 1.5"),
        (lambda: step_transducer(0, [[2, 0, 0], [1, 0, 0], [0, 0, 0]]), r"matrix\[0\] .* got 2"),
        (lambda: step_transducer(0, [[1, 0, 0], [1, 0, 0], [1, 0, 0]]), r"matrix\[2\]\[0\] = 1"),
        (lambda: step_transducer(0, [[0, 1, 0], [1, 0, 0], [0, 0, 0]]), r"matrix\[0\]\[1\] = 1"),
        (lambda: jump_transducer([0, 0], [0], [[1, 0, 0]]), r"shapes \(K\+2,\), \(K,\)"),
        (lambda: jump_transducer([0.5, 0.5, 0.5], [0], [[1, 0, 0]]), "1 − Σ insert .* got -0.5"),
        (lambda: jump_transducer([0] * 3, [-0.5], [[1, 0, 0]]), "delete .* got -0.5"),
        (lambda: identity_transducer(0), "shapes"),
        (lambda: compose(identity_transducer(2), small_step()), "4 tokens .* written and 3"),
        (
            lambda: derive_jump(compose(identity_transducer(1), small_step()), small_step()),
            "two tapes",
        ),
        (lambda: small_step().marginalize(2), "tape must be one of 0…1"),
        (lambda: small_step().marginalize(0).marginalize(0), "not the only one"),
        (lambda: small_step().eliminate("A"), "initial or an accepting"),
        (lambda: small_step().eliminate("B"), "initial or an accepting"),
        (lambda: small_step().eliminate("C"), "no state 'C'"),
        (lambda: small_step().probability([0]), "1 sequences for 2 tapes"),
        (lambda: small_step().probability([0], [7]), "token 7 must lie in 0…2"),
        (lambda: small_step().weight("A", "B", (0,)), "one entry for each"),
        (lambda: small_step().renamed({"A": "B"}), "same name"),
        (lambda: jump_parameters(small_step()), r"K and K\+2 tokens, got \(3, 3\)"),
        (lambda: jump_parameters(compose(identity_transducer(1), small_step())), "got 3 tapes"),
        (lambda: geometric_series(1.0), "weight < 1, got 1.0"),
        (lambda: geometric_series(sympy.Integer(1)), "weight < 1, got 1"),
        (lambda: Transducer("p", frozenset("q"), (), (1,)).trimmed(), "no path"),
        (lambda: Transducer("p", frozenset(), (Arc("p", "p", (5,), 1),), (2,)), "token 5"),
    ],
)
def test_bad_input_is_refused_with_the_reason(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_state_whose_loop_writes_cannot_be_eliminated() -> None:
    """Before x_{t−1} is summed out, the loop of the middle state writes DEL again and again."""
    jump = jump_transducer([0.1, 0.1, 0.2], [0.1], [[0.5, 0.2, 0.2]])
    with pytest.raises(ValueError, match="ε ↦ 2 ↦ ε is not all ε"):
        compose(jump, small_step()).eliminate(AB)


def test_two_tokens_on_one_tape_cannot_be_joined() -> None:
    arcs = (Arc("p", "m", (0, EPSILON), 1), Arc("m", "q", (1, EPSILON), 1))
    machine = Transducer("p", frozenset("q"), arcs, (2, 2))
    with pytest.raises(ValueError, match=r"cannot join 0 ↦ ε and 1 ↦ ε: .* at most one token"):
        machine.eliminate("m")


def test_an_arc_that_no_jump_has_is_refused() -> None:
    arcs = (Arc("A", "B", (0, 0), 1.0),)
    with pytest.raises(ValueError, match="a jump has no arc like"):
        jump_parameters(Transducer("A", frozenset("B"), arcs, (1, 3)))


def test_labels_are_written_as_in_the_paper() -> None:
    assert format_label((EPSILON, 2, EPSILON)) == "ε ↦ 2 ↦ ε"
