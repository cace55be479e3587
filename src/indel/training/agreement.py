"""Whether a model is made for the training that is asked for."""

from __future__ import annotations

from indel.model import Denoiser
from indel.training.config import TrainingSection
from indel.training.errors import TrainingError


def check_agreement(section: TrainingSection, denoiser: Denoiser) -> None:
    """Refuse settings that the model would not show later, or that do not go with its processes."""
    config = denoiser.config
    if section.frozen != config.frozen:
        raise TrainingError(
            f"training.frozen = {section.frozen!r}, but the model was made with frozen = "
            f"{config.frozen!r}"
        )
    if (section.drop_source > 0) != config.drops_source:
        raise TrainingError(
            f"training.drop_source = {section.drop_source}, but the model was made with "
            f"drops_source = {config.drops_source}"
        )
    if section.times == "term-size" and len(denoiser.step_choices) > 1:
        raise TrainingError(
            "training.times = 'term-size' needs one number of steps, got "
            f"{', '.join(map(str, denoiser.step_choices))}"
        )
