"""The stack that the edit models share: one hidden state for each token and the slot before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from indel.batch import Batch
from indel.model.backbones import BackboneConfig

KNOTS = 33
"""Levels that have an embedding of their own; between them embeddings are interpolated."""


class SlotEncoder(nn.Module):
    """A backbone over the embedded tokens and EOS.

    Row j belongs to token j and to the slot right before it; the last one to the slot before EOS.
    """

    def __init__(
        self, num_tokens: int, backbone: BackboneConfig, *, max_length: int, levels: bool
    ) -> None:
        """Embed the tokens 0…num_tokens−1; with `levels` a number in [0, 1] is told as well."""
        super().__init__()
        self.width = backbone.width
        self.eos = num_tokens
        self.embedding = nn.Embedding(num_tokens + 1, backbone.width)
        self.levels = nn.Parameter(torch.zeros(KNOTS, backbone.width)) if levels else None
        built = backbone.build(max_length=max_length)
        if not isinstance(built, nn.Module):
            raise TypeError(f"a backbone must be a torch.nn.Module, got {type(built).__name__}")
        self.backbone = built

    def forward(
        self, x: Batch, level: Float[Tensor, " batch"] | None = None
    ) -> Float[Tensor, "batch slots width"]:
        """Hidden states; behind the end of a sequence they are finite and mean nothing."""
        positions = torch.arange(x.width + 1, device=x.device)
        ended = positions >= x.lengths[:, None]
        # Padding is embedded as EOS too, but masked: only the first EOS is seen.
        embedded = self.embedding(functional.pad(x.tokens, (0, 1)).masked_fill(ended, self.eos))
        if self.levels is not None:
            if level is None:
                raise ValueError("level must be given: this stack was built to be told one")
            embedded = embedded + self._level(level)[:, None]
        hidden: Tensor = self.backbone(embedded, positions <= x.lengths[:, None])
        return hidden

    if TYPE_CHECKING:

        def __call__(self, x: Batch, level: Tensor | None = None) -> Tensor: ...

    def token_logits(
        self, hidden: Float[Tensor, "batch places width"], count: int
    ) -> Float[Tensor, "batch places {count}"]:
        """⟨h, E_v⟩ / √width for the first `count` embeddings, which serve as output matrix."""
        return functional.linear(hidden * self.width**-0.5, self.embedding.weight[:count])

    def _level(self, level: Float[Tensor, " batch"]) -> Float[Tensor, "batch width"]:
        assert self.levels is not None
        place = level.to(self.levels.dtype) * (KNOTS - 1)
        low = place.floor().clamp(0, KNOTS - 2)
        below, above = self.levels[low.long()], self.levels[low.long() + 1]
        return torch.lerp(below, above, (place - low)[:, None])
