"""Untrained models for the page: what they say is nonsense, but they say it fast."""

from __future__ import annotations

from indel.process import Schedule
from indel.web.models import Models
from support.denoisers import letter_denoiser, tiny_denoiser


def page_models() -> Models:
    """Small, and the same in each process."""
    return Models(
        text8=letter_denoiser(12, rate=0.6),
        in_place=letter_denoiser(12, rate=0.0),
        arithmetic=tiny_denoiser(Schedule.paper(512, 10, 0.6), max_length=48, max_deletions=None),
    )
