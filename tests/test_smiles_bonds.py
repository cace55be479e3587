"""Bonds that a SMILES string has to make, against RDKit's own reading."""

from __future__ import annotations

import random

import pytest

from indel.data import open_data
from indel.vocabularies.smiles import OpenStructure, smiles_tokens, syntax_problem
from indel.vocabularies.smiles_bonds import START, Readings, open_structure, remembered_after


def read(smiles: str) -> Readings | OpenStructure:
    memory: Readings | OpenStructure = START
    for token in smiles_tokens(smiles):
        memory = memory.after(token)
    return memory


def may_be(smiles: str) -> bool:
    memory = read(smiles)
    return isinstance(memory, Readings) and memory.may_end


GOOD = [
    *("C", "O=C=O", "N#N", "CS(=O)(=O)N", "FC(F)(F)Cl", "C1CC1", "C1=CCC=CC1", "CC.OC"),
    *("c1ccccc1", "c1cc[nH]c1", "c1ccoc1", "c1ccncc1", "Cn1cccc1", "O=c1cc[nH]cc1", "O=c1cccc1"),
    *("c1ccc2ccccc2c1", "c1ccc2[nH]ccc2c1", "c1ccn2cccc2c1", "c1ccc(-c2ccccc2)cc1"),
    *("Cc1c[nH]c(=O)[nH]c1=O", "[nH]1cccc1", "F/C=C/F"),
    *("C1(O)CC1", "C12CC1C2", "C1C2CC12"),
]
BAD = [
    *("C(=O)(=O)C", "O=C(N)=O", "CO(C)C", "CN(C)(C)C", "FC=F", "C#N=C", "FF(C)F"),
    *("c1cccc1", "c1ccccccc1c", "c1ccncc1=O", "c1cncn1", "n1(C)ccccc1", "c1cc(C)(C)ccc1"),
    *("c1cc[nH]cc1", "CC1=C1O", "CC1(C)O1", "C1(C1)C", "Cc1cc2c12", "CC11C"),
]


@pytest.mark.parametrize("smiles", GOOD)
def test_a_molecule_can_be_read(smiles: str) -> None:
    assert may_be(smiles)


@pytest.mark.parametrize("smiles", BAD)
def test_what_is_no_molecule_cannot(smiles: str) -> None:
    assert not may_be(smiles)


@pytest.mark.parametrize("smiles", GOOD + BAD)
def test_rdkit_agrees(smiles: str) -> None:
    pytest.importorskip("rdkit")
    from indel.molecules.chemistry import parsed

    assert (parsed(smiles) is not None) == (smiles in GOOD)


def sample(count: int) -> list[str]:
    data = open_data("moses-sample")
    return [data.vocabulary.text(row) for row in data.examples(0, count, "train").to_lists()]


def test_nearly_all_molecules_of_the_sample_can_be_read() -> None:
    refused = [smiles for smiles in sample(1500) if not may_be(smiles)]
    assert len(refused) <= 1, refused


def test_strings_with_an_edit_are_judged_as_rdkit_does() -> None:
    """Molecules with one token replaced, inserted or deleted, whose rings and branches close.

    RDKit mends some lone aromatic atoms in rings, and refuses those outside of rings.
    """
    pytest.importorskip("rdkit")
    from indel.molecules.chemistry import parsed

    chance = random.Random(0)
    atoms = ["C", "N", "O", "S", "F", "c", "n", "o", "s", "[nH]", "="]
    valid = invalid = wrongly_refused = wrongly_taken = 0
    for smiles in sample(600):
        tokens = smiles_tokens(smiles)
        place = chance.randrange(1, len(tokens))
        new = chance.choice([[], [chance.choice(atoms)], [tokens[place], chance.choice(atoms)]])
        edited = "".join([*tokens[:place], *new, *tokens[place + 1 :]])
        if syntax_problem(edited) is not None:
            continue
        if parsed(edited) is not None:
            valid, wrongly_refused = valid + 1, wrongly_refused + (not may_be(edited))
        else:
            invalid, wrongly_taken = invalid + 1, wrongly_taken + may_be(edited)
    assert valid > 50
    assert invalid > 100
    assert wrongly_refused <= 0.1 * valid, (wrongly_refused, valid)
    assert wrongly_taken <= 0.2 * invalid, (wrongly_taken, invalid)


def test_what_is_too_rare_is_remembered_as_rings_and_branches_until_they_close() -> None:
    memory = open_structure(read("c1ccc("))
    assert memory == OpenStructure(frozenset("1"), 1)
    for token in ("C", ")", "c", "c", "1"):
        memory = remembered_after(memory, token)  # type: ignore[assignment]
    assert memory == OpenStructure()
    again = remembered_after(memory, "C")
    assert isinstance(again, Readings)
    assert again.may_end
