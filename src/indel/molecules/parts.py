"""The parts of molecules: BRICS fragments and Bemis–Murcko scaffolds, and how often they occur."""

from __future__ import annotations

import math
from collections.abc import Mapping

from indel.molecules.chemistry import Molecule, canonical, rdkit

MIN_RINGS = 2
"""A scaffold with fewer rings is not counted."""


def fragments(molecule: Molecule) -> list[str]:
    """What is left when all bonds that BRICS would make are cut.

    >>> from indel.molecules.chemistry import parsed
    >>> sorted(fragments(parsed("CCOC")))
    ['[3*]OC', '[4*]CC']
    """
    return canonical(rdkit().FragmentOnBRICSBonds(molecule)).split(".")


def scaffold(molecule: Molecule) -> str | None:
    """The rings and what links them; None for fewer than two rings.

    >>> from indel.molecules.chemistry import parsed
    >>> scaffold(parsed("CCc1ccc(CC2CC2)cc1")), scaffold(parsed("CCc1ccccc1"))
    ('c1ccc(CC2CC2)cc1', None)
    """
    found = rdkit("Chem.Scaffolds.MurckoScaffold").GetScaffoldForMol(molecule)
    rings: int = rdkit("Chem.rdMolDescriptors").CalcNumRings(found)
    return canonical(found) or None if rings >= MIN_RINGS else None


def cosine(first: Mapping[str, int], second: Mapping[str, int]) -> float:
    """The cosine of the angle between two vectors of counts; NaN if one of them is empty.

    >>> cosine({"a": 2, "b": 1}, {"a": 1, "b": 1}) > cosine({"a": 2, "b": 1}, {"b": 1}) > 0
    True
    """
    if not first or not second:
        return math.nan
    product = sum(count * second.get(name, 0) for name, count in first.items())
    lengths = (math.sqrt(sum(count**2 for count in each.values())) for each in (first, second))
    return product / math.prod(lengths)
