"""How each kind of vocabulary is made from the JSON data that describes it."""

from __future__ import annotations

from collections.abc import Callable

from indel.vocabularies.base import Vocabulary
from indel.vocabularies.characters import CharacterVocabulary
from indel.vocabularies.integers import IntegerVocabulary
from indel.vocabularies.smiles import SmilesVocabulary
from indel.vocabularies.tokenizer import TokenizerVocabulary
from indel.vocabularies.utf8_bytes import ByteVocabulary

KINDS: dict[str, tuple[Callable[..., Vocabulary], set[str]]] = {
    "characters": (CharacterVocabulary, {"characters"}),
    "integers": (IntegerVocabulary, {"size"}),
    "bytes": (ByteVocabulary, set()),
    "tokenizer": (TokenizerVocabulary.from_serialized, {"tokenizer"}),
    "smiles": (SmilesVocabulary, {"tokens"}),
}
"""By kind, what makes it and the fields it is made from."""
