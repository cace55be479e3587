"""The settings of the denoiser."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import get_args

from indel import checks
from indel.data import BatchStream
from indel.model import PRESETS, DenoiserConfig, preset_config
from indel.model.config import EmbeddingInit
from indel.model.edit_weights import EditWeightsName
from indel.model.presets import BACKBONES, preset_backbone
from indel.model.rotary import RotaryConfig
from indel.model.transformer import TransformerConfig
from indel.process import Schedule


@dataclass(frozen=True)
class ModelSection:
    """The denoiser: a named size, and what differs from it (None: nothing).

    Paper: App. C.1
    """

    preset: str = "small"
    """The named size: "tiny", "small", "paper-arithmetic" or "paper-text8"."""
    start: str | None = None
    """Whose weights training starts from: a bundled model, the folder of one or a repository on the
    Hub, with the same network and vocabulary; None: random ones."""
    backbone: str | None = None
    """The stack, "rotary" or "t5"; None: the preset's."""
    max_length: int | None = None
    """The size of the table of lengths, and the limit of x_t where there is one."""
    max_deletions: int | None = None
    """The most deletions in one slot; None: the longest x_0, which always suffices."""
    time_embedding: bool = True
    """Whether the network is told t."""
    embedding_init: EmbeddingInit = "normal"
    """Where the embeddings of tokens start: as noise ("normal"), or, for integers, as sines and
    cosines, with wave lengths that grow geometrically ("sines") or are whole ("whole-sines")."""
    trigrams: int = 0
    """Rows of a table with embeddings of each token between its neighbors; 0: there is none."""
    contexts: int = 0
    """The most contexts of a model of the data by counts, which is fitted before the first step and
    whose exact posterior given x_t the network corrects; 0: there is none."""
    remembered_deletions: int = 2
    """After so many deletions in one slot that posterior takes the context for forgotten."""
    limit_length: bool = True
    """Whether x_t is drawn given that it is no longer than max_length."""
    edit_weights: EditWeightsName = "normalized"
    """How q weighs the kinds of edits: "normalized" or "joint"."""
    width: int | None = None
    """The width of the hidden states."""
    num_layers: int | None = None
    """Layers of the stack."""
    num_heads: int | None = None
    """Attention heads per layer."""
    head_width: int | None = None
    """The width of one head; even for the rotary stack."""
    feedforward_width: int | None = None
    """The width of the feed-forward layers."""
    activation: str | None = None
    """Of the feed-forward layers of the t5 stack: "relu" or "gated-gelu"."""
    num_buckets: int | None = None
    """Buckets of relative positions, both directions together."""
    max_distance: int | None = None
    """From this distance on all positions share the last bucket."""
    dropout: float | None = None
    """The share of numbers that the t5 stack drops in training."""
    position_init: str | None = None
    """Where the position biases of the t5 stack start: "local" or "zeros"."""
    max_period: float | None = None
    """Of the rotary stack: its slowest pair turns by 1/max_period per token."""
    local_biases: bool | None = None
    """Whether the rotary stack adds learned biases of relative positions, which start out local."""

    def __post_init__(self) -> None:
        checks.choice("model.preset", self.preset, PRESETS)
        if self.backbone is not None:
            checks.choice("model.backbone", self.backbone, BACKBONES)
        checks.choice("model.embedding_init", self.embedding_init, get_args(EmbeddingInit))
        if self.start is not None and not (isinstance(self.start, str) and self.start):
            raise ValueError(f"model.start must be the name of a model, got {self.start!r}")
        checks.flag("model.time_embedding", self.time_embedding)
        checks.flag("model.limit_length", self.limit_length)
        checks.choice("model.edit_weights", self.edit_weights, get_args(EditWeightsName))
        checks.integer("model.trigrams", self.trigrams, least=0)
        checks.integer("model.contexts", self.contexts, least=0)
        checks.integer("model.remembered_deletions", self.remembered_deletions, least=0)
        for name in ("max_length", "max_deletions"):
            if getattr(self, name) is not None:
                checks.integer(f"model.{name}", getattr(self, name), least=1)
        try:
            self.stack()
        except ValueError as error:
            raise ValueError(f"model.{error}") from None

    def stack(self) -> RotaryConfig | TransformerConfig:
        """The backbone's sizes, whose own checks run."""
        given = {
            name: value
            for name, value in asdict(self).items()
            if name not in _OF_DENOISER and value is not None
        }
        return preset_backbone(self.preset, self.backbone, **given)

    def _room(self, data: BatchStream) -> int:
        """The preset's longest x_t, or a tenth more than the longest x_0 where that is limited."""
        preset = PRESETS[self.preset].max_length
        if not self.limit_length or data.max_length <= preset:
            return preset
        return data.max_length + data.max_length // 10

    def denoiser_config(self, data: BatchStream, schedule: Schedule) -> DenoiserConfig:
        """The configuration of a denoiser for some data."""
        stack = self.stack()
        return preset_config(
            self.preset,
            data.vocabulary,
            schedule,
            backbone=self.backbone,
            max_length=self.max_length or self._room(data),
            max_deletions=self.max_deletions or data.max_length,
            time_embedding=self.time_embedding,
            embedding_init=self.embedding_init,
            trigrams=self.trigrams,
            contexts=self.contexts,
            remembered_deletions=self.remembered_deletions,
            limit_length=self.limit_length,
            edit_weights=self.edit_weights,
            **asdict(stack),
        )


# The settings of a model that are not of its stack.
_OF_DENOISER = frozenset(
    {
        "preset",
        "start",
        "backbone",
        "max_length",
        "max_deletions",
        "time_embedding",
        "embedding_init",
        "trigrams",
        "contexts",
        "remembered_deletions",
        "limit_length",
        "edit_weights",
    }
)
