"""Configs: where they come from, what they refuse, how they are written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jaxtyping
import pytest

from indel.training import SCALES, TASKS, TrainingConfig, config_to_toml, load_config, parse_value


def test_preset_then_file_then_overrides(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[training]\nsteps = 7\nbatch_size = 16\n", encoding="utf-8")
    config = load_config("arithmetic", "tiny", file=file, overrides={"training.steps": 9})
    preset = load_config("arithmetic", "tiny")
    assert (config.training.steps, config.training.batch_size) == (9, 16)
    assert config.optimizer == preset.optimizer
    assert preset.training.steps not in (7, 9)


PRESETS = [(task, scale) for task in TASKS for scale in SCALES]
# The paper has no molecules.
PRESETS = [pair for pair in PRESETS if not (pair[0].startswith("moses") and pair[1] == "paper")]


@pytest.mark.parametrize(("task", "scale"), PRESETS)
def test_presets_build_and_survive_writing(task: str, scale: str, tmp_path: Path) -> None:
    config = load_config(task, scale, overrides={"data.options.note": 'a "b" ü\x7f\n'})
    file = tmp_path / "config.toml"
    file.write_text(config_to_toml(config), encoding="utf-8")
    assert load_config(file=file) == config
    assert TrainingConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_paper_presets_are_the_papers_numbers() -> None:
    arithmetic, text8 = load_config("arithmetic", "paper"), load_config("text8", "paper")
    for config, steps, layers, times in ((arithmetic, 100_000, 6, 10), (text8, 1_000_000, 12, 32)):
        assert (config.training.steps, config.training.batch_size) == (steps, 512)
        assert config.model.stack().num_layers == layers
        assert config.model.stack().position_init == "zeros"
        assert config.process.num_steps == times
        assert (config.optimizer.name, config.optimizer.warm_up) == ("adam", 5000)
        assert config.optimizer.learning_rate == 2e-4
        assert config.optimizer.schedule == "constant"
    assert text8.model.max_length == 127
    assert text8.model is not None
    assert text8.model.limit_length


BAD: list[tuple[dict[str, Any], str]] = [
    ({"training.stepps": 3}, r"no setting training\.stepps, did you mean 'steps'\?"),
    ({"trainig.steps": 3}, r"no section 'trainig', did you mean 'training'\?"),
    ({"steps": 3}, r"written section\.name"),
    ({"training.steps": 0}, r"training\.steps must be an integer ≥ 1, got 0"),
    ({"training.steps": True}, r"training\.steps must be an integer ≥ 1, got True"),
    ({"training.batch_size": 9, "training.accumulate": 2}, r"multiple of training\.accumulate = 2"),
    ({"optimizer.learning_rate": -1.0}, r"optimizer\.learning_rate must be a number > 0, got -1"),
    ({"optimizer.learning_rate": float("nan")}, r"optimizer\.learning_rate must be a number > 0"),
    ({"optimizer.beta2": 1.0}, r"optimizer\.beta2 must be a number ≥ 0 and < 1, got 1"),
    ({"optimizer.name": "adam", "optimizer.weight_decay": 0.1}, "weight_decay must be 0 for"),
    ({"process.rate": 1.5}, r"process\.rate must be a number ≥ 0 and < 1, got 1\.5"),
    ({"process.num_steps": 1}, r"process\.num_steps must be an integer ≥ 2, got 1"),
    ({"model.preset": "smal"}, r"model\.preset must be .*did you mean 'small'\?"),
    ({"model.width": 0}, r"model\.width must be an integer ≥ 1, got 0"),
    ({"data.options.seed": 1}, r"data\.options must be a table without a seed"),
    ({"validation.examples": 1}, r"validation\.examples must be an integer ≥ 2, got 1"),
]


# Values of another type: the checker that the tests install would find these first.
OF_ANOTHER_TYPE: list[tuple[dict[str, Any], str]] = [
    ({"training.batch_size": 2.5}, r"training\.batch_size must be an integer"),
    ({"training.times": "often"}, r"training\.times must be one of uniform, term-size, low-noise"),
    ({"training.compile": "yes"}, r"training\.compile must be true or false, got 'yes'"),
    ({"optimizer.name": "adma"}, r"optimizer\.name must be .*did you mean 'adam'\?"),
    ({"process.transition": "gauss"}, r"process\.transition must be one of"),
    (
        {"model.backbone": "t5", "model.position_init": "far"},
        r"model\.position_init must be one of",
    ),
    ({"model.backbone": "lstm"}, r"model\.backbone must be one of rotary, t5; got 'lstm'"),
    ({"model.position_init": "zeros"}, r"model\.position_init is no field of .*'rotary'"),
    ({"data.name": 3}, r"data\.name must be"),
]


@pytest.mark.parametrize(("overrides", "message"), BAD, ids=[str(bad) for bad, _ in BAD])
def test_bad_settings_are_refused_by_name(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_config("arithmetic", "tiny", overrides=overrides)


@pytest.mark.parametrize(("overrides", "message"), OF_ANOTHER_TYPE)
def test_settings_of_another_type_are_refused_by_name(
    overrides: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=message):
        load_config("arithmetic", "tiny", overrides=overrides)


def test_what_depends_on_the_data_is_refused_when_it_is_known() -> None:
    config = load_config("arithmetic", "tiny", overrides={"data.options.nummers": 3})
    with pytest.raises(ValueError, match="nummers"):
        config.open_data()
    limits = {"model.max_length": 3, "training.limit_length": True}
    config = load_config("arithmetic", "tiny", overrides=limits)
    with pytest.raises(ValueError, match=r"model\.max_length must be at least the longest"):
        config.denoiser(config.open_data())


def test_unknown_presets_and_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"task must be one of .*did you mean 'arithmetic'"):
        load_config("arithmetics", "tiny")
    with pytest.raises(ValueError, match="scale must be one of tiny, laptop, paper; got 'huge'"):
        load_config("text8", "huge")
    with pytest.raises(ValueError, match="there is no config file"):
        load_config(file=tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("training = [", encoding="utf-8")
    with pytest.raises(ValueError, match=r"broken\.toml is not TOML"):
        load_config(file=broken)
    broken.write_text("[training]\nsteps = 3\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"data\.name must be given"):
        load_config(file=broken)


def test_values_of_a_command_line() -> None:
    assert [parse_value(text) for text in ("3", "3e-4", "false", "text8", "[1, 2]")] == [
        3,
        3e-4,
        False,
        "text8",
        [1, 2],
    ]


def test_options_of_a_preset_are_for_its_own_data(tmp_path: Path) -> None:
    preset = load_config("text8-sample", "tiny")
    assert preset.data.options == {"chunk_length": 32}
    for name in ("arithmetic", "huggingface:somewhere", "text8"):
        other = load_config("text8-sample", "tiny", overrides={"data.name": name})
        assert (other.data.name, other.data.options) == (name, {})
    file = tmp_path / "own.toml"
    file.write_text('[data]\nname = "arithmetic"\n[data.options]\nnumbers = 9\n')
    config = load_config("text8-sample", "tiny", file=file, overrides={"data.options.max_step": 2})
    assert config.data.options == {"numbers": 9, "max_step": 2}
    assert config.optimizer == preset.optimizer
    same = {"data.name": "text8-sample", "data.options.chunk_length": 16}
    assert load_config("text8-sample", "tiny", overrides=same).data.options == {"chunk_length": 16}
    longer = load_config("arithmetic", "tiny", overrides={"data.options.max_length": 12})
    assert longer.data.options["numbers"] == 16


def test_configs_with_the_former_spelling_load_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    former = load_config("arithmetic", "tiny").to_dict()
    former["optimiser"] = former.pop("optimizer") | {"warm_up": 7}
    former["training"]["marginalise"] = not former["training"].pop("marginalize")
    former["data"]["options"]["normalise"] = True
    loaded = TrainingConfig.from_dict(former)
    assert loaded.optimizer.warm_up == 7
    assert loaded.training.marginalize
    assert loaded.data.options.pop("normalize")
    for name in ("optimiser", "marginalise", "normalise"):
        assert f"{name!r} of a config is called {name.replace('is', 'iz')!r} now" in caplog.text
    loaded = replace(loaded, training=replace(loaded.training, marginalize=False))
    changed = load_config("arithmetic", "tiny", overrides={"optimiser.warm_up": 7})
    assert changed == loaded


def test_a_file_that_names_no_optimizer_has_the_recipe_for_its_steps(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('[data]\nname = "text8-sample"\n[training]\nsteps = 300\n', encoding="utf-8")
    optimizer = load_config(file=file).optimizer
    assert (optimizer.name, optimizer.learning_rate, optimizer.warm_up) == ("muon", 3e-3, 15)
    # What a file does say stays.
    paper = load_config("text8", "paper")
    file.write_text(config_to_toml(paper), encoding="utf-8")
    assert load_config(file=file) == paper
