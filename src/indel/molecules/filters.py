"""MOSES's filters: what a medicinal chemist would rather not look at."""

from __future__ import annotations

from functools import cache
from typing import Any

from indel.molecules.chemistry import Molecule, rdkit

ELEMENTS = frozenset({"C", "N", "S", "O", "F", "Cl", "Br", "H"})
RING = 8
"""Rings of so many atoms, or more, are not allowed."""

# The medicinal chemistry filters that define MOSES's data (Polykovskiy et al. 2020; MIT).
_UNWANTED = """
[#6]=&!@[#6]-[#6]#[#7]
[#6]=&!@[#6]-[#16](=[#8])=[#8]
[#6]=&!@[#6&!H0]-&!@[#6](=[#8])-&!@[#7]
[H]C([H])([#6])[F,Cl,Br,I]
[#6]1-[#8]-[#6]-1
[#6]-[#7]=[#6]=[#8]
[#6&!H0]=[#8]
[#6](=&!@[#7&!H0])-&!@[#6,#7,#8,#16]
[#6]1-[#7]-[#6]-1
[#6]~&!@[#7]~&!@[#7]~&!@[#6]
[#7]=&!@[#7]
[H][#6]-1=[#6]([H])-[#6]=[#6](-*)-[#8]-1
[H][#6]-1=[#6]([H])-[#6]=[#6](-*)-[#16]-1
[#17,#35,#53]-c(:*):[!#1!#6]:*
[H][#7]([H])-[#6]-1=[#6]-[#6]=[#6]-[#6]=[#6]-1
[#16]~[#16]
[#7]~&!@[#7]~&!@[#7]
[#7]-&!@[#6&!H0&!H1]-&!@[#7]
[#6&!H0](-&!@[#8])-&!@[#8]
[#35].[#35].[#35]
[#17].[#17].[#17].[#17]
[#9].[#9].[#9].[#9].[#9].[#9].[#9]
"""


def passes_filters(molecule: Molecule) -> bool:
    """Whether a molecule has allowed elements alone, no charge, no large ring and no pattern of
    the medicinal chemistry filters or of PAINS, as RDKit has them.

    >>> from indel.molecules.chemistry import parsed
    >>> [passes_filters(parsed(smiles)) for smiles in ("CCO", "CC=O", "C[O-]", "CCI")]
    [True, False, False, False]
    """
    if any(len(ring) >= RING for ring in molecule.GetRingInfo().AtomRings()):
        return False
    for atom in molecule.GetAtoms():
        if atom.GetFormalCharge() != 0 or atom.GetSymbol() not in ELEMENTS:
            return False
    whole = rdkit().AddHs(molecule)
    return not (any(map(whole.HasSubstructMatch, _patterns())) or _pains().HasMatch(molecule))


@cache
def _patterns() -> list[Any]:
    return [rdkit().MolFromSmarts(line) for line in _UNWANTED.split()]


@cache
def _pains() -> Any:
    catalog = rdkit("Chem.FilterCatalog")
    parameters = catalog.FilterCatalogParams()
    parameters.AddCatalog(parameters.FilterCatalogs.PAINS)
    return catalog.FilterCatalog(parameters)
