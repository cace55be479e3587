"""SMILES: tokens, what is wrong with a string, and the vocabulary."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indel.vocabularies import Vocabulary
from indel.vocabularies.smiles import SmilesVocabulary, is_atom, smiles_tokens, syntax_problem

RICH = SmilesVocabulary(["C", "Cl", "B", "Br", "S", "[nH]", "[C@@H]", "c", "1", "%12", "=", "("])


@pytest.mark.parametrize(
    ("smiles", "tokens"),
    [
        ("", []),
        ("ClCBr", ["Cl", "C", "Br"]),
        ("BCC", ["B", "C", "C"]),
        ("Sc1ccccc1", ["S", "c", "1", "c", "c", "c", "c", "c", "1"]),
        ("C%12C12", ["C", "%12", "C", "1", "2"]),
        ("[C@@H](F)/C=C\\N", ["[C@@H]", "(", "F", ")", "/", "C", "=", "C", "\\", "N"]),
        ("[Na+].[O-]C#N", ["[Na+]", ".", "[O-]", "C", "#", "N"]),
    ],
)
def test_tokens(smiles: str, tokens: list[str]) -> None:
    assert smiles_tokens(smiles) == tokens


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("CC[nHc1", "'[' at position 2 is not closed by ]"),
        ("C[]C", "'[' at position 1 begins no atom"),
        ("CCl@@C", "'@' (U+0040) at position 3 begins no atom"),
        ("CXC", "'X' (U+0058) at position 1"),
        ("C C", "' ' (U+0020) at position 1"),
        ("C%1C", "'%' (U+0025) at position 1"),
        ("C]", "']' (U+005D) at position 1"),
        ("Cé", "'é' (U+00E9) at position 1"),
    ],
)
def test_what_is_no_token_is_refused_with_its_place(smiles: str, reason: str) -> None:
    with pytest.raises(ValueError, match="at position") as error:
        smiles_tokens(smiles)
    assert reason.split(" at ")[0].split()[0] in str(error.value)
    assert syntax_problem(smiles) == str(error.value)
    assert f"at position {reason.split('at position ')[1].split()[0]}" in str(error.value)


@pytest.mark.parametrize(
    ("smiles", "problem"),
    [
        ("C1CC(=O)C1", None),
        ("C%10CC%10", None),
        ("C%01CC1", None),
        ("C%10CC%20", "ring 10 at position 1 is not closed"),
        ("C(C", "'(' at position 1 is not closed"),
        ("CC)C", "')' at position 2 closes nothing"),
        ("c1ccccc2", "ring 1 at position 1 is not closed"),
    ],
)
def test_problems_of_syntax(smiles: str, problem: str | None) -> None:
    assert syntax_problem(smiles) == problem


def test_atoms() -> None:
    tokens = smiles_tokens("*C(=O)[nH]%12cBr-1")
    assert [token for token in tokens if is_atom(token)] == ["*", "C", "O", "[nH]", "c", "Br"]


@given(st.lists(st.integers(0, RICH.size - 1), max_size=20))
def test_any_tokens_can_be_read_back(ids: list[int]) -> None:
    assert RICH.encode(RICH.decode(ids)) == ids


def test_it_is_stored_as_json() -> None:
    stored = json.loads(json.dumps(RICH.to_dict()))
    assert Vocabulary.from_dict(stored) == RICH
    assert hash(Vocabulary.from_dict(stored)) == hash(RICH)


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        ([], "at least one token"),
        (["C", "CC"], "token 1 must be one token of SMILES, got 'CC'"),
        (["C", "C"], "different"),
        (["C", ""], "token 1"),
        (["X"], "'X'"),
    ],
)
def test_bad_tokens_are_refused(tokens: list[str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SmilesVocabulary(tokens)


def test_tokens_are_a_list() -> None:
    with pytest.raises(TypeError, match="list of SMILES tokens"):
        SmilesVocabulary("CO")


def test_an_unknown_atom_is_refused_with_its_place() -> None:
    with pytest.raises(
        ValueError, match=r"'\[Si\]' at position 3 is not in the vocabulary"
    ) as error:
        SmilesVocabulary.moses().encode("CCC[Si]C")
    assert "24 tokens # ( )" in str(error.value)
    with pytest.raises(TypeError, match="SMILES"):
        SmilesVocabulary.moses().encode([1, 2])


def test_symbols_and_markers() -> None:
    moses = SmilesVocabulary.moses()
    ids = moses.encode("Clc1[nH]c1")
    assert moses.text([*ids, moses.ins]) == "Clc1[nH]c1⟨INS⟩"
    assert moses.symbol(ids[0]) == "Cl"
    with pytest.raises(ValueError, match="marker"):
        moses.decode([moses.del_])
