"""What may sit between the embedding and the heads of a denoiser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from indel.model.huggingface import HuggingFaceConfig
from indel.model.rotary import RotaryConfig
from indel.model.transformer import TransformerConfig


@runtime_checkable
class Backbone(Protocol):
    """A `torch.nn.Module` that turns embedded tokens into hidden states of the same width.

    The mask is True at tokens and at EOS, which every row has. Each sequence fills the front of
    its row; what is behind it must not change the hidden states of the sequence.
    """

    def __call__(
        self, embedded: Float[Tensor, "batch length width"], mask: Bool[Tensor, "batch length"]
    ) -> Float[Tensor, "batch length width"]: ...


@runtime_checkable
class BackboneConfig(Protocol):
    """The sizes of a backbone: they make one, and travel with its weights as JSON."""

    @property
    def width(self) -> int: ...

    def build(self, *, max_length: int, generator: torch.Generator | None = None) -> Backbone:
        """A new backbone for sequences of up to max_length tokens and EOS."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """JSON data with the name under "kind" that the backbone is registered with."""
        ...


_KINDS: dict[str, Callable[[object], BackboneConfig]] = {
    "transformer": TransformerConfig.from_dict,
    "rotary": RotaryConfig.from_dict,
    "hugging-face": HuggingFaceConfig.from_dict,
}


def register_backbone(kind: str, from_dict: Callable[[object], BackboneConfig]) -> None:
    """Let `Denoiser.from_pretrained` load a new kind of backbone."""
    if kind in _KINDS:
        raise ValueError(f"a backbone of kind {kind!r} is registered already")
    _KINDS[kind] = from_dict


def backbone_from_dict(data: object) -> BackboneConfig:
    """The configuration that some backbone's `to_dict` described."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        known = ", ".join(map(repr, _KINDS))
        raise ValueError(
            f"unknown kind of backbone {kind!r}; known are {known}, "
            "and what indel.model.register_backbone adds"
        )
    return _KINDS[kind](data)
