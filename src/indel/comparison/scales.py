"""How large a comparison is: the network, the steps, and how much is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from indel import checks
from indel.comparison.measures import Sizes
from indel.model.presets import PRESETS
from indel.model.rotary import RotaryConfig


@dataclass(frozen=True)
class Scale:
    """Settings that all processes of a comparison share."""

    backbone: RotaryConfig
    num_steps: int
    """T, of processes that have steps."""
    batch_size: int
    validations: int
    sizes: Sizes
    data_options: dict[str, dict[str, Any]]
    """By the name of the data, what makes it learnable within the budget."""


def _stack(preset: str) -> RotaryConfig:
    backbone = PRESETS[preset].backbone
    assert isinstance(backbone, RotaryConfig)
    return backbone


SCALES: dict[str, Scale] = {
    "tiny": Scale(
        backbone=_stack("tiny"),
        num_steps=10,
        batch_size=32,
        validations=4,
        sizes=Sizes(likelihood=128, samples=128, gaps=24, repairs=128),
        data_options={
            "arithmetic": {"numbers": 16, "max_step": 1, "min_length": 6, "max_length": 10},
            "text8": {"chunk_length": 32},
            "text8-sample": {"chunk_length": 32},
        },
    ),
    "laptop": Scale(
        backbone=_stack("small"),
        num_steps=32,
        batch_size=32,
        validations=8,
        sizes=Sizes(likelihood=256, samples=256, gaps=32, repairs=256),
        data_options={
            "arithmetic": {"numbers": 128, "max_step": 6, "min_length": 10, "max_length": 20},
            "text8": {"chunk_length": 64},
            "text8-sample": {"chunk_length": 64},
        },
    ),
}


def scale_of(name: str) -> Scale:
    """The scale of a name."""
    checks.choice("--scale", name, SCALES)
    return SCALES[name]
