"""Weights of Hugging Face's T5 encoder in our `Transformer`."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from indel.model.transformer import Transformer, TransformerConfig


def load_t5_encoder(transformer: Transformer, state_dict: Mapping[str, Tensor]) -> None:
    """Fill a stack with the weights of a `T5EncoderModel` (or of a T5 with decoder, left out).

    The sizes must agree; token embeddings are not part of the stack and are ignored.

    Paper: App. C.1
    """
    weights = {
        ours: _joined(state_dict, theirs) for ours, theirs in _sources(transformer.config).items()
    }
    beyond = f"encoder.block.{transformer.config.num_layers}."
    if any(name.startswith(beyond) for name in state_dict):
        raise ValueError(
            f"the T5 weights have more than {transformer.config.num_layers} layers (num_layers)"
        )
    for name, parameter in transformer.named_parameters():
        if weights[name].shape != parameter.shape:
            raise ValueError(
                f"{name} has shape {tuple(parameter.shape)}, but T5's "
                f"{' + '.join(_sources(transformer.config)[name])} {tuple(weights[name].shape)}"
            )
    transformer.load_state_dict(weights)


def _sources(config: TransformerConfig) -> dict[str, list[str]]:
    """For each of our parameters T5's, one below the other."""
    first = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    sources = {"positions.table": [first], "norm.weight": ["encoder.final_layer_norm.weight"]}
    inner = ("wi",) if config.activation == "relu" else ("wi_0", "wi_1")
    for number in range(config.num_layers):
        ours, theirs = f"layers.{number}", f"encoder.block.{number}.layer"
        attention, dense = f"{theirs}.0.SelfAttention", f"{theirs}.1.DenseReluDense"
        sources |= {
            f"{ours}.attention_norm.weight": [f"{theirs}.0.layer_norm.weight"],
            f"{ours}.attention.qkv.weight": [f"{attention}.{part}.weight" for part in "qkv"],
            f"{ours}.attention.out.weight": [f"{attention}.o.weight"],
            f"{ours}.feedforward_norm.weight": [f"{theirs}.1.layer_norm.weight"],
            f"{ours}.feedforward.inner.weight": [f"{dense}.{part}.weight" for part in inner],
            f"{ours}.feedforward.outer.weight": [f"{dense}.wo.weight"],
        }
    return sources


def _joined(state_dict: Mapping[str, Tensor], names: list[str]) -> Tensor:
    for name in names:
        if name not in state_dict:
            raise ValueError(
                f"the T5 weights lack {name}; num_layers or activation differ, or it is no T5"
            )
    return torch.cat([state_dict[name] for name in names])
