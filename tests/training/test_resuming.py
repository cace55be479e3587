"""A run that was stopped or killed ends with the same bits as one that was not."""

from __future__ import annotations

import json
import logging
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from indel.training import CheckpointError, TrainingError, latest, load_config, train
from indel.training.checkpoints import Snapshot, read_checkpoint, write_checkpoint
from support.programs import environment
from support.small_runs import final, records, settings, start_program, very_small


def assert_same(first: Snapshot, second: Snapshot) -> None:
    assert first.step == second.step
    for name in ("weights", "averages", "optimizer"):
        ours, theirs = getattr(first, name), getattr(second, name)
        assert (ours or {}).keys() == (theirs or {}).keys()
        for key in ours or {}:
            assert torch.equal(ours[key], theirs[key]), (name, key)
    clocks = {"seconds": 0, "cpu_seconds": 0}
    assert first.state | clocks == second.state | clocks


VARIANTS: dict[str, dict[str, Any]] = {
    "muon": {},
    "adam, no average": {"optimizer__name": "adam", "optimizer__average_decay": 0.0},
    "dropout, accumulation, limit": {
        "model__backbone": "t5",
        "model__dropout": 0.1,
        "training__accumulate": 2,
        "training__limit_length": True,
        "training__sort_by_length": True,
        "training__edit_samples": 2,
    },
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_resumed_run_is_the_same_bit_for_bit(tmp_path: Path, changes: dict[str, Any]) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(very_small(**changes), whole)
    assert train(very_small(training__steps=10, **changes), parts).step == 10
    torch.rand(3)  # what others draw from torch's own generator does not matter
    result = train(very_small(**changes), parts, resume=True)
    assert result.step == 20
    assert not result.interrupted
    assert_same(final(whole), final(parts))
    assert records(parts) == records(whole)


def test_a_flat_run_is_extended_bit_for_bit(tmp_path: Path) -> None:
    flat = {"optimizer__schedule": "flat", "optimizer__cool_down": 0.4}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(very_small(**flat), whole)
    # Two checkpoints stay and the one before the rates fall; it is the one that is needed.
    cooled = train(very_small(training__steps=10, training__save_every=1, **flat), parts)
    assert cooled.checkpoint is not None
    weights = final(parts).weights
    result = train(very_small(**flat), parts, resume=True)
    assert result.step == 20
    assert_same(final(whole), final(parts))
    assert records(parts) == records(whole)
    # What had been cooled down for ten steps can still be loaded.
    kept = read_checkpoint(cooled.checkpoint.with_name("cooled-00000010"))
    assert all(torch.equal(kept.weights[name], weights[name]) for name in weights)


def test_a_flat_run_without_its_flat_part_is_not_extended(tmp_path: Path) -> None:
    flat = {"optimizer__schedule": "flat", "training__steps": 10}
    train(very_small(**flat), tmp_path)
    for step in (5, 6):
        shutil.rmtree(tmp_path / "checkpoints" / f"step-{step:08d}", ignore_errors=True)
    with pytest.raises(TrainingError, match=r"a checkpoint of step 6 or before.* there is none"):
        train(very_small(**flat | {"training__steps": 20}), tmp_path, resume=True)


def test_a_change_of_the_seed_changes_the_run(tmp_path: Path) -> None:
    """The comparison above can fail."""
    train(very_small(training__steps=5), tmp_path / "a")
    train(very_small(training__steps=5, training__seed=1), tmp_path / "b")
    with pytest.raises(AssertionError):
        assert_same(final(tmp_path / "a"), final(tmp_path / "b"))


def test_records_after_the_checkpoint_are_dropped(tmp_path: Path) -> None:
    train(very_small(training__steps=10), tmp_path)
    before = records(tmp_path)
    with (tmp_path / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"kind": "train", "step": 11, "loss": 1.0}\n{"kind": "train", "st')
    train(very_small(training__steps=12), tmp_path, resume=True)
    after = records(tmp_path)
    assert after[: len(before)] == before
    assert [r["step"] for r in after if r["kind"] == "train"] == list(range(1, 13))


def test_another_config_is_refused_by_name(tmp_path: Path) -> None:
    train(very_small(training__steps=5), tmp_path)
    for name, value in {
        "process__rate": 0.4,
        "model__width": 32,
        "optimizer__learning_rate": 0.1,
        "training__batch_size": 16,
        "training__seed": 3,
        "data__options__numbers": 20,
    }.items():
        field = ".".join(name.split("__")[:2])
        with pytest.raises(CheckpointError, match=rf"{field} = .*but now it is"):
            train(very_small(training__steps=5, **{name: value}), tmp_path, resume=True)
    harmless = very_small(training__steps=6, validation__every=3, training__keep=1)
    assert train(harmless, tmp_path, resume=True).step == 6


def test_another_vocabulary_under_the_same_name_is_refused(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    text, tokenizer = tmp_path / "text.txt", tmp_path / "tokenizer.json"
    text.write_text("a b a b " * 200, encoding="utf-8")
    overrides = {k: v for k, v in settings(training__steps=1).items() if "data." not in k} | {
        "data.name": f"file:{text}",
        "data.options.vocabulary": f"tokenizer:{tokenizer}",
        "data.options.chunk_length": 6,
        "data.options.cache": str(tmp_path / "cache"),
    }

    def run(words: dict[str, int], *, resume: bool) -> None:
        made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="?"))
        made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        made.save(str(tokenizer))
        config = load_config("text8-sample", "tiny", overrides=overrides)
        train(config, tmp_path / "run", resume=resume)

    run({"?": 0, "a": 1, "b": 2}, resume=False)
    with pytest.raises(CheckpointError, match="another vocabulary"):
        run({"?": 0, "b": 1, "a": 2}, resume=True)


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path) -> None:
    train(very_small(training__steps=1), tmp_path)
    with pytest.raises(TrainingError, match="holds a run already: resume it"):
        train(very_small(training__steps=1), tmp_path)


def kill_and_resume(folder: Path, kills: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "support.killing", folder, str(kills), "7"],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["kills"] == kills
    for number in range(counts["runs"]):
        assert_same(final(folder / "whole"), final(folder / f"killed-{number}"))
        assert records(folder / "whole") == records(folder / f"killed-{number}")


def test_killed_three_times(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, 3)


@pytest.mark.slow
def test_killed_twenty_times(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, 20)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_ends_the_run(tmp_path: Path, number: signal.Signals) -> None:
    program = start_program(tmp_path / "run", training__steps=100_000, validation__every=100_000)
    assert program.stdout is not None
    assert program.stdout.readline() == "started\n"
    while not (tmp_path / "run" / "checkpoints").exists():
        assert program.poll() is None
        time.sleep(0.05)
    program.send_signal(number)
    output, errors = program.communicate()
    assert program.returncode == 0, errors
    result = json.loads(output)
    assert result["interrupted"]
    assert 0 < result["step"] < 100_000
    assert final(tmp_path / "run").step == result["step"]
    assert records(tmp_path / "run")[-1]["step"] == result["step"]


DAMAGED_LINES = [
    b"no JSON",
    b'{"kind": "train"}',
    b'{"kind": "train", "step": "7"}',
    b"[1, 2]",
    b"\xff\xfe\x00",
    b"[" * 5000,
    b"",
]


def test_damaged_records_are_set_aside_and_the_run_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train(very_small(training__steps=10), tmp_path)
    before = records(tmp_path)
    path = tmp_path / "metrics.jsonl"
    good = path.read_bytes().splitlines(keepends=True)
    bad = b"".join(line + b"\n" for line in DAMAGED_LINES)
    path.write_bytes(good[0] + bad + b"".join(good[1:]))
    assert records(tmp_path) == before
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        train(very_small(training__steps=12), tmp_path, resume=True)
    assert records(tmp_path)[: len(before)] == before
    assert (tmp_path / "metrics.damaged.jsonl").read_bytes() == bad
    assert "7 damaged lines: moved to metrics.damaged.jsonl" in caplog.text


def test_a_second_run_in_a_folder_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = start_program(folder, training__steps=100_000, validation__every=100_000)
    while not list(folder.glob("checkpoints/step-*")):
        assert first.poll() is None
        time.sleep(0.05)
    try:
        with pytest.raises(TrainingError, match=f"another run is writing .*process {first.pid}"):
            train(very_small(), folder, resume=True)
    finally:
        first.kill()  # not even this leaves the folder locked
        first.communicate()
    assert (folder / ".lock").exists()
    step = final(folder).step
    assert train(very_small(training__steps=step + 1), folder, resume=True).step == step + 1
    assert not (folder / ".lock").exists()


def test_a_run_that_cannot_start_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="multiple"):
        train(very_small(training__batch_size=7, training__accumulate=2), tmp_path / "run")
    (tmp_path / "file").write_text("x")
    with pytest.raises(TrainingError, match="cannot write to the folder"):
        train(very_small(), tmp_path / "file" / "run")
    with pytest.raises(ValueError, match=r"longest sequence"):
        train(very_small(model__max_length=2, training__limit_length=True), tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_data_that_has_changed_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    content = "some words and more of them " * 100
    text.write_text(content, encoding="utf-8")
    overrides = {k: v for k, v in settings(training__steps=1).items() if "data." not in k} | {
        "data.name": f"file:{text}",
        "data.options.vocabulary": "text8",
        "data.options.chunk_length": 6,
        "data.options.cache": str(tmp_path / "cache"),
    }

    def run(steps: int, *, resume: bool) -> None:
        overrides["training.steps"] = steps
        train(load_config("text8-sample", "tiny", overrides=overrides), folder, resume=resume)

    folder = tmp_path / "run"
    run(1, resume=False)
    # One letter, of which neither the size nor the vocabulary tells.
    text.write_text(content[:1500] + "z" + content[1501:], encoding="utf-8")
    with pytest.raises(CheckpointError, match="another content"):
        run(2, resume=True)
    text.write_text(content, encoding="utf-8")
    run(2, resume=True)
    # Checkpoints of before there were fingerprints.
    older = tmp_path / "older"
    shutil.copytree(folder, older)
    text.write_text(content.upper().lower() + "and so on", encoding="utf-8")
    newest = latest(older)
    assert newest is not None
    snapshot = read_checkpoint(newest)
    assert snapshot.state.pop("data_fingerprint")
    write_checkpoint(older, snapshot)
    folder = older
    run(3, resume=True)
