"""The models that the page works with."""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_lowercase

from indel.model import Denoiser
from indel.text_repair.known_words import KnownWords
from indel.vocabularies import CharacterVocabulary, IntegerVocabulary
from indel.vocabularies.smiles import spells_smiles


@dataclass(frozen=True)
class Models:
    """Two models of text to compare, and one of sequences of numbers; ready to be used."""

    text8: Denoiser
    in_place: Denoiser
    arithmetic: Denoiser
    words: KnownWords | None = None
    """Words that help to judge spelling."""
    molecules: Denoiser | None = None
    """A model of SMILES; without one the page has no tab for molecules."""

    def __post_init__(self) -> None:
        for name in ("text8", "in_place"):
            vocabulary = getattr(self, name).vocabulary
            if not isinstance(vocabulary, CharacterVocabulary) or not set(
                vocabulary.characters
            ) >= set(ascii_lowercase + " "):
                raise ValueError(
                    f"the model {name} must know a–z and the space, got {vocabulary!r:.80}"
                )
        if not isinstance(self.arithmetic.vocabulary, IntegerVocabulary):
            raise ValueError(
                "the model arithmetic must be one of integers, "
                f"got {self.arithmetic.vocabulary!r:.80}"
            )
        if self.molecules is not None and not spells_smiles(self.molecules.vocabulary):
            raise ValueError(
                f"the model molecules must be one of SMILES, got {self.molecules.vocabulary!r:.80}"
            )

    def of_text(self, *, in_place: bool) -> Denoiser:
        """That of the two models of text which was asked for."""
        return self.in_place if in_place else self.text8
