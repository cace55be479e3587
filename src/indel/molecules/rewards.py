"""Rewards for `--reward indel.molecules:NAME`: from 0 to 1, and 0 for what is no molecule."""

from __future__ import annotations

from collections.abc import Callable

from indel.molecules.chemistry import Molecule, parsed
from indel.molecules.properties import drug_likeness, synthetic_accessibility


def valid(texts: list[str]) -> list[float]:
    """1 for a molecule, 0 for a string that is none.

    Args:
        texts: SMILES strings.

    Returns:
        A number for each.

    >>> valid(["CCO", "CC(O"])
    [1.0, 0.0]

    Reference: docs/molecules.md
    """
    return _scores(texts, lambda molecule: 1.0)


def qed(texts: list[str]) -> list[float]:
    """How much like a drug each molecule is (QED).

    Args:
        texts: SMILES strings.

    Returns:
        A number for each.

    >>> ethanol, aspirin = qed(["CCO", "CC(=O)Oc1ccccc1C(=O)O"])
    >>> ethanol < aspirin < 1
    True

    Reference: Bickerton et al. 2012
    """
    return _scores(texts, drug_likeness)


def synthesizability(texts: list[str]) -> list[float]:
    """How easily each molecule can be made: (10 − SA) / 9.

    Args:
        texts: SMILES strings.

    Returns:
        A number for each.

    >>> 0.8 < synthesizability(["CCO"])[0] <= 1
    True

    Reference: Ertl and Schuffenhauer 2009
    """
    return _scores(texts, lambda molecule: (10.0 - synthetic_accessibility(molecule)) / 9.0)


def _scores(texts: list[str], score: Callable[[Molecule], float]) -> list[float]:
    molecules = map(parsed, texts)
    return [0.0 if molecule is None else score(molecule) for molecule in molecules]
