"""Diffusion over sequences that can insert, delete and replace tokens."""

from importlib import import_module
from typing import TYPE_CHECKING

from indel.processor import avoid_hidden_tiles as _avoid_hidden_tiles

if TYPE_CHECKING:
    from indel import process
    from indel.api.basics import denoise_from, evaluate, generate, loss
    from indel.api.editing import infill, mutate, score_edits, steer
    from indel.batch import Batch
    from indel.data.sequences import Sequences
    from indel.loading import load
    from indel.model.denoiser import Denoiser
    from indel.process.schedules import Schedule
    from indel.process.steps import Step
    from indel.process.transitions import (
        AbsorbingTransition,
        GaussianTransition,
        MatrixTransition,
        NeighborTransition,
        UniformTransition,
    )
    from indel.randomness import RowSeeds
    from indel.sampling.patterns import Gap, Pattern
    from indel.text_repair.repairer import Repairer, repair
    from indel.text_repair.results import Repair
    from indel.training.open_training import train
    from indel.vocabularies import (
        ByteVocabulary,
        CharacterVocabulary,
        IntegerVocabulary,
        SmilesVocabulary,
        TokenizerVocabulary,
        Vocabulary,
    )
    from indel.vocabularies.text8_alphabet import normalize_text8

__version__ = "0.2.0"

# Before torch computes anything.
_avoid_hidden_tiles()

_HOMES = {
    # the forward process q
    "Schedule": "process.schedules",
    "Step": "process.steps",
    "UniformTransition": "process.transitions",
    "AbsorbingTransition": "process.transitions",
    "NeighborTransition": "process.transitions",
    "GaussianTransition": "process.transitions",
    "MatrixTransition": "process.transitions",
    # sequences
    "Vocabulary": "vocabularies",
    "CharacterVocabulary": "vocabularies",
    "ByteVocabulary": "vocabularies",
    "IntegerVocabulary": "vocabularies",
    "TokenizerVocabulary": "vocabularies",
    "SmilesVocabulary": "vocabularies",
    "Batch": "batch",
    "RowSeeds": "randomness",
    "Sequences": "data.sequences",
    "normalize_text8": "vocabularies.text8_alphabet",
    # the model p_θ, and what is done with it
    "Denoiser": "model.denoiser",
    "load": "loading",
    "loss": "api.basics",
    "train": "training.open_training",
    "generate": "api.basics",
    "denoise_from": "api.basics",
    "evaluate": "api.basics",
    "infill": "api.editing",
    "steer": "api.editing",
    "mutate": "api.editing",
    "score_edits": "api.editing",
    "Gap": "sampling.patterns",
    "Pattern": "sampling.patterns",
    "repair": "text_repair.repairer",
    "Repair": "text_repair.results",
    "Repairer": "text_repair.repairer",
}
"""Where each name of `import indel` comes from."""

__all__ = [
    "AbsorbingTransition",
    "Batch",
    "ByteVocabulary",
    "CharacterVocabulary",
    "Denoiser",
    "Gap",
    "GaussianTransition",
    "IntegerVocabulary",
    "MatrixTransition",
    "NeighborTransition",
    "Pattern",
    "Repair",
    "Repairer",
    "RowSeeds",
    "Schedule",
    "Sequences",
    "SmilesVocabulary",
    "Step",
    "TokenizerVocabulary",
    "UniformTransition",
    "Vocabulary",
    "denoise_from",
    "evaluate",
    "generate",
    "infill",
    "load",
    "loss",
    "mutate",
    "normalize_text8",
    "process",
    "repair",
    "score_edits",
    "steer",
    "train",
]


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for: `indel --help` need not wait for torch."""
    if name == "process":
        return import_module("indel.process")
    if name not in _HOMES:
        raise AttributeError(f"module 'indel' has no attribute {name!r}")
    return getattr(import_module(f"indel.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
