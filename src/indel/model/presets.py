"""Named sizes of denoisers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from indel import checks
from indel.model.config import DenoiserConfig
from indel.model.rotary import RotaryConfig
from indel.model.transformer import TransformerConfig
from indel.process import Schedule
from indel.vocabularies import Vocabulary

BACKBONES: dict[str, type[RotaryConfig | TransformerConfig]] = {
    "rotary": RotaryConfig,
    "t5": TransformerConfig,
}
"""The two stacks of this library, by the name that settings have for them."""


@dataclass(frozen=True)
class Preset:
    """A stack and the longest x_t that it is made for."""

    backbone: RotaryConfig | TransformerConfig
    max_length: int


PRESETS: dict[str, Preset] = {
    "tiny": Preset(
        RotaryConfig(width=64, num_layers=2, num_heads=4, head_width=16, feedforward_width=256),
        max_length=64,
    ),
    "small": Preset(
        RotaryConfig(width=128, num_layers=6, num_heads=4, head_width=32, feedforward_width=512),
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


def preset_backbone(
    name: str, kind: str | None = None, **overrides: Any
) -> RotaryConfig | TransformerConfig:
    """The stack of a preset, with some fields replaced.

    Another kind ("rotary" or "t5") takes over the fields that both have, such as the sizes.

    >>> preset_backbone("small", "t5", num_layers=3).position_init
    'local'
    """
    checks.choice("preset", name, PRESETS)
    backbone = PRESETS[name].backbone
    if kind is not None:
        checks.choice("backbone", kind, BACKBONES)
    chosen = type(backbone) if kind is None else BACKBONES[kind]
    known = {field.name for field in fields(chosen)}
    for override in overrides:
        if override not in known:
            name_of = {kind: name for name, kind in BACKBONES.items()}
            raise ValueError(
                f"{override} is no field of a denoiser or of its backbone {name_of[chosen]!r}, "
                f"which has {', '.join(sorted(known))}"
            )
    kept = {field: value for field, value in asdict(backbone).items() if field in known}
    return chosen(**{**kept, **overrides})


def preset_config(
    name: str,
    vocabulary: Vocabulary,
    schedule: Schedule,
    *,
    backbone: str | None = None,
    **overrides: Any,
) -> DenoiserConfig:
    """The configuration of a preset, with any field of it or of its backbone replaced.

    `tiny` is for tests and `small` for two cores; their backbone is `rotary`. The paper gives
    "standard T5" with six layers for arithmetic and twelve for text8, and no other size:
    `paper-arithmetic` has the sizes of T5-small and `paper-text8` those of T5-base, which have as
    many layers. `backbone` takes the other stack with the same sizes: "rotary" or "t5".

    Paper: App. C.1

    >>> from indel import CharacterVocabulary
    >>> text8 = CharacterVocabulary.text8()
    >>> config = preset_config("small", text8, Schedule.paper(28, 32, 0.6), num_layers=3)
    >>> config.max_length, config.backbone.num_layers
    (128, 3)
    """
    checks.choice("preset", name, PRESETS)
    names = {field.name for field in fields(DenoiserConfig)} - {"backbone"}
    of_denoiser = {field: value for field, value in overrides.items() if field in names}
    of_backbone = {field: value for field, value in overrides.items() if field not in names}
    return DenoiserConfig(
        preset_backbone(name, backbone, **of_backbone),
        vocabulary,
        schedule,
        **{"max_length": PRESETS[name].max_length, **of_denoiser},
    )
