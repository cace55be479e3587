"""What can go wrong in a training run that its user can do something about."""

from __future__ import annotations


class TrainingError(ValueError):
    """A run cannot start or go on; the message says what to do."""


class CheckpointError(TrainingError):
    """A checkpoint cannot be written, found or used."""


class NonFiniteError(TrainingError):
    """Too many steps had a loss or a gradient that is no number."""
