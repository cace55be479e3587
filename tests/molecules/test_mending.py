"""Broken strings and the molecules that a model makes of them."""

from __future__ import annotations

import pytest

from indel import CharacterVocabulary, IntegerVocabulary, SmilesVocabulary
from indel.molecules.chemistry import parsed
from indel.molecules.mending import mend, readable_tokens
from support.molecule_models import chain_denoiser, molecule_denoiser


def test_a_molecule_stays_as_it_is() -> None:
    found = mend(molecule_denoiser(), "OCC")
    assert (found.smiles, found.edits, found.t) == ("OCC", 0, 0)


@pytest.mark.parametrize("atoms", [True, False])
def test_what_is_found_is_a_molecule_near_the_string(atoms: bool) -> None:
    model = chain_denoiser(atoms=atoms)
    found = mend(model, "C(", draws=64)
    assert found.smiles is not None
    assert parsed(found.smiles) is not None
    assert 1 <= found.votes <= 64
    assert 1 <= found.t <= 3
    assert found == mend(model, "C(", draws=64)
    assert mend(model, "(" * 40, draws=1).smiles is None


def test_what_the_model_cannot_read_is_left_out() -> None:
    moses = SmilesVocabulary.moses()
    for broken, read in {
        "CC[nHc1": "CCnc1",
        "C[nH]C": "C[nH]C",
        "C[Si]C": "CC",
        "C%12C": "CC",
        "CCl!Br": "CClBr",
        "": "",
    }.items():
        assert moses.decode(readable_tokens(broken, moses)) == read
    assert readable_tokens("a?b", CharacterVocabulary("ab")) == [0, 1]
    with pytest.raises(ValueError, match="a model of SMILES"):
        readable_tokens("C", IntegerVocabulary(3))


def test_bad_requests() -> None:
    with pytest.raises(ValueError, match="draws must be at least 1, got 0"):
        mend(molecule_denoiser(), "C(", draws=0)
    with pytest.raises(ValueError, match="has 100 tokens, the model takes 64"):
        mend(molecule_denoiser(), "C" * 99 + "(")
