"""The yardstick: the same network with a causal mask, which predicts one token after the other."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from indel import checks
from indel.batch import Batch
from indel.comparison.interface import Drawn, LikelihoodKind
from indel.model.backbones import BackboneConfig
from indel.model.rotary import RotaryConfig
from indel.randomness import index_at, uniform


class Autoregressive(nn.Module):
    """p(x) = Π_i p(x_i | x_{<i}) · p(EOS | x), exact; at max_length tokens EOS is certain.

    Embeddings serve as output matrix, as in the denoiser. Tokens are 0…K−1, EOS is K, and the
    start is K + 1, which is no output.
    """

    name = "autoregressive"
    likelihood_kind: LikelihoodKind = "exact"

    def __init__(self, vocabulary_size: int, backbone: RotaryConfig, max_length: int) -> None:
        super().__init__()
        self.max_length = checks.integer("max_length", max_length, least=1)
        self.eos = checks.integer("vocabulary_size", vocabulary_size, least=1)
        self.embedding = nn.Embedding(vocabulary_size + 2, backbone.width)
        self.backbone = backbone.build(max_length=max_length + 1)

    def log_probs(
        self, tokens: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "batch length+1 values"]:
        """log p(next | prefix) after 0…length tokens; what stands behind a place does not matter.

        Padding may hold any number.
        """
        length = tokens.shape[1]
        inputs = functional.pad(tokens.clamp(0, self.eos), (1, 0), value=self.eos + 1)
        seen = torch.ones_like(inputs, dtype=torch.bool)
        hidden = self.backbone(self.embedding(inputs), seen, causal=True)
        scale = self.embedding.embedding_dim**-0.5
        logits = functional.linear(hidden * scale, self.embedding.weight[: self.eos + 1])
        ended = torch.arange(length + 1, device=tokens.device) >= self.max_length
        going_on = torch.arange(self.eos + 1, device=tokens.device) < self.eos
        return torch.log_softmax(logits.masked_fill(ended[:, None] & going_on, -torch.inf), dim=-1)

    def loss(self, x_0: Batch, *, generator: torch.Generator) -> Float[Tensor, " batch"]:
        """−log p(x_0)."""
        del generator
        long = (x_0.lengths > self.max_length).nonzero()
        if len(long):
            raise ValueError(
                f"x_0 must not be longer than max_length = {self.max_length}, "
                f"got {int(x_0.lengths[long[0]])} tokens in row {int(long[0])}"
            )
        return -self._log_prob(x_0)

    @torch.no_grad()
    def negative_log_likelihood(
        self, x_0: Batch, *, generator: torch.Generator
    ) -> Float[Tensor, " batch"]:
        """−log p(x_0), summed in double precision."""
        del generator
        return -self._log_prob(x_0, torch.float64)

    def _log_prob(self, x_0: Batch, dtype: torch.dtype | None = None) -> Float[Tensor, " batch"]:
        targets = functional.pad(x_0.tokens, (0, 1), value=self.eos)
        places = torch.arange(targets.shape[1], device=targets.device)
        targets = targets.masked_fill(places >= x_0.lengths[:, None], self.eos)
        each = self.log_probs(x_0.tokens).gather(2, targets[..., None])[..., 0]
        return each.where(places <= x_0.lengths[:, None], 0.0).sum(dim=1, dtype=dtype)

    @torch.no_grad()
    def generate(self, count: int, *, generator: torch.Generator) -> Drawn:
        """One token after the other, for all rows at once, until all have ended."""
        tokens = torch.full((count, 0), self.eos)
        ended = torch.zeros(count, dtype=torch.bool)
        calls = 0
        while tokens.shape[1] < self.max_length and not bool(ended.all()):
            rows = (~ended).nonzero()[:, 0]
            prob = self.log_probs(tokens[rows])[:, -1].double().exp()
            noise = uniform(generator, count, 1, dtype=torch.float64)[rows, 0]
            drawn = torch.full((count, 1), self.eos)
            drawn[rows, 0] = index_at(prob.cumsum(dim=-1), noise)
            tokens = torch.cat([tokens, drawn], dim=1)
            ended = drawn[:, 0] == self.eos
            calls += 1
        lengths = (tokens != self.eos).sum(dim=1)
        return Drawn(Batch(tokens, lengths).to_lists(), calls)

    def infill(
        self,
        left: list[list[int]],
        right: list[list[int]],
        lengths: list[int] | None,
        *,
        generator: torch.Generator,
    ) -> Drawn | None:
        """It does not see what follows a gap: it cannot."""
        return None

    def repair(self, noisy: Batch, *, generator: torch.Generator) -> Drawn | None:
        """It has no process of corruption to undo: it cannot."""
        return None


def build(
    vocabulary_size: int, backbone: BackboneConfig, max_length: int, options: dict[str, Any]
) -> Autoregressive:
    """The yardstick for sequences of up to max_length tokens; it has no options."""
    checks.fields("the options of autoregressive", options, [])
    if not isinstance(backbone, RotaryConfig):
        raise ValueError(
            f"autoregressive needs a rotary backbone, which has a causal mask; got "
            f"{type(backbone).__name__}"
        )
    return Autoregressive(vocabulary_size, backbone, max_length)
