"""`indel.train`: any denoiser on any data, by the recipe of the presets."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import indel
from indel.cli import run
from indel.model import DenoiserConfig
from indel.training import CheckpointError, TrainingError, load_run_config
from indel.training import train as train_config
from indel.training.presets import recipe, training_preset
from support.small_runs import final, very_small

WORDS = [f"{first}{second}{first}" for first in "abcde" for second in "abcde"]
TINY = {"width": 16, "num_layers": 1, "num_heads": 2, "head_width": 8, "feedforward_width": 32}
LETTERS = indel.CharacterVocabulary("abcde")


def tiny_model(schedule: indel.Schedule | None = None, **changes: Any) -> indel.Denoiser:
    schedule = schedule or indel.Schedule.paper(5, num_steps=4, rate=0.5)
    generator = torch.Generator().manual_seed(0)
    options = {"max_length": 12, **TINY, **changes}
    return indel.Denoiser.from_preset("tiny", LETTERS, schedule, generator=generator, **options)


def short(model: indel.Denoiser, folder: Path, **options: Any) -> Any:
    given = {"steps": 4, "batch_size": 4, **options}
    return indel.train(model, indel.Sequences(WORDS, LETTERS), folder, **given)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    short(tiny_model(), folder)
    return folder


# ---------------------------------------------------------------- what can be trained


def absorbing(vocab_size: int, prob_keep: float) -> indel.AbsorbingTransition:
    return indel.AbsorbingTransition(vocab_size, prob_keep, 0)


def neighbours(vocab_size: int, prob_keep: float) -> indel.MatrixTransition:
    steps = torch.eye(vocab_size).roll(1, dims=1)
    return indel.MatrixTransition(prob_keep * torch.eye(vocab_size) + (1 - prob_keep) * steps)


@pytest.mark.parametrize("family", [absorbing, neighbours])
def test_any_transition(tmp_path: Path, family: Callable[..., Any]) -> None:
    schedule = indel.Schedule.paper(5, num_steps=4, rate=0.5, transition=family)
    result = short(tiny_model(schedule), tmp_path)
    assert result.step == 4
    assert result.model.schedule == schedule


def test_steps_of_ones_own_no_limit_and_joint_weights(tmp_path: Path) -> None:
    keep = indel.UniformTransition(5, 0.7)
    steps = [indel.Step(0.1, 0.2, keep), indel.Step(0.3, 0.1, keep), indel.Step(0.0, 1.0, keep)]
    model = tiny_model(indel.Schedule(steps), limit_length=False, edit_weights="joint")
    trained = short(model, tmp_path).model
    assert (trained.length_limit, trained.config.edit_weights) == (None, "joint")
    assert trained.schedule == indel.Schedule(steps)


@dataclass(frozen=True)
class Convolution:
    """A backbone of one's own, without a linear layer."""

    width: int = 16

    def build(self, *, max_length: int, generator: torch.Generator | None = None) -> nn.Module:
        del max_length, generator
        return Smooth(self.width)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "test-convolution", "width": self.width}


class Smooth(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.filter = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, embedded: Tensor, mask: Tensor) -> Tensor:
        inside = (embedded * mask[..., None]).transpose(1, 2)
        return torch.tanh(self.filter(inside).transpose(1, 2))


def test_any_backbone(tmp_path: Path) -> None:
    def from_dict(data: Any) -> Convolution:
        return Convolution(data["width"])

    indel.model.register_backbone("test-convolution", from_dict)  # type: ignore[attr-defined]
    schedule = indel.Schedule.paper(5, num_steps=4, rate=0.5)
    model = indel.Denoiser(DenoiserConfig(Convolution(), LETTERS, schedule, max_length=12))
    before = model.backbone.filter.weight.clone()  # type: ignore[union-attr]
    trained = short(model, tmp_path).model
    assert isinstance(trained.backbone, Smooth)
    assert not torch.equal(trained.backbone.filter.weight, before)


def test_a_plain_list_of_strings(tmp_path: Path) -> None:
    result = indel.train(tiny_model(), WORDS, tmp_path, steps=4, batch_size=4)
    assert result.step == 4
    assert len(indel.generate(result.model, 3).texts) == 3
    assert indel.evaluate(result.model, WORDS[:4]).bits_per_token.mean > 0


def test_bytes_that_are_no_text_do_not_stop_it(tmp_path: Path) -> None:
    schedule = indel.Schedule.paper(256, num_steps=3, rate=0.5)
    model = indel.Denoiser.from_preset("tiny", indel.ByteVocabulary(), schedule, **TINY)
    result = indel.train(model, ["né", "nö", "nü", "na"], tmp_path, steps=2, batch_size=4)
    assert any("\N{REPLACEMENT CHARACTER}" in text for text in result.validation["texts"])


# ---------------------------------------------------------------- the run


def test_a_run_of_a_config_is_the_run_of_its_model_and_data(tmp_path: Path) -> None:
    """The engine sees the same two things, wherever they come from."""
    config = very_small(training__steps=6)
    one = train_config(config, tmp_path / "config")
    data = config.open_data()
    names = ("optimizer", "training", "validation")
    settings = {
        f"{section}.{name}": value
        for section, values in config.to_dict().items()
        if section in names
        for name, value in values.items()
        if name != "steps"
    }
    other = indel.train(config.denoiser(data), data, tmp_path / "given", steps=6, settings=settings)
    first, second = final(tmp_path / "config"), final(tmp_path / "given")
    assert one.validation == other.validation
    for name, weight in first.weights.items():
        assert torch.equal(weight, second.weights[name]), name


def test_it_resumes_to_the_same_bits(tmp_path: Path) -> None:
    steady = {"settings": {"training.save_every": 2}}
    short(tiny_model(), tmp_path / "whole", steps=4, **steady)
    first = short(tiny_model(), tmp_path / "parts", steps=4, **steady)
    whole = final(tmp_path / "whole")
    # As if it had been killed after step 2.
    shutil.rmtree(first.checkpoint)
    again = short(tiny_model(), tmp_path / "parts", steps=4, resume=True, **steady)
    assert again.step == 4
    for name, weight in final(tmp_path / "parts").weights.items():
        assert torch.equal(weight, whole.weights[name]), name


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": tiny_model(max_length=11)}, "another network"),
        ({"model": tiny_model(indel.Schedule.paper(5, 4, 0.4))}, "another noise schedule"),
        ({"data": WORDS[1:]}, "data.options"),
        ({"batch_size": 5}, "training.batch_size = 4, but now it is 5"),
    ],
)
def test_another_model_or_other_data_is_not_resumed(
    trained: Path, change: dict[str, Any], says: str
) -> None:
    given: dict[str, Any] = {"model": tiny_model(), "data": WORDS, "batch_size": 4, "steps": 4}
    with pytest.raises(CheckpointError, match=says):
        indel.train(folder=trained, resume=True, **{**given, **change})


def test_the_commands_read_its_folder(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(trained)
    assert run(["info", folder, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["steps_of_the_process"], facts["vocabulary_size"]) == (4, 5)
    assert run(["sample", folder, "-n", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == indel.generate(indel.load(folder), 2, seed=0).texts
    assert run(["evaluate", folder, "--data", "text8-sample"]) == 2
    assert "vocabulary" in capsys.readouterr().err
    assert run(["evaluate", folder]) == 2
    assert "given in Python" in capsys.readouterr().err
    config = load_run_config(trained)
    assert config.model is None
    assert config.process is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"steps": 0}, "steps must be an integer ≥ 1, got 0"),
        ({"settings": {"model.width": 8}}, "'model.width' is not a setting here"),
        ({"settings": {"optimizer.nam": "adam"}}, "did you mean 'name'"),
        ({"batch_size": -1}, "batch_size"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        short(tiny_model(), tmp_path, **options)


def test_data_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="has 40 tokens, and the model is made for 12"):
        indel.train(tiny_model(), [*WORDS, "a" * 40], tmp_path)
    with pytest.raises(TrainingError, match="same vocabulary"):
        indel.train(tiny_model(), indel.Sequences(["xyz", "xx", "y"]), tmp_path)


# ---------------------------------------------------------------- the recipe


def test_the_recipe_scales_with_the_number_of_steps() -> None:
    for steps in (1, 2, 30, 2_000, 100_000):
        sections = recipe(steps)
        optimizer = sections["optimizer"]
        assert optimizer["name"] == "muon"
        assert 1 <= optimizer["warm_up"] <= max(1, steps // 20)
        assert optimizer["schedule"] == "flat"
        assert 1 <= sections["validation"]["every"] <= steps
        assert 1 <= sections["training"]["save_every"] <= steps


def test_data_of_ones_own_has_the_recipe_for_its_steps(tmp_path: Path) -> None:
    from indel.training import load_config

    config = load_config("lines:words.txt", "tiny", overrides={"training.steps": 60})
    assert config.data.name == "lines:words.txt"
    assert config.optimizer.warm_up == recipe(60)["optimizer"]["warm_up"]
    with pytest.raises(ValueError, match="scale for data of one's own must be one of tiny, laptop"):
        training_preset("lines:words.txt", "paper")


def test_the_command_trains_on_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, folder = tmp_path / "words.txt", tmp_path / "run"
    file.write_text("\n".join(WORDS))
    sizes = ["--width", "16", "--layers", "1", "--steps-of-noise", "4", "--rate", "0.3"]
    rest = ["--steps", "2", "--batch-size", "4", "--seed", "3", "--learning-rate", "0.001"]
    arguments = ["train", f"lines:{file}", "--scale", "tiny", *sizes, *rest, "--out", str(folder)]
    assert run(arguments) == 0, capsys.readouterr().err
    written = json.loads((folder / "config.json").read_text())
    assert written["process"]["num_steps"] == 4
    assert written["training"]["seed"] == 3
    model = indel.load(folder)
    assert model.vocabulary == LETTERS
    assert (model.config.backbone.width, model.schedule.num_steps) == (16, 4)
    capsys.readouterr()
    assert run(["evaluate", str(folder), "--examples", "2"]) == 0
    assert run(["train", f"lines:{file}", "--vocabulary", "characters:xyz", "--dry-run"]) == 2
    assert "not in the vocabulary" in capsys.readouterr().err
    assert run(["train", f"lines:{file}x", "--dry-run"]) == 2
    assert "words.txtx" in capsys.readouterr().err
