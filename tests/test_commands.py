"""train, sample, evaluate and info: what they do, and one clear line for every mistake."""

import json
import re
from pathlib import Path

import pytest

from indel.cli import run

TINY = [
    "--set=data.options.numbers=16",
    "--set=data.options.max_step=2",
    "--set=data.options.min_length=4",
    "--set=data.options.max_length=6",
    "--set=model.max_length=24",
    "--set=model.width=16",
    "--set=model.num_layers=1",
    "--set=model.num_heads=2",
    "--set=model.head_width=8",
    "--set=model.feedforward_width=32",
    "--set=training.steps=4",
    "--set=training.batch_size=4",
    "--set=training.save_every=2",
    "--set=training.tensorboard=false",
    "--set=validation.every=4",
    "--set=validation.examples=4",
    "--set=validation.samples=2",
]
TRAIN = ["train", "arithmetic", "--scale", "tiny", *TINY]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert run([*TRAIN, "--out", str(folder)]) == 0
    return folder


def test_sample_prints_sequences_that_depend_on_the_seed_alone(trained: Path, capsys) -> None:
    def sampled(*options: str) -> list[str]:
        assert run(["sample", str(trained), "-n", "5", *options]) == 0
        return capsys.readouterr().out.splitlines()

    lines = sampled()
    assert len(lines) == 5
    assert all(0 <= int(number) < 16 for line in lines for number in line.split())
    assert sampled("--batch-size", "2") == lines
    assert sampled("--seed", "1") != lines
    assert [json.loads(line) for line in sampled("--json")] == [
        [int(number) for number in line.split()] for line in lines
    ]
    assert len(sampled("--calls", "3", "--temperature", "0.5", "--top-p", "0.9")) == 5


def test_evaluate_gives_a_bound_whose_parts_add_up(trained: Path, capsys) -> None:
    assert run(["evaluate", str(trained), "--examples", "8", "--samples", "8", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    means = {name: mean for name, (mean, _) in report.items() if name.startswith("  ")}
    steps = [mean for name, mean in means.items() if name.startswith("  step ")]
    assert len(steps) == 10
    # The divergences of the steps and that of the length, or else the parts, are the bound.
    bound = pytest.approx(report["nats a sequence"][0], rel=1e-6)
    assert sum(steps) + means["  length"] == bound
    assert sum(means.values()) - sum(steps) == bound
    assert 0.0 <= report["error rate"][0] <= 1.0
    assert run(["evaluate", str(trained), "--examples", "4", "--samples", "0"]) == 0
    assert "bits a token" in capsys.readouterr().out


def test_info_names_step_and_size(trained: Path, capsys) -> None:
    for path in (trained, *(trained / "checkpoints").iterdir()):
        assert run(["info", str(path)]) == 0
        shown = capsys.readouterr().out
        assert "parameters" in shown
        assert "T = 10, K = 16" in shown


def test_dry_run_prints_a_config_that_can_be_read_again(tmp_path: Path, capsys) -> None:
    assert run([*TRAIN, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"# parameters: [\d,]+\n", shown)
    assert "estimated time" in shown
    file = tmp_path / "config.toml"
    file.write_text(shown)
    assert run(["train", "--config", str(file), "--dry-run"]) == 0
    again = capsys.readouterr().out
    assert again.split("# folder")[0] == shown.split("# folder")[0]


def test_resume_goes_on_without_naming_the_task_again(trained: Path, capsys) -> None:
    longer = ["train", "--out", str(trained), "--resume", "--set=training.steps=6"]
    assert run(longer) == 0
    assert "done: step 6" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train"], "name a task"),
        (["train", "arithmetik"], "arithmetic"),
        (["train", "arithmetic", "--scale", "huge"], "laptop"),
        (["train", "arithmetic", "--config", "no-such-file.toml"], "no-such-file.toml"),
        (["train", "arithmetic", "--set", "training.stepz=3", "--dry-run"], "did you mean 'steps'"),
        (["train", "arithmetic", "--set", "training.steps", "--dry-run"], "KEY=VALUE"),
        (["train", "arithmetic", "--set", "training.steps=-3", "--dry-run"], "-3"),
        (["train", "text8", "--data", "no-such.zip", "--dry-run"], "no-such.zip"),
        (["train", "--unknown-flag"], "--unknown-flag"),
        (["sample", "no-such-model"], "no-such-model"),
        (["info", "no-such-model"], "no-such-model"),
        (["evaluate", "no-such-model"], "no-such-model"),
        ([*TRAIN, "--out", "{run}"], "holds a run already"),
        ([*TRAIN, "--set=training.seed=5", "--resume", "--out", "{run}"], "training.seed"),
        (["evaluate", "{run}", "--data", "text8-sample"], "vocabulary"),
        (["evaluate", "{run}", "--data", "no-such-data"], "text8"),
        (["evaluate", "{run}", "--split", "training"], "valid"),
        (["evaluate", "{run}", "--option", "path"], "KEY=VALUE"),
        (["sample", "{run}", "--device", "no-such-device"], "no-such-device"),
        (["sample", "{run}", "--temperature", "-1"], "-1"),
        (["sample", "{run}", "-n", "0"], "0"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(
    trained: Path, capsys, arguments: list[str], says: str
) -> None:
    code = run([argument.format(run=trained) for argument in arguments])
    shown = capsys.readouterr().err
    assert code == 2, shown
    assert says in shown
    assert len(shown.strip().splitlines()) == 1
    assert "Traceback" not in shown


def test_a_wrong_checksum_is_named(tmp_path: Path, capsys) -> None:
    file = tmp_path / "text8"
    file.write_bytes(b"not text8 at all")
    assert run(["train", "text8", "--data", str(file), "--dry-run"]) == 2
    assert str(file) in capsys.readouterr().err


def test_a_damaged_checkpoint_is_named(trained: Path, tmp_path: Path, capsys) -> None:
    import shutil

    copy = shutil.copytree(trained, tmp_path / "copy")
    for weights in copy.rglob("model.safetensors"):
        weights.write_bytes(weights.read_bytes()[:-100])
    assert run(["sample", str(copy)]) == 2
    assert str(copy) in capsys.readouterr().err
