"""The arcs of the paper's Figures 5 and 6, and a jump by Eqs. (10) to (12), written out."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from indel.process.transducers import Transducer

AA, AB, BB = ("A", "A"), ("A", "B"), ("B", "B")
MIDDLE_TAPE = 1


def expected_jump(previous: tuple[Any, Any, Any], insert: Any, matrix: Any) -> tuple[Any, Any, Any]:
    """Eqs. (10)–(12) as they stand in the paper."""
    alpha, beta, replace = previous
    mark = np.full(len(alpha), Fraction(0), dtype=object)
    mark[-2] = Fraction(1)
    loops = 1 - alpha[-1]
    new_alpha = insert * mark + (1 - insert) / loops * (alpha @ matrix)
    new_beta = beta + replace[:, -1] * (1 - alpha.sum()) / loops
    new_replace = replace @ matrix + np.outer(replace[:, -1], alpha @ matrix) / loops
    return new_alpha, new_beta, new_replace


def start_parameters(vocab_size: int) -> tuple[Any, Any, Any]:
    zero = Fraction(0)
    replace = np.full((vocab_size, vocab_size + 2), zero, dtype=object)
    np.fill_diagonal(replace, Fraction(1))
    return np.array([zero] * (vocab_size + 2)), np.array([zero] * vocab_size), replace


def arcs_of(machine: Transducer) -> dict[Any, Any]:
    return {(arc.source, arc.target, arc.label): arc.weight for arc in machine.arcs}


def nonzero(arcs: dict[Any, Any]) -> dict[Any, Any]:
    return {key: weight for key, weight in arcs.items() if weight != 0}


def figure5_arcs(jump: tuple[Any, Any, Any], insert: Any, matrix: Any) -> dict[Any, Any]:
    """The bottom machine of Figure 5, arc by arc."""
    alpha, beta, replace = jump
    vocab_size, ins, dele = len(beta), len(beta), len(beta) + 1
    noisy = range(vocab_size + 2)
    arcs = {
        (AA, AA, (None, None, ins)): insert,
        (AA, AB, (None, None, None)): 1 - insert,
        (AB, AB, (None, dele, None)): alpha[dele],
        (AB, BB, (None, None, None)): 1 - sum(alpha),
    }
    for y, z in product(range(vocab_size + 1), noisy):
        arcs[AB, AA, (None, y, z)] = alpha[y] * matrix[y][z]
    for x in range(vocab_size):
        arcs[BB, BB, (x, None, None)] = beta[x]
        arcs[BB, AB, (x, dele, None)] = replace[x][dele]
        for y, z in product(range(vocab_size + 1), noisy):
            arcs[BB, AA, (x, y, z)] = replace[x][y] * matrix[y][z]
    return nonzero(arcs)


def figure6_arcs(jump: tuple[Any, Any, Any], insert: Any, matrix: Any) -> dict[Any, Any]:
    """The machine of Figure 6, with its matrix products."""
    alpha, beta, replace = jump
    vocab_size, ins, dele = len(beta), len(beta), len(beta) + 1
    arcs = {
        (AA, AA, (None, ins)): insert,
        (AA, AB, (None, None)): 1 - insert,
        (AB, AB, (None, None)): alpha[dele],
        (AB, BB, (None, None)): 1 - sum(alpha),
    }
    arcs |= {(AB, AA, (None, z)): w for z, w in enumerate(alpha @ matrix)}
    for x in range(vocab_size):
        arcs[BB, BB, (x, None)] = beta[x]
        arcs[BB, AB, (x, None)] = replace[x][dele]
        arcs |= {(BB, AA, (x, z)): w for z, w in enumerate(replace[x] @ matrix)}
    return nonzero(arcs)
