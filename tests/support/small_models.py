"""Untrained denoisers that can read text: what they write is noise, but it is theirs."""

import torch

from indel import CharacterVocabulary
from indel.model import Denoiser
from indel.process import Schedule


def small_denoiser(*, rate: float = 0.6, seed: int = 0) -> Denoiser:
    vocabulary = CharacterVocabulary.text8()
    return Denoiser.from_preset(
        "tiny",
        vocabulary,
        Schedule.paper(vocabulary.size, 32, rate),
        generator=torch.Generator().manual_seed(seed),
        max_length=127,
        width=16,
        num_layers=1,
        num_heads=2,
        head_width=8,
        feedforward_width=16,
    ).eval()
