"""Untrained models of molecules, and strings that they could have made up."""

from __future__ import annotations

from indel import CharacterVocabulary, Schedule, SmilesVocabulary, Vocabulary
from indel.model import Denoiser
from support.denoisers import tiny_denoiser

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def molecule_denoiser(vocabulary: Vocabulary | None = None, *, steps: int = 6) -> Denoiser:
    """Reads and writes SMILES; what it writes is noise."""
    vocabulary = vocabulary or SmilesVocabulary.moses()
    schedule = Schedule.paper(vocabulary.size, steps, 0.6)
    return tiny_denoiser(schedule, vocabulary, max_length=64, max_deletions=None)


def chain_denoiser(*, atoms: bool = True) -> Denoiser:
    """So few tokens that noise is a molecule now and then."""
    found = SmilesVocabulary(["C", "O", "("]) if atoms else CharacterVocabulary("C1()=")
    return molecule_denoiser(found)
