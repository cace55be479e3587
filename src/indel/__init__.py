"""Diffusion over sequences that can insert, delete and replace tokens."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from indel import process
    from indel.batch import Batch
    from indel.normalisation import normalise_text8
    from indel.randomness import RowSeeds
    from indel.repairing.repairer import Repairer, repair
    from indel.repairing.results import Repair
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
    "Repair",
    "Repairer",
    "RowSeeds",
    "TokenizerVocabulary",
    "Vocabulary",
    "normalise_text8",
    "process",
    "repair",
]

_HOMES = {
    "Batch": "batch",
    "ByteVocabulary": "tokens",
    "CharacterVocabulary": "tokens",
    "IntegerVocabulary": "tokens",
    "Repair": "repairing.results",
    "Repairer": "repairing.repairer",
    "RowSeeds": "randomness",
    "TokenizerVocabulary": "tokens",
    "Vocabulary": "tokens",
    "normalise_text8": "normalisation",
    "repair": "repairing.repairer",
}


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for: `indel --help` need not wait for torch."""
    if name == "process":
        return import_module("indel.process")
    if name not in _HOMES:
        raise AttributeError(f"module 'indel' has no attribute {name!r}")
    return getattr(import_module(f"indel.{_HOMES[name]}"), name)
