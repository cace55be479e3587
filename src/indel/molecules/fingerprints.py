"""Morgan fingerprints, and how much they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from indel.molecules.chemistry import Molecule, rdkit

BITS, RADIUS = 1024, 2
_ROWS = 2048  # of each set at a time: similarities in memory at once


@cache
def _generator() -> Any:
    return rdkit("Chem.rdFingerprintGenerator").GetMorganGenerator(radius=RADIUS, fpSize=BITS)


def fingerprints(molecules: Iterable[Molecule]) -> NDArray[np.uint8]:
    """One row of 1024 bits for each molecule: which surroundings of radius 2 occur."""
    rows = [_generator().GetFingerprintAsNumPy(each) for each in molecules]
    return np.array(rows, dtype=np.uint8).reshape(len(rows), BITS)


def similarity(first: Molecule, second: Molecule) -> float:
    """Tanimoto's: |a ∩ b| / |a ∪ b|.

    >>> from indel.molecules.chemistry import parsed
    >>> similarity(parsed("CCO"), parsed("OCC"))
    1.0
    """
    (a, b) = fingerprints([first, second]).astype(bool)
    either = int((a | b).sum())
    return float((a & b).sum()) / either if either else 1.0


def nearest_neighbor_similarity(
    generated: NDArray[np.uint8], reference: NDArray[np.uint8]
) -> float:
    """SNN: the mean over generated molecules of the largest similarity to one of the reference."""
    best = torch.zeros(len(generated))
    for rows, columns, shared in _similarities(generated, reference):
        best[rows] = torch.maximum(best[rows], shared.amax(1))
        del columns
    return float(best.double().mean())


def internal_diversity(generated: NDArray[np.uint8], power: int = 1) -> float:
    """IntDiv_p: 1 − mean_a (mean_b T(a, b)^p)^(1/p), over all pairs, each molecule with itself too.

    The root is taken molecule by molecule, as MOSES's program does it.
    """
    total = torch.zeros(len(generated), dtype=torch.float64)
    for rows, _, shared in _similarities(generated, generated):
        total[rows] += (shared.double() ** power).sum(1)
    return 1.0 - float(((total / len(generated)) ** (1.0 / power)).mean())


def _similarities(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> Any:
    """(rows, columns, similarities of these), piece by piece."""
    for low in range(0, len(first), _ROWS):
        a = torch.from_numpy(first[low : low + _ROWS]).float()
        for left in range(0, len(second), _ROWS):
            b = torch.from_numpy(second[left : left + _ROWS]).float()
            both = a @ b.T
            either = a.sum(1)[:, None] + b.sum(1) - both
            shared = torch.where(either > 0, both / either.clamp_min(1.0), torch.ones(()))
            yield slice(low, low + len(a)), slice(left, left + len(b)), shared
