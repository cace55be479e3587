"""The `rotary` backbone: a transformer that learns more per core-hour than T5's."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from indel import checks
from indel.model.positions import RelativePositions, check_buckets

_NORM_EPSILON = 1e-6
# Compiled code is specialized on the length: lengths are rounded up, so that few are compiled.
_COMPILED_LENGTHS = 16
_MOST_COMPILED = 64
# With q and k normed, ⟨q, k⟩/√d has variance 1 at first; doubled, heads see contents besides
# the local biases from the start.
INITIAL_SCALE = 2.0


@dataclass(frozen=True)
class RotaryConfig:
    """Sizes of a `RotaryTransformer`.

    >>> RotaryConfig(width=64, num_layers=2, num_heads=4, head_width=15, feedforward_width=256)
    Traceback (most recent call last):
        ...
    ValueError: head_width must be even: rotary positions turn pairs of numbers, got 15
    """

    width: int
    num_layers: int
    num_heads: int
    head_width: int
    feedforward_width: int
    max_period: float = 1000.0
    """The slowest pair of a head turns by 1/max_period per token, the fastest by 1."""
    local_biases: bool = True
    """Whether learned biases of relative positions, which start out local, add to the scores."""
    num_buckets: int = 32
    """Buckets of relative positions, both directions together."""
    max_distance: int = 128
    """From here on all positions share the last bucket."""

    def __post_init__(self) -> None:
        for name in ("width", "num_layers", "num_heads", "head_width", "feedforward_width"):
            checks.integer(name, getattr(self, name), least=1)
        if self.head_width % 2:
            raise ValueError(
                "head_width must be even: rotary positions turn pairs of numbers, "
                f"got {self.head_width}"
            )
        if not isinstance(self.max_period, (int, float)) or not 1.0 < self.max_period < 1e9:
            raise ValueError(f"max_period must lie between 1 and 1e9, got {self.max_period!r}")
        checks.flag("local_biases", self.local_biases)
        check_buckets(self.num_buckets, self.max_distance)

    def build(
        self, *, max_length: int, generator: torch.Generator | None = None
    ) -> RotaryTransformer:
        """A new stack; its positions are relative, so any length will do."""
        del max_length
        return RotaryTransformer(self, generator=generator)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data from which `from_dict` makes an equal configuration."""
        return {"kind": "rotary", **asdict(self)}

    @classmethod
    def from_dict(cls, data: object) -> RotaryConfig:
        """The configuration that `to_dict` described."""
        names = [field.name for field in fields(cls)]
        values = checks.fields("a rotary transformer", data, ["kind", *names])
        return cls(**{name: values[name] for name in names})


class RotaryTransformer(nn.Module):
    """h ← h + f(norm(h)) for each layer, from norm(embedded) on, then a norm.

    score[h, i, j] = s_h · ⟨R_i q_i, R_j k_j⟩ / √d + table[bucket(j − i), h], with q and k normed,
    R_i a rotation of pairs by i times their frequencies, and a learned scale s_h per head;
    feed-forward networks have the activation max(0, x)². The table is shared by all layers.
    """

    def __init__(self, config: RotaryConfig, *, generator: torch.Generator | None = None) -> None:
        """Start from weights drawn by the generator (default: torch's own)."""
        super().__init__()
        self.config = config
        self.positions = (
            RelativePositions(config.num_heads, config.num_buckets, config.max_distance, "local")
            if config.local_biases
            else None
        )
        self.layers = nn.ModuleList(
            _Layer(config, generator=generator) for _ in range(config.num_layers)
        )
        self.norm = nn.RMSNorm(config.width, eps=_NORM_EPSILON)
        self._length_multiple = 1

    def compile(self, *args: Any, **options: Any) -> None:
        """Compile the layers, one code for all of them, for a few static lengths."""
        self._length_multiple = _COMPILED_LENGTHS
        # Each length has its own code; torch compiles no more beyond its limit.
        dynamo = torch._dynamo.config
        dynamo.recompile_limit = max(dynamo.recompile_limit, _MOST_COMPILED)
        if options.get("backend", "inductor") == "inductor" and "mode" not in options:
            options = {"options": _compiler_options(), **options}
        for layer in self.layers:
            layer.compile(*args, **{**options, "dynamic": False})

    def forward(
        self,
        embedded: Float[Tensor, "batch length width"],
        mask: Bool[Tensor, "batch length"],
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch length width"]:
        """Hidden states; where the mask is False they are finite and mean nothing.

        Each row of the mask is True somewhere; with `causal`, at its first place, and a place sees
        itself and those before it alone.
        """
        length = mask.shape[1]
        missing = -length % self._length_multiple
        hidden = _normed(functional.pad(embedded, (0, 0, 0, missing)))
        biases = self._score_biases(functional.pad(mask, (0, missing)), hidden.dtype)
        if causal:
            places = torch.arange(length + missing, device=mask.device)
            biases = biases.masked_fill(places > places[:, None], float("-inf"))
        turns = _rotations(length + missing, self.config, hidden)
        for layer in self.layers:
            hidden = layer(hidden, turns, biases)
        normed: Tensor = self.norm(hidden[:, :length])
        return normed

    def _score_biases(
        self, mask: Bool[Tensor, "batch length"], dtype: torch.dtype
    ) -> Float[Tensor, "batch #heads #length length"]:
        """What all layers add to their scores: positions, and −∞ for keys that are padding."""
        length = mask.shape[1]
        if self.positions is None:
            biases = torch.zeros(1, 1, 1, 1, dtype=dtype, device=mask.device)
        else:
            biases = self.positions(length)[None]
        return biases.masked_fill(~mask[:, None, None, :], float("-inf"))


class _Layer(nn.Module):
    """Attention and a feed-forward network, each with its norm, added to what came in."""

    def __init__(self, config: RotaryConfig, *, generator: torch.Generator | None) -> None:
        super().__init__()
        heads_width = config.num_heads * config.head_width
        self.num_heads = config.num_heads
        # Devices other than CPUs always take the fused kernel; on CPUs it is slower.
        self.fused = False
        self.attention_norm = nn.RMSNorm(config.width, eps=_NORM_EPSILON)
        self.qkv = nn.Linear(config.width, 3 * heads_width, bias=False)
        self.score_scale = nn.Parameter(torch.full((config.num_heads, 1, 1), INITIAL_SCALE))
        self.out = nn.Linear(heads_width, config.width, bias=False)
        self.feedforward_norm = nn.RMSNorm(config.width, eps=_NORM_EPSILON)
        self.inner = nn.Linear(config.width, config.feedforward_width, bias=False)
        self.outer = nn.Linear(config.feedforward_width, config.width, bias=False)
        for linear in (self.qkv, self.out, self.inner, self.outer):
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5, generator=generator)

    def forward(
        self,
        hidden: Float[Tensor, "batch length width"],
        turns: tuple[Float[Tensor, "length half"], Float[Tensor, "length half"]],
        biases: Float[Tensor, "batch #heads #length length"],
    ) -> Float[Tensor, "batch length width"]:
        hidden = hidden + self._attend(self.attention_norm(hidden), turns, biases)
        inner = functional.relu(self.inner(self.feedforward_norm(hidden))).square()
        hidden = hidden + self.outer(inner)
        return hidden

    def _attend(
        self, hidden: Tensor, turns: tuple[Tensor, Tensor], biases: Tensor
    ) -> Float[Tensor, "batch length width"]:
        qkv = self.qkv(hidden).unflatten(-1, (3, self.num_heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        q, k = _rotated(_normed(q), *turns), _rotated(_normed(k), *turns)
        q = q * (self.score_scale * q.shape[-1] ** -0.5)
        if self.fused or hidden.device.type != "cpu":
            attended = functional.scaled_dot_product_attention(
                q.to(v.dtype), k.to(v.dtype), v, attn_mask=biases.to(v.dtype), scale=1.0
            )
        else:
            attended = torch.softmax(q @ k.mT + biases, dim=-1) @ v
        projected: Tensor = self.out(attended.transpose(1, 2).flatten(2))
        return projected


def _compiler_options() -> dict[str, Any]:
    """Vectors of 256 bits where a CPU has 512: as fast, and with 512 torch 2.13 makes the gradient
    of keys NaN for heads of width 64 in bfloat16.
    """
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return {"cpp.simdlen": 256} if wide else {}


def _normed(x: Float[Tensor, "... width"]) -> Float[Tensor, "... width"]:
    return functional.rms_norm(x, (x.shape[-1],), eps=_NORM_EPSILON)


def _rotations(
    length: int, config: RotaryConfig, like: Tensor
) -> tuple[Float[Tensor, "{length} half"], Float[Tensor, "{length} half"]]:
    """Cosine and sine of position times frequency, the frequencies from 1 down to 1/max_period."""
    half = config.head_width // 2
    exponents = torch.arange(half, dtype=torch.float64) / half
    # On the CPU in double precision: positions must be the same on all devices.
    angles = torch.arange(length, dtype=torch.float64)[:, None] * config.max_period**-exponents
    return angles.cos().to(like), angles.sin().to(like)


def _rotated(
    x: Float[Tensor, "batch heads length width"], cos: Tensor, sin: Tensor
) -> Float[Tensor, "batch heads length width"]:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
