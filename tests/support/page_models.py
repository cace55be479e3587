"""Untrained models for the page: what they say is nonsense, but they say it fast."""

from __future__ import annotations

import torch

from indel import CharacterVocabulary, IntegerVocabulary, Vocabulary
from indel.model import Denoiser
from indel.process import Schedule
from indel.web.models import Models


def page_models() -> Models:
    """Small, and the same in each process."""
    text8, numbers = CharacterVocabulary.text8(), IntegerVocabulary(512)
    return Models(
        text8=_untrained(text8, 12, rate=0.6, max_length=127),
        in_place=_untrained(text8, 12, rate=0.0, max_length=127),
        arithmetic=_untrained(numbers, 10, rate=0.6, max_length=48),
    )


def _untrained(vocabulary: Vocabulary, steps: int, *, rate: float, max_length: int) -> Denoiser:
    schedule = Schedule.paper(vocabulary.size, steps, rate)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Denoiser.from_preset("tiny", vocabulary, schedule, max_length=max_length).eval()
