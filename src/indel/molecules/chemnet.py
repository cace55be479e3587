"""The Fréchet ChemNet Distance, by the network of the package `fcd`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indel import extras

LEAST = 2
"""Fewer molecules have no covariance."""


@cache
def _network() -> tuple[Any, Any]:
    package = extras.require("the Fréchet ChemNet Distance", "fcd", "molecules")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it cleans up a folder of its own late
        return package, package.load_ref_model()


def activations(smiles: Sequence[str]) -> NDArray[np.float64]:
    """What ChemNet's last hidden layer says of canonical SMILES, a row of 512 for each."""
    package, network = _network()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        rows = package.get_predictions(network, list(smiles), n_jobs=0, device="cpu")
    return np.asarray(rows, dtype=np.float64)


def frechet_distance(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """|μ₁ − μ₂|² + tr(Σ₁ + Σ₂ − 2 (Σ₁ Σ₂)^½) of two sets of rows.

    >>> points = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 4.0]])
    >>> round(frechet_distance(points, points + 1.0), 9)
    2.0
    """
    if min(len(first), len(second)) < LEAST:
        return float("nan")
    apart = first.mean(0) - second.mean(0)
    one, other = np.cov(first.T), np.cov(second.T)
    # tr (Σ₁ Σ₂)^½ = tr (Σ₁^½ Σ₂ Σ₁^½)^½, whose matrix is symmetric.
    values, vectors = np.linalg.eigh(one)
    root = (vectors * np.sqrt(values.clip(0.0))) @ vectors.T
    shared = np.sqrt(np.linalg.eigvalsh(root @ other @ root).clip(0.0)).sum()
    return float(apart @ apart + np.trace(one) + np.trace(other) - 2.0 * shared)
