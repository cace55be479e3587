"""Variants of a molecule, and what became of it in each."""

from __future__ import annotations

from dataclasses import dataclass

from indel.drawing.terminal import Fate
from indel.molecules.chemistry import Molecule, molecule, parsed
from indel.molecules.fingerprints import similarity
from indel.molecules.lineage import changed_atoms
from indel.molecules.pictures import Panel
from indel.vocabularies.smiles import syntax_problem


@dataclass(frozen=True)
class Relative:
    """One variant of a molecule."""

    smiles: str
    valid: bool
    similarity: float | None
    """Tanimoto's of the fingerprints, from 0 to 1; None if it is no molecule."""

    def __str__(self) -> str:
        if not self.valid:
            return "not valid"
        return f"similarity {self.similarity:.2f}, valid"


def relatives(original: str, variants: list[str]) -> list[Relative]:
    """How each variant compares with the original, which must be a molecule.

    >>> [str(each) for each in relatives("CCO", ["CCO", "CC(O"])]
    ['similarity 1.00, valid', 'not valid']
    """
    start = molecule(original)
    return [_relative(start, smiles) for smiles in variants]


def _relative(start: Molecule, smiles: str) -> Relative:
    found = parsed(smiles)
    if found is None:
        return Relative(smiles, valid=False, similarity=None)
    return Relative(smiles, valid=True, similarity=similarity(start, found))


def panels(original: str, variants: list[Relative]) -> list[Panel]:
    """A picture for each variant beside the original: deleted atoms there, new ones here."""
    shown: list[Panel] = []
    for each in variants:
        lost: list[Fate] = []
        new: list[Fate] = []
        if syntax_problem(each.smiles) is None:
            lost, new = changed_atoms(original, each.smiles)
        shown.append(Panel(original, f"{original}\nbefore", lost))
        shown.append(Panel(each.smiles, f"{each.smiles}\n{each}", new))
    return shown
