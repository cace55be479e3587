"""An encoder of Hugging Face's transformers as the backbone of a denoiser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import huggingface_hub.constants
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from indel import checks, extras

# What names a repository: attention kernels, code, weights of a part, quantisers.
_FETCHING = frozenset(
    {
        "attn_implementation",
        "auto_map",
        "backbone",
        "backbone_config",
        "experts_implementation",
        "quantization_config",
        "trust_remote_code",
        "use_kernels",
        "use_pretrained_backbone",
        "use_timm_backbone",
    }
)


@dataclass(frozen=True)
class HuggingFaceConfig:
    """A bidirectional encoder such as BERT: its model type and what differs from its defaults.

    It starts from random weights; those of a published model go in with
    `denoiser.backbone.encoder.load_state_dict(model.state_dict(), strict=False)`.
    """

    model_type: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON data, e.g. {"hidden_size": 64, "num_hidden_layers": 2}."""

    def __post_init__(self) -> None:
        for name in self.options:
            if name.startswith("_") or name in _FETCHING:
                raise ValueError(
                    f"options must hold sizes and the like, got {name!r}, which can make "
                    "transformers fetch code or weights"
                )
        config = self.library_config()
        if config.is_encoder_decoder:
            raise ValueError(
                f"model_type {self.model_type!r} has a decoder; a backbone is one stack "
                "(the encoder of T5 is indel.model.Transformer)"
            )

    @property
    def width(self) -> int:
        """The width of its hidden states, and of the embeddings that go in."""
        width = getattr(self.library_config(), "hidden_size", None)
        return checks.integer(f"hidden_size of {self.model_type!r}", width, least=1)

    def build(
        self, *, max_length: int, generator: torch.Generator | None = None
    ) -> HuggingFaceEncoder:
        """A new encoder for up to max_length tokens and EOS."""
        if generator is not None:
            raise ValueError(
                "transformers draws initial weights from torch's global generator; "
                "call torch.manual_seed and leave generator out"
            )
        config = self.library_config()
        try:
            with _offline():
                model = _transformers().AutoModel.from_config(config, trust_remote_code=False)
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"no {self.model_type!r} can be built: {_one_line(error)}") from error
        encoder = HuggingFaceEncoder(model)
        self._try_out(encoder, max_length + 1)
        return encoder

    def _try_out(self, encoder: HuggingFaceEncoder, length: int) -> None:
        """Run the longest input once: models differ in how they limit positions."""
        mask = torch.ones(1, length, dtype=torch.bool)
        try:
            with torch.no_grad():
                encoder.eval()(torch.zeros(1, length, self.width), mask)
        except (IndexError, RuntimeError, ValueError) as error:
            raise ValueError(
                f"{self.model_type!r} fails on {length} positions (max_length and EOS): {error}; "
                "perhaps max_position_embeddings is too small"
            ) from error
        encoder.train()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data from which `from_dict` makes an equal configuration."""
        return {
            "kind": "hugging-face",
            "model_type": self.model_type,
            "options": dict(self.options),
        }

    @classmethod
    def from_dict(cls, data: object) -> HuggingFaceConfig:
        """The configuration that `to_dict` described."""
        values = checks.fields("a Hugging Face encoder", data, ["kind", "model_type", "options"])
        return cls(values["model_type"], values["options"])

    def library_config(self) -> Any:
        """The configuration of transformers' own kind."""
        library = _transformers()
        try:
            with _offline():
                return library.AutoConfig.for_model(self.model_type, **self.options)
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(
                f"model_type {self.model_type!r} with these options: {_one_line(error)}"
            ) from error


class HuggingFaceEncoder(nn.Module):
    """A model of transformers that takes `inputs_embeds` and gives `last_hidden_state`."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        # Tokens are embedded by the denoiser, and nothing is pooled. Parameters without a
        # gradient would be dead weight in the file and an error in distributed training.
        self.encoder.set_input_embeddings(nn.Identity())
        if hasattr(encoder, "pooler"):
            self.encoder.pooler = None

    def forward(
        self, embedded: Float[Tensor, "batch length width"], mask: Bool[Tensor, "batch length"]
    ) -> Float[Tensor, "batch length width"]:
        """Hidden states; where the mask is False they mean nothing."""
        output = self.encoder(inputs_embeds=embedded, attention_mask=mask.long())
        hidden: Tensor = output.last_hidden_state
        return hidden


@contextmanager
def _offline() -> Iterator[None]:
    """Inside of this block Hugging Face's libraries refuse to use the network."""
    before = huggingface_hub.constants.HF_HUB_OFFLINE
    huggingface_hub.constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        huggingface_hub.constants.HF_HUB_OFFLINE = before


def _one_line(error: Exception) -> str:
    """The message of an error of another library."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _transformers() -> Any:
    return extras.require("this backbone", "transformers", "transformers")
