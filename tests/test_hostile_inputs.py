"""Hostile configs, model folders and command lines: one line and code 2, no traceback, no hang."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from indel.cli import run
from support import hostile_inputs
from support.fuzzing import build
from support.programs import environment


def fuzz(what: str, count: int, seed: int, folder: Path) -> int:
    """Try so many inputs in a process of their own, without type checkers; how many are refused."""
    done = subprocess.run(
        [sys.executable, "-m", "support.fuzzing", what, str(count), str(seed)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(INDEL_CACHE=str(folder / "cache"), HF_HUB_OFFLINE="1"),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["tried"] == count
    refused: int = counts["refused"]
    return refused


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        (f"model.width={10**400}", "model.width must be an integer ≤"),
        (f"optimizer.clip={10**400}", "optimizer.clip must be a number"),
        ("model.max_distance=1000000007", "max_distance must be an integer ≤ 1000000"),
        ("model.num_layers=10000000", "num_layers must be an integer ≤ 10000"),
        (f"optimizer.learning_rate={10**400}", "optimizer.learning_rate must be a number"),
        (f"training.steps={10**400}", "training.steps must be an integer ≤"),
        (f"training.seed={2**63}", "training.seed must be an integer ≤"),
        ("process.num_steps=1000000000", "process.num_steps must be an integer ≤ 10000"),
        ("model.max_length=1000000007", "max_length must be an integer ≤ 1000000"),
        ("model.feedforward_width=1000000000000", "takes .* GB; this machine has"),
        ("data.options.numbers=1000000000000", "takes .* GB; this machine has"),
        ("training.batch_size=1000000000000", "takes .* GB; this machine has"),
        (f"data.options.numbers={10**400}", "numbers must be an integer ≤"),
        ("data.options.numbers=" + "[" * 1000 + "]" * 1000, "nested too deeply"),
    ],
)
def test_sizes_are_refused_before_anything_is_allocated(setting: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        build([setting])


@pytest.mark.parametrize("content", ["a = " + "[" * 1000 + "]" * 1000, "a = " + "9" * 5000, "\x00"])
def test_a_hostile_config_file_is_one_line(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(content, encoding="utf-8")
    assert run(["train", "arithmetic", "--config", str(file), "--dry-run"]) == 2
    assert hostile_inputs.is_one_line(capsys.readouterr().err)


FEW = {"configs": 100, "folders": 100, "command-lines": 40}
MANY = {"configs": 2000, "folders": 2000, "command-lines": 1000}


@pytest.mark.parametrize("what", FEW)
def test_some_hostile_inputs(what: str, tmp_path: Path) -> None:
    assert fuzz(what, FEW[what], 0, tmp_path) > FEW[what] / 3


@pytest.mark.slow
@pytest.mark.parametrize("what", MANY)
def test_many_hostile_inputs(what: str, tmp_path: Path) -> None:
    assert fuzz(what, MANY[what], 1, tmp_path) > MANY[what] / 3
