"""RDKit without its messages: strings to molecules and back."""

from __future__ import annotations

from functools import cache
from typing import Any

from indel import extras
from indel.vocabularies.smiles import syntax_problem

Molecule = Any
"""RDKit's Mol, which is not known where RDKit is not installed."""


_FAULTS = {
    "AtomValenceException": "valence",
    "KekulizeException": "aromatic",
    "AtomKekulizeException": "aromatic",
}
"""By the name of RDKit's exception, what is wrong: bonds, or a ring that cannot be aromatic."""


@cache
def rdkit(module: str = "Chem") -> Any:
    """A module of RDKit, whose own log is switched off."""
    found = extras.require("what is done with molecules", f"rdkit.{module}", "molecules")
    extras.require("what is done with molecules", "rdkit.RDLogger", "molecules").DisableLog(
        "rdApp.*"
    )
    return found


def parsed(smiles: str) -> Molecule | None:
    """The molecule that a string stands for, or None if there is none.

    >>> parsed("C1CC1").GetNumAtoms(), parsed("C1CC"), parsed("CF(C)C"), parsed("")
    (3, None, None, None)
    """
    # RDKit takes what follows a space for a name, and nothing for a molecule of no atoms.
    if not smiles or any(sign.isspace() for sign in smiles):
        return None
    return rdkit().MolFromSmiles(smiles)


def molecule(smiles: str, what: str = "the molecule") -> Molecule:
    """The molecule that a string stands for; an error says what is wrong with the string.

    >>> molecule("C1CC")
    Traceback (most recent call last):
        ...
    ValueError: the molecule 'C1CC' is not valid SMILES: ring 1 at position 1 is not closed
    """
    found = parsed(smiles)
    if found is None:
        raise ValueError(f"{what} {smiles[:80]!r} is not valid SMILES: {_reason(smiles)}")
    return found


def canonical(found: Molecule) -> str:
    """The string that RDKit writes for a molecule, however it was written.

    >>> canonical(parsed("OCC")), canonical(parsed("C(C)O"))
    ('CCO', 'CCO')
    """
    text: str = rdkit().MolToSmiles(found)
    return text


def fault(smiles: str) -> str | None:
    """Of which kind the first fault of a string is; None for a molecule.

    >>> [fault(each) for each in ("C1CC1", "C1CC", "CF(C)C", "c1cccc1")]
    [None, 'syntax', 'valence', 'aromatic']
    """
    if parsed(smiles) is not None:
        return None
    written = smiles and syntax_problem(smiles) is None
    unchecked = rdkit().MolFromSmiles(smiles, sanitize=False) if written else None
    if unchecked is None:
        return "syntax"
    problems = rdkit().DetectChemistryProblems(unchecked)
    return _FAULTS.get(problems[0].GetType() if problems else "", "syntax")


def _reason(smiles: str) -> str:
    if not smiles.strip():
        return "it is empty"
    if problem := syntax_problem(smiles):
        return problem
    unchecked = rdkit().MolFromSmiles(smiles, sanitize=False)
    if unchecked is None:
        return "its tokens do not follow each other like this in any molecule"
    problems = rdkit().DetectChemistryProblems(unchecked)
    return problems[0].Message() if problems else "RDKit does not read it"
