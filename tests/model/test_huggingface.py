"""Other people's networks between our embedding and our heads."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from indel import Batch, CharacterVocabulary
from indel.model import Denoiser, DenoiserConfig, HuggingFaceConfig, register_backbone
from indel.model.backbones import Backbone, BackboneConfig
from indel.process import Schedule

VOCABULARY = CharacterVocabulary("ABCDE")
SCHEDULE = Schedule.paper(5, 6, 0.6)
TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 20,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def with_bert() -> Denoiser:
    torch.manual_seed(0)
    config = DenoiserConfig(HuggingFaceConfig("bert", TINY), VOCABULARY, SCHEDULE, max_length=12)
    return Denoiser(config)


def some_x_t() -> Batch:
    return Batch.from_lists([[0, 4, VOCABULARY.del_, 2, 1], [], [3, 3]])


def test_bert_trains_a_step() -> None:
    denoiser, x_t = with_bert(), some_x_t()

    def loss() -> Tensor:
        output = denoiser(x_t, 3)
        tokens = output.logits_token.log_softmax(-1)[x_t.mask][:, 0]
        return -tokens.mean() - output.logits_deletions[:, 0].log_softmax(-1)[:, 2].mean()

    optimizer = torch.optim.SGD(denoiser.parameters(), lr=0.05)
    before = loss()
    before.backward()
    trained = [name for name, p in denoiser.named_parameters() if not name.startswith("length")]
    for name in trained:
        gradient = denoiser.get_parameter(name).grad
        assert gradient is not None, name
        assert bool(gradient.isfinite().all()), name
    optimizer.step()
    assert loss().item() < before.item()


def test_bert_ignores_padding() -> None:
    denoiser, x_t = with_bert().eval(), some_x_t()
    together = denoiser(x_t.widened(9), 2)
    for row, tokens in enumerate(x_t.to_lists()):
        alone = denoiser(Batch.from_lists([tokens]), 2).logits_deletions[0]
        torch.testing.assert_close(
            together.logits_deletions[row, : len(tokens) + 1], alone, atol=1e-5, rtol=1e-5
        )


def test_bert_travels_in_a_folder(tmp_path: Path) -> None:
    denoiser, x_t = with_bert().eval(), some_x_t()
    denoiser.save_pretrained(tmp_path)
    loaded = Denoiser.from_pretrained(tmp_path)
    assert loaded.config == denoiser.config
    assert torch.equal(loaded(x_t, 4).logits_token, denoiser(x_t, 4).logits_token)


def test_unfit_models_are_refused() -> None:
    with pytest.raises(ValueError, match="'t5' has a decoder"):
        HuggingFaceConfig("t5")
    with pytest.raises(ValueError, match=r"'bert' fails on 21 positions .* max_position_embed"):
        HuggingFaceConfig("bert", TINY).build(max_length=20)
    HuggingFaceConfig("bert", TINY).build(max_length=19)
    with pytest.raises(ValueError, match="global generator"):
        HuggingFaceConfig("bert", TINY).build(max_length=12, generator=torch.Generator())


def test_transformers_is_imported_only_when_used() -> None:
    code = "import sys, indel.model; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class Average(nn.Module):
    """A backbone of our own: each position plus the mean of its sequence."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, embedded: Tensor, mask: Tensor) -> Tensor:
        weights = mask / mask.sum(dim=1, keepdim=True)
        return embedded + self.mix(torch.einsum("bl,blw->bw", weights, embedded))[:, None]


@dataclass(frozen=True)
class AverageConfig:
    width: int

    def build(self, *, max_length: int, generator: torch.Generator | None = None) -> Average:
        del max_length, generator
        return Average(self.width)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "average", "width": self.width}

    @classmethod
    def from_dict(cls, data: Any) -> "AverageConfig":
        return cls(data["width"])


def test_any_module_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(AverageConfig(8), BackboneConfig)
    assert isinstance(Average(8), Backbone)
    denoiser = Denoiser(DenoiserConfig(AverageConfig(8), VOCABULARY, SCHEDULE, max_length=12))
    denoiser.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="unknown kind of backbone 'average'"):
        Denoiser.from_pretrained(tmp_path)
    monkeypatch.setattr("indel.model.backbones._KINDS", {})
    register_backbone("average", AverageConfig.from_dict)
    loaded = Denoiser.from_pretrained(tmp_path)
    x_t = some_x_t()
    assert torch.equal(loaded(x_t, 2).logits_token, denoiser(x_t, 2).logits_token)
    with pytest.raises(ValueError, match="'average' is registered already"):
        register_backbone("average", AverageConfig.from_dict)
