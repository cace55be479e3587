"""A run becomes a model to give away."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from indel.cli import run
from indel.data import Text8Sample
from indel.model import Denoiser
from indel.text_repair.known_words import KnownWords
from indel.training import load_config, read_metrics, train


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "run"
    overrides = {
        "training.steps": 4,
        "training.batch_size": 4,
        "training.log_every": 1,
        "training.save_every": 4,
        "training.tensorboard": False,
        "validation.every": 2,
        "validation.examples": 2,
        "validation.samples": 0,
    }
    train(load_config("text8-sample", "tiny", overrides=overrides), folder)
    return folder


def test_card_and_weights(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "given"
    options = ["--examples", "4", "--title", "A name", "--words", "30"]
    assert run(["export", str(trained), str(folder), *options]) == 0
    said = capsys.readouterr().out.split()
    weights = load_file(folder / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float16}
    # What was measured is what is given away, by the command on the card.
    card = (folder / "README.md").read_text()
    (command,) = (line for line in card.splitlines() if "indel evaluate" in line)
    words = command.split("`")[1].split()
    assert run(["evaluate", str(folder), *words[3:]]) == 0
    assert said[1] in capsys.readouterr().out.split()
    known = KnownWords.read(folder)
    assert known is not None
    text = Text8Sample().text("train")
    assert known.counts["the"] == text.split().count("the")
    assert min(known.counts.values()) >= 30
    assert "# A name" in card
    assert said[1] in card
    assert "16 sequences, 512 tokens" in card
    assert "other work" not in card
    assert "insert/delete rate 0.6" in card
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    # The config beside it makes the same training again.
    assert run(["train", "--config", str(folder / "training.toml"), "--dry-run"]) == 0
    assert "steps = 4" in capsys.readouterr().out
    trained_on = Denoiser.from_pretrained(folder)
    assert all(weight.dtype == torch.float32 for weight in trained_on.parameters())


def test_what_is_refused(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(trained), str(tmp_path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert run(["export", str(tmp_path / "no"), str(tmp_path / "new")]) == 2
    assert "not the folder of a training run" in capsys.readouterr().err
    assert run(["export", str(trained), str(tmp_path / "new"), "--split", "best"]) == 2
    assert "valid, test" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert read_metrics(trained)
