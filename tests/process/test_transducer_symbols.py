"""Eqs. (5) to (12) with symbols for all parameters."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import sympy

from indel.process.composition import compose
from indel.process.edit_transducers import (
    derive_jump,
    jump_parameters,
    jump_transducer,
    step_transducer,
)
from indel.process.transducers import Transducer, geometric_series
from support.transducer_arcs import (
    AA,
    AB,
    BB,
    MIDDLE_TAPE,
    arcs_of,
    expected_jump,
    figure5_arcs,
    figure6_arcs,
)

INSERT = sympy.Symbol("alpha")
ALPHA, BETA, REPLACE, STEP = map(sympy.IndexedBase, ["alphabar", "betabar", "Qbar", "Q"])


@cache
def symbols(vocab_size: int) -> tuple[tuple[Any, Any, Any], Any]:
    """(ᾱ, β̄, Q̄) and Q as arrays of symbols."""
    size = vocab_size + 2
    alpha = np.array([ALPHA[y] for y in range(size)])
    beta = np.array([BETA[x] for x in range(vocab_size)])
    replace = np.array([[REPLACE[x, y] for y in range(size)] for x in range(vocab_size)])
    matrix = np.array([[STEP[x, y] for y in range(size)] for x in range(size)])
    matrix[-1, :] = matrix[:, -2] = sympy.Integer(0)
    return (alpha, beta, replace), matrix


@cache
def symbolic_product(vocab_size: int) -> Transducer:
    jump, matrix = symbols(vocab_size)
    return compose(jump_transducer(*jump), step_transducer(INSERT, matrix))


def assert_equal(found: Any, expected: Any) -> None:
    """Equal as rational functions; unlike `simplify` this is fast if they are not."""
    difference = sympy.together(found - expected)
    assert sympy.expand(sympy.numer(difference)) == 0


def paths(vocab_size: int, source: Any, target: Any) -> dict[Any, Any]:
    machine = symbolic_product(vocab_size).marginalize(MIDDLE_TAPE)
    found = [a for a in machine.paths_through(AB) if (a.source, a.target) == (source, target)]
    assert len({arc.label for arc in found}) == len(found)
    return {arc.label: arc.weight for arc in found}


@pytest.mark.parametrize("vocab_size", [1, 2])
def test_symbolic_product_is_figure_5(vocab_size: int) -> None:
    jump, matrix = symbols(vocab_size)
    assert arcs_of(symbolic_product(vocab_size)) == figure5_arcs(jump, INSERT, matrix)
    marginal = symbolic_product(vocab_size).marginalize(MIDDLE_TAPE)
    assert arcs_of(marginal) == figure6_arcs(jump, INSERT, matrix)


def test_eq5_loop_is_a_geometric_series() -> None:
    loop = sympy.Symbol("loop")
    assert_equal(geometric_series(loop), 1 / (1 - loop))
    ratio = Fraction(3, 8)
    for terms in range(6):
        rest = ratio**terms * geometric_series(ratio)
        assert sum(ratio**n for n in range(terms)) + rest == geometric_series(ratio)
    assert geometric_series(0) == 1


@pytest.mark.parametrize("vocab_size", [1, 2])
def test_eq6_inserts_through_the_middle_state(vocab_size: int) -> None:
    (alpha, _, _), matrix = symbols(vocab_size)
    found = paths(vocab_size, AA, AA)
    written = [z for z in range(vocab_size + 2) if z != vocab_size]
    assert set(found) == {(None, z) for z in written}
    for z in written:
        assert_equal(found[None, z], (1 - INSERT) / (1 - alpha[-1]) * (alpha @ matrix)[z])


@pytest.mark.parametrize("vocab_size", [1, 2])
def test_eq7_stop_through_the_middle_state(vocab_size: int) -> None:
    (alpha, _, _), _ = symbols(vocab_size)
    found = paths(vocab_size, AA, BB)
    assert set(found) == {(None, None)}
    assert_equal(found[None, None], (1 - INSERT) / (1 - alpha[-1]) * (1 - alpha.sum()))


@pytest.mark.parametrize("vocab_size", [1, 2])
def test_eq8_deletes_through_the_middle_state(vocab_size: int) -> None:
    (alpha, _, replace), _ = symbols(vocab_size)
    found = paths(vocab_size, BB, BB)
    assert set(found) == {(x, None) for x in range(vocab_size)}
    for x in range(vocab_size):
        assert_equal(found[x, None], replace[x, -1] / (1 - alpha[-1]) * (1 - alpha.sum()))


@pytest.mark.parametrize("vocab_size", [1, 2])
def test_eq9_deletion_insertion_pairs_through_the_middle_state(vocab_size: int) -> None:
    (alpha, _, replace), matrix = symbols(vocab_size)
    found = paths(vocab_size, BB, AA)
    written = [z for z in range(vocab_size + 2) if z != vocab_size]
    assert set(found) == set(product(range(vocab_size), written))
    for x, z in found:
        assert_equal(found[x, z], replace[x, -1] / (1 - alpha[-1]) * (alpha @ matrix)[z])


@cache
def derived_symbols(vocab_size: int) -> tuple[Any, Any]:
    jump, matrix = symbols(vocab_size)
    machine = derive_jump(jump_transducer(*jump), step_transducer(INSERT, matrix))
    return jump_parameters(machine), expected_jump(jump, INSERT, matrix)


@pytest.mark.parametrize("vocab_size", [1, 2])
def test_eq10_symbolic_insert(vocab_size: int) -> None:
    found, expected = derived_symbols(vocab_size)
    for y in range(vocab_size + 2):
        assert_equal(found.insert[y], expected[0][y])


@pytest.mark.parametrize("vocab_size", [1, 2])
def test_eq11_symbolic_delete(vocab_size: int) -> None:
    found, expected = derived_symbols(vocab_size)
    for x in range(vocab_size):
        assert_equal(found.delete[x], expected[1][x])


@pytest.mark.parametrize("vocab_size", [1, 2])
def test_eq12_symbolic_replace(vocab_size: int) -> None:
    found, expected = derived_symbols(vocab_size)
    for x, y in product(range(vocab_size), range(vocab_size + 2)):
        assert_equal(found.replace[x][y], expected[2][x, y])
