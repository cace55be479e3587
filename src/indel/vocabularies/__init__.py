"""Vocabularies: text, integers or bytes to token ids and back, with the markers INS, DEL, EOS."""

from indel.vocabularies.base import Vocabulary as Vocabulary
from indel.vocabularies.characters import CharacterVocabulary as CharacterVocabulary
from indel.vocabularies.integers import IntegerVocabulary as IntegerVocabulary
from indel.vocabularies.smiles import SmilesVocabulary as SmilesVocabulary
from indel.vocabularies.tokenizer import TokenizerVocabulary as TokenizerVocabulary
from indel.vocabularies.utf8_bytes import ByteVocabulary as ByteVocabulary
