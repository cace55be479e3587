"""Numbers that describe a molecule, and the distance between two distributions of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indel.molecules.chemistry import Molecule, rdkit


@cache
def _scorer() -> Any:
    return rdkit("Contrib.SA_Score.sascorer")


def logp(molecule: Molecule) -> float:
    """How much better it dissolves in octanol than in water, by Crippen's contributions."""
    return float(rdkit("Chem.Crippen").MolLogP(molecule))


def synthetic_accessibility(molecule: Molecule) -> float:
    """From 1, easy to make, to 10, by Ertl and Schuffenhauer's score."""
    return float(_scorer().calculateScore(molecule))


def drug_likeness(molecule: Molecule) -> float:
    """QED, from 0 to 1, by Bickerton et al."""
    return float(rdkit("Chem.QED").qed(molecule))


def weight(molecule: Molecule) -> float:
    """Its mass in dalton."""
    return float(rdkit("Chem.Descriptors").MolWt(molecule))


PROPERTIES: dict[str, Callable[[Molecule], float]] = {
    "logP": logp,
    "SA": synthetic_accessibility,
    "QED": drug_likeness,
    "weight": weight,
}
"""By the names that MOSES has for them."""


def wasserstein(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """W₁ = ∫ |F(x) − G(x)| dx of two empirical distributions.

    >>> wasserstein(np.array([0.0, 1.0]), np.array([2.0, 3.0]))
    2.0
    """
    every = np.sort(np.concatenate([first, second]))
    shares = (
        np.searchsorted(np.sort(values), every[:-1], side="right") / len(values)
        for values in (first, second)
    )
    return float((np.abs(next(shares) - next(shares)) * np.diff(every)).sum())
