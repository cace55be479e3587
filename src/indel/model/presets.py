"""Named sizes of denoisers."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from indel.model import settings
from indel.model.config import DenoiserConfig
from indel.model.transformer import TransformerConfig
from indel.process import Schedule
from indel.tokens import Vocabulary


@dataclass(frozen=True)
class Preset:
    """A stack and the longest x_t that it is made for."""

    backbone: TransformerConfig
    max_length: int


PRESETS: dict[str, Preset] = {
    "tiny": Preset(
        TransformerConfig(
            width=64, num_layers=2, num_heads=4, head_width=16, feedforward_width=256
        ),
        max_length=64,
    ),
    "small": Preset(
        TransformerConfig(
            width=128, num_layers=6, num_heads=4, head_width=32, feedforward_width=512
        ),
        max_length=128,
    ),
    # T5-small's encoder.
    "paper-arithmetic": Preset(
        TransformerConfig(
            width=512,
            num_layers=6,
            num_heads=8,
            head_width=64,
            feedforward_width=2048,
            position_init="zeros",
        ),
        max_length=128,
    ),
    # T5-base's encoder, for text "shorter than 128 characters".
    "paper-text8": Preset(
        TransformerConfig(
            width=768,
            num_layers=12,
            num_heads=12,
            head_width=64,
            feedforward_width=3072,
            position_init="zeros",
        ),
        max_length=127,
    ),
}


def preset_config(
    name: str, vocabulary: Vocabulary, schedule: Schedule, **overrides: Any
) -> DenoiserConfig:
    """The configuration of a preset, with any field of it or of its backbone replaced.

    `tiny` is for tests and `small` for two cores. The paper gives "standard T5" with six layers
    for arithmetic and twelve for text8, and no other size: `paper-arithmetic` has the sizes of
    T5-small and `paper-text8` those of T5-base, which have as many layers.

    Paper: App. C.1

    >>> from indel import CharacterVocabulary
    >>> text8 = CharacterVocabulary.text8()
    >>> config = preset_config("small", text8, Schedule.paper(28, 32, 0.6), num_layers=3)
    >>> config.max_length, config.backbone.num_layers
    (128, 3)
    """
    settings.choice("preset", name, PRESETS)
    preset = PRESETS[name]
    of_backbone = {field.name for field in fields(TransformerConfig)}
    of_denoiser = {"max_length", "max_deletions", "time_embedding"}
    for override in overrides:
        settings.choice("override", override, sorted(of_backbone | of_denoiser))
    backbone = {name: value for name, value in overrides.items() if name in of_backbone}
    denoiser = {name: value for name, value in overrides.items() if name in of_denoiser}
    return DenoiserConfig(
        replace(preset.backbone, **backbone),
        vocabulary,
        schedule,
        **{"max_length": preset.max_length, **denoiser},
    )
