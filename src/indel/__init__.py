"""Diffusion over sequences that can insert, delete and replace tokens."""

from indel import process
from indel.batch import Batch
from indel.normalisation import normalise_text8
from indel.randomness import RowSeeds
from indel.tokens import (
    ByteVocabulary,
    CharacterVocabulary,
    IntegerVocabulary,
    TokenizerVocabulary,
    Vocabulary,
)

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "ByteVocabulary",
    "CharacterVocabulary",
    "IntegerVocabulary",
    "RowSeeds",
    "TokenizerVocabulary",
    "Vocabulary",
    "normalise_text8",
    "process",
]
