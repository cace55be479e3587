"""How many weights a denoiser has, by arithmetic alone."""

from __future__ import annotations

from typing import Any

from indel import checks
from indel.model.backbones import BackboneConfig
from indel.model.config import DenoiserConfig
from indel.model.count_prior import TRANSITIONS
from indel.model.huggingface import HuggingFaceConfig
from indel.model.rotary import RotaryConfig
from indel.model.transformer import TransformerConfig


def check_size(config: DenoiserConfig) -> None:
    """Refuse a denoiser whose weights cannot fit in memory."""
    deletions = config.max_length if config.max_deletions is None else config.max_deletions
    rows = config.vocabulary.augmented_size + config.schedule.num_steps + deletions + 2
    own = (rows + config.trigrams) * config.backbone.width + config.max_length
    own += config.contexts * 3 * TRANSITIONS
    checks.fits_in_memory("a denoiser", own + _of_backbone(config.backbone), bytes_each=4)


def _of_backbone(backbone: BackboneConfig) -> int:
    """The matrices of a stack: attention and feed-forward layers; 0 for one that is not known."""
    if isinstance(backbone, TransformerConfig | RotaryConfig):
        # Thin layers fit, but building millions of them takes hours.
        checks.integer("num_layers", backbone.num_layers, least=1, most=10_000)
        inner = backbone.num_heads * backbone.head_width
        layer = backbone.width * (4 * inner + 2 * backbone.feedforward_width)
        return backbone.num_layers * layer + backbone.num_buckets * backbone.num_heads
    if isinstance(backbone, HuggingFaceConfig):
        config = backbone.library_config()
        layer = backbone.width * (4 * backbone.width + 2 * _size(config, "intermediate_size"))
        tables = _size(config, "vocab_size") + _size(config, "max_position_embeddings")
        return _size(config, "num_hidden_layers") * layer + tables * backbone.width
    return 0


def _size(config: Any, name: str) -> int:
    value = getattr(config, name, 0)
    return value if isinstance(value, int) else 0
