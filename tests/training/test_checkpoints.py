"""Checkpoints are whole or not there."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest
import torch

from indel.model import Denoiser
from indel.training import (
    CheckpointError,
    best,
    find_checkpoint,
    latest,
    load_config,
    load_run_config,
    read_checkpoint,
    train,
)
from indel.training.checkpoints import tidy
from support.small_runs import final, start_program, very_small


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    train(very_small(training__steps=12, training__save_every=2, validation__every=4), folder)
    return folder


def test_the_newest_and_the_best_are_kept(finished: Path) -> None:
    kept = sorted(path.name for path in (finished / "checkpoints").iterdir())
    chosen = best(finished)
    assert chosen is not None
    newest = {"step-00000010", "step-00000012"}
    assert set(kept) == newest | {chosen.name}
    assert find_checkpoint(finished).name == "step-00000012"
    assert find_checkpoint(finished, prefer_best=True) == chosen
    assert find_checkpoint(chosen) == chosen


def test_the_denoiser_of_a_checkpoint_is_the_average(finished: Path) -> None:
    path = find_checkpoint(finished)
    snapshot = read_checkpoint(path)
    denoiser = Denoiser.from_pretrained(path / "model")
    assert snapshot.averages is not None
    for name, weight in denoiser.state_dict().items():
        assert torch.equal(weight, snapshot.averages[name])
    assert any(not torch.equal(snapshot.weights[n], w) for n, w in snapshot.averages.items())


def test_every_run_writes_its_config(finished: Path) -> None:
    config = load_run_config(finished)
    assert config.training.steps == 12
    assert load_config(file=finished / "config.toml") == config
    with pytest.raises(CheckpointError, match="no folder of a training run"):
        load_run_config(finished / "none")


DAMAGES = {
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "one bit": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\x01"),
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
}
FILES = ["manifest.json", "optimiser.safetensors", "model/model.safetensors", "state.json"]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_skipped_with_a_message(
    finished: Path,
    tmp_path: Path,
    file: str,
    damage: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    newest = latest(tmp_path)
    assert newest is not None
    if file == "manifest.json" and damage == "cut off":
        return  # only the line end after the last bracket
    DAMAGES[damage](newest / file)
    with caplog.at_level(logging.WARNING):
        found = latest(tmp_path)
    assert found is not None
    assert found.name == "step-00000010"
    assert str(newest) in caplog.text
    with pytest.raises(CheckpointError, match="no whole checkpoint"):
        read_checkpoint(newest)


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(tmp_path: Path) -> None:
    train(very_small(training__steps=10), tmp_path)
    expected = final(tmp_path)
    newest = latest(tmp_path)
    assert newest is not None
    (newest / "optimiser.safetensors").write_bytes(b"half")
    unfinished = newest.with_name(f".unfinished-{newest.name}-1")
    unfinished.mkdir()
    assert train(very_small(training__steps=10), tmp_path, resume=True).step == 10
    assert not unfinished.exists()
    for name, weight in final(tmp_path).weights.items():
        assert torch.equal(weight, expected.weights[name])


def test_nothing_to_find(tmp_path: Path) -> None:
    assert latest(tmp_path) is None
    assert best(tmp_path) is None
    with pytest.raises(CheckpointError, match="holds no checkpoint; expected is the folder of"):
        find_checkpoint(tmp_path)


def test_a_full_disk_is_reported_and_the_last_checkpoint_survives(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(very_small(training__steps=5), folder)
    before = final(folder)
    newest = latest(folder)
    assert newest is not None
    size = (newest / "optimiser.safetensors").stat().st_size
    # The system itself refuses to let a file grow beyond this, as it would on a full disk.
    program = start_program(folder, resume=True, file_limit=size - 1000)
    _, errors = program.communicate()
    assert program.returncode == 2, errors
    assert "cannot write the checkpoint" in errors
    assert f"the last good checkpoint is {newest}" in errors
    assert "Traceback" not in errors
    assert [path.name for path in (folder / "checkpoints").iterdir()] == [newest.name]
    assert final(folder).step == before.step == 5
    # With room again it goes on.
    assert train(very_small(), folder, resume=True).step == 20


def test_state_is_plain_json(finished: Path) -> None:
    path = find_checkpoint(finished)
    suffixes = {file.suffix for file in path.rglob("*") if file.is_file()}
    assert suffixes == {".json", ".safetensors"}
    state = json.loads((path / "state.json").read_text(encoding="utf-8"))
    assert state["step"] == 12


def damage(checkpoint: Path) -> None:
    (checkpoint / "optimiser.safetensors").write_bytes(b"half")


def test_damaged_checkpoints_never_push_out_good_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = very_small(training__steps=20, training__save_every=5)
    train(config, tmp_path)
    steps = sorted((tmp_path / "checkpoints").iterdir())
    for path in steps:
        damage(path)
    # All are damaged: the run starts anew, and what it saves stays, whatever number it has.
    shorter = very_small(training__steps=6, training__save_every=2)
    with caplog.at_level(logging.WARNING):
        result = train(shorter, tmp_path, resume=True)
    assert result.checkpoint is not None
    assert result.checkpoint.is_dir()
    assert latest(tmp_path) == result.checkpoint
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert {f"damaged-{path.name}" for path in steps} < names
    assert "step-00000004" in names
    for path in steps:
        assert f"the checkpoint {path} is damaged" in caplog.text
    assert train(config, tmp_path, resume=True).step == 20


def test_one_damaged_while_the_run_goes_on_is_not_counted(tmp_path: Path) -> None:
    train(very_small(training__steps=6, training__save_every=2, validation__every=100), tmp_path)
    newest = latest(tmp_path)
    assert newest is not None
    damage(newest)
    tidy(tmp_path, keep=1, spared=())
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert names == {"damaged-step-00000006", "step-00000004"}
    again = newest.with_name("step-00000004")
    again.rename(newest)
    damage(newest)
    tidy(tmp_path, keep=1, spared=())
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert names == {"damaged-step-00000006", "damaged-step-00000006-2"}


@pytest.mark.parametrize("manifest", ["{}", "[]", "3", "[" * 5000 + "]" * 5000])
def test_a_manifest_that_does_not_list_the_files_is_damage(
    finished: Path, tmp_path: Path, manifest: str
) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    newest = find_checkpoint(tmp_path)
    (newest / "manifest.json").write_text(manifest, encoding="utf-8")
    assert find_checkpoint(tmp_path) != newest


def test_a_disk_that_fills_between_checkpoints_is_named(tmp_path: Path) -> None:
    # The configs fit, but not many records.
    never = {"training__save_every": 100_000, "validation__every": 100_000}
    program = start_program(tmp_path / "run", file_limit=6000, training__steps=200, **never)
    _, errors = program.communicate()
    assert program.returncode == 2, errors
    (message,) = (line for line in errors.splitlines() if "cannot write" in line)
    assert "metrics.jsonl: File too large; make room, then resume" in message
    assert "Errno" not in errors
