"""The study of molecules: strings are broken, and what is counted is what is said."""

from __future__ import annotations

import random

from indel import SmilesVocabulary
from indel.data import MosesSample
from indel.levenshtein import edit_distance
from indel.molecules.chemistry import parsed
from molecules import broken, broken_strings, histogram, mending
from support.molecule_models import molecule_denoiser


def test_strings_are_broken_by_as_many_edits() -> None:
    chance = random.Random(0)
    for edits in (1, 2, 3):
        tokens = list(range(20))
        found = [broken(tokens, edits, 24, chance) for _ in range(50)]
        assert {edit_distance(tokens, row) for row in found} >= {edits}
        assert all(edit_distance(tokens, row) <= edits for row in found)
    pairs = broken_strings(SmilesVocabulary.moses(), 20, 1)
    assert [original for _, original in pairs] == MosesSample().texts("test", 20)
    assert not any(parsed(text) for text, _ in pairs)


def test_shares_of_a_model_that_knows_nothing() -> None:
    whole, same = mending(molecule_denoiser(), 3, 1, draws=2)
    assert 0 <= same <= whole <= 1


def test_histogram() -> None:
    lines = histogram([0.0, 0.05, 0.55, 1.0]).splitlines()
    assert lines[0] == "0.0 ##"
    assert lines[5] == "0.5 #"
    assert lines[9] == "0.9 #"
