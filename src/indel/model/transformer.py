"""The T5 encoder: a stack of attention and feed-forward layers over the whole sequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from indel import checks
from indel.model.positions import POSITION_INITS, PositionInit, RelativePositions, check_buckets

Activation = Literal["relu", "gated-gelu"]
# The function, and whether it gates a second projection: T5 1.0 and T5 1.1.
_ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], bool]] = {
    "relu": (functional.relu, False),
    "gated-gelu": (partial(functional.gelu, approximate="tanh"), True),
}
_NORM_EPSILON = 1e-6  # T5's


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes of a `Transformer`.

    >>> TransformerConfig(width=64, num_layers=2, num_heads=4, head_width=0, feedforward_width=256)
    Traceback (most recent call last):
        ...
    ValueError: head_width must be an integer ≥ 1, got 0
    """

    width: int
    num_layers: int
    num_heads: int
    head_width: int
    feedforward_width: int
    activation: Activation = "relu"
    num_buckets: int = 32
    """Buckets of relative positions, both directions together."""
    max_distance: int = 128
    """From here on all positions share the last bucket."""
    dropout: float = 0.0
    position_init: PositionInit = "local"
    """Where the relative position biases start; T5's other weights always start as T5's."""

    def __post_init__(self) -> None:
        for name in ("width", "num_layers", "num_heads", "head_width", "feedforward_width"):
            checks.integer(name, getattr(self, name), least=1)
        checks.choice("activation", self.activation, _ACTIVATIONS)
        checks.choice("position_init", self.position_init, POSITION_INITS)
        checks.number("dropout", self.dropout, least=0.0, below=1.0)
        check_buckets(self.num_buckets, self.max_distance)

    def build(self, *, max_length: int, generator: torch.Generator | None = None) -> Transformer:
        """A new stack; its positions are relative, so any length will do."""
        del max_length
        return Transformer(self, generator=generator)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data from which `from_dict` makes an equal configuration."""
        return {"kind": "transformer", **asdict(self)}

    @classmethod
    def from_dict(cls, data: object) -> TransformerConfig:
        """The configuration that `to_dict` described."""
        names = [field.name for field in fields(cls)]
        values = checks.fields("a transformer", data, ["kind", *names])
        return cls(**{name: values[name] for name in names})


class Transformer(nn.Module):
    """T5's encoder stack on embedded tokens: h ← h + f(norm(h)) for each layer, then a norm.

    Bidirectional, without any bias, norms without a mean, attention scores not scaled.

    Paper: App. C.1
    """

    def __init__(
        self, config: TransformerConfig, *, generator: torch.Generator | None = None
    ) -> None:
        """Start from T5's initial weights, drawn by the generator (default: torch's own)."""
        super().__init__()
        self.config = config
        self.positions = RelativePositions(
            config.num_heads, config.num_buckets, config.max_distance, config.position_init
        )
        self.layers = nn.ModuleList(
            _Layer(config, generator=generator) for _ in range(config.num_layers)
        )
        self.norm = nn.RMSNorm(config.width, eps=_NORM_EPSILON)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, embedded: Float[Tensor, "batch length width"], mask: Bool[Tensor, "batch length"]
    ) -> Float[Tensor, "batch length width"]:
        """Hidden states; where the mask is False they are finite and mean nothing.

        Each row of the mask is True somewhere.
        """
        biases = self._attention_biases(mask)
        hidden = self.dropout(embedded)
        for layer in self.layers:
            hidden = layer(hidden, biases)
        normalised: Tensor = self.dropout(self.norm(hidden))
        return normalised

    def _attention_biases(
        self, mask: Bool[Tensor, "batch length"]
    ) -> Float[Tensor, "batch heads length length"]:
        """What all layers add to their scores: positions, and −∞ for keys that are padding."""
        length = mask.shape[1]
        biases: Tensor = self.positions(length).expand(len(mask), -1, -1, -1)
        biases = biases.masked_fill(~mask[:, None, None, :], float("-inf"))
        device = biases.device.type
        # Otherwise autocast would convert this largest of tensors in each layer.
        return biases.to(torch.get_autocast_dtype(device)) if _autocast(device) else biases


class _Layer(nn.Module):
    """Attention and a feed-forward network, each with its norm, added to what came in."""

    def __init__(self, config: TransformerConfig, *, generator: torch.Generator | None) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.width, eps=_NORM_EPSILON)
        self.attention = _Attention(config, generator=generator)
        self.feedforward_norm = nn.RMSNorm(config.width, eps=_NORM_EPSILON)
        self.feedforward = _FeedForward(config, generator=generator)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        hidden: Float[Tensor, "batch length width"],
        biases: Float[Tensor, "batch heads length length"],
    ) -> Float[Tensor, "batch length width"]:
        hidden = hidden + self.dropout(self.attention(self.attention_norm(hidden), biases))
        hidden = hidden + self.dropout(self.feedforward(self.feedforward_norm(hidden)))
        return hidden


class _Attention(nn.Module):
    """softmax(q kᵀ + biases) v for each head, with one projection for q, k and v together."""

    def __init__(self, config: TransformerConfig, *, generator: torch.Generator | None) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.dropout = config.dropout
        heads_width = config.num_heads * config.head_width
        self.qkv = nn.Linear(config.width, 3 * heads_width, bias=False)
        self.out = nn.Linear(heads_width, config.width, bias=False)
        q, kv = self.qkv.weight[:heads_width], self.qkv.weight[heads_width:]
        # The scale that other transformers apply to the scores is in q's initial weights.
        _normal(q, (config.width * config.head_width) ** -0.5, generator)
        _normal(kv, config.width**-0.5, generator)
        _normal(self.out.weight, heads_width**-0.5, generator)

    def forward(
        self,
        hidden: Float[Tensor, "batch length width"],
        biases: Float[Tensor, "batch heads length length"],
    ) -> Float[Tensor, "batch length width"]:
        qkv = self.qkv(hidden).unflatten(-1, (3, self.num_heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=biases, dropout_p=self.dropout if self.training else 0.0, scale=1.0
        )
        projected: Tensor = self.out(attended.transpose(1, 2).flatten(2))
        return projected


class _FeedForward(nn.Module):
    """outer(f(inner(h))), or outer(f(gate(h)) · inner(h)) with gate and inner in one projection."""

    def __init__(self, config: TransformerConfig, *, generator: torch.Generator | None) -> None:
        super().__init__()
        self.activation, self.gated = _ACTIVATIONS[config.activation]
        inner_width = config.feedforward_width * (2 if self.gated else 1)
        self.inner = nn.Linear(config.width, inner_width, bias=False)
        self.outer = nn.Linear(config.feedforward_width, config.width, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        _normal(self.inner.weight, config.width**-0.5, generator)
        _normal(self.outer.weight, config.feedforward_width**-0.5, generator)

    def forward(
        self, hidden: Float[Tensor, "batch length width"]
    ) -> Float[Tensor, "batch length width"]:
        inner = self.inner(hidden)
        if self.gated:
            gate, inner = inner.chunk(2, dim=-1)
            inner = self.activation(gate) * inner
        else:
            inner = self.activation(inner)
        projected: Tensor = self.outer(self.dropout(inner))
        return projected


def _normal(weight: Tensor, std: float, generator: torch.Generator | None) -> None:
    nn.init.normal_(weight, std=std, generator=generator)


def _autocast(device: str) -> bool:
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
