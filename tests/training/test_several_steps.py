"""Training for several numbers of steps at once, and the commands that choose one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import indel
from indel import load
from indel.cli import run
from indel.training import TrainingError, train
from support.small_runs import final, very_small

SEVERAL = {"process__other_num_steps": [2, 6]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("several") / "run"
    train(very_small(**SEVERAL), path)
    return path


def test_a_resumed_run_ends_with_the_same_bits(folder: Path, tmp_path: Path) -> None:
    train(very_small(training__steps=10, **SEVERAL), tmp_path / "run")
    train(very_small(**SEVERAL), tmp_path / "run", resume=True)
    whole, parts = final(folder).weights, final(tmp_path / "run").weights
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_evaluate_prints_the_bound_for_each(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["evaluate", str(folder), "--examples", "8", "--samples", "0"]
    assert run([*settings, "--steps", "2,4,6", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["by_steps"]
    assert [row["steps"] for row in rows] == [2, 4, 6]
    assert len({row["nats_per_sequence"]["mean"] for row in rows}) == 3
    assert run([*settings, "--json"]) == 0
    usual = json.loads(capsys.readouterr().out)
    assert usual["nats_per_sequence"] == rows[1]["nats_per_sequence"]
    assert len(usual["steps"]) == 4
    assert run([*settings, "--steps", "6,2"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[0] == "6"
    for steps, message in (("5", "4 or 2 or 6 steps, got 5"), ("two", "takes numbers with commas")):
        assert run([*settings, "--steps", steps]) == 2
        assert message in capsys.readouterr().err


def test_samples_take_the_steps_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = load(folder)
    assert run(["sample", str(folder), "-n", "3", "--steps", "6"]) == 0
    assert capsys.readouterr().out.splitlines() == indel.generate(model.with_steps(6), 3).texts
    assert run(["infill", str(folder), "3 {}", "-n", "2", "--steps", "2"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown == indel.infill(model.with_steps(2), "3 {}", 2).texts
    assert run(["sample", str(folder), "--steps", "7"]) == 2
    assert "trained for 4 or 2 or 6 steps, got 7" in capsys.readouterr().err


def test_bad_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must differ in their number of steps"):
        train(very_small(process__other_num_steps=[4]), tmp_path / "run")
    with pytest.raises(ValueError, match=r"process.num_steps must be an integer ≥ 2"):
        very_small(process__other_num_steps=[1])
    with pytest.raises(TrainingError, match="'term-size' needs one number of steps"):
        train(very_small(training__times="term-size", **SEVERAL), tmp_path / "run")
