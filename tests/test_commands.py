"""train, sample, evaluate and info: what they do, and one clear line for every mistake."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.main import get_command

from indel.cli import app, run
from indel.pretrained import MODELS
from indel.randomness import RowSeeds

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
    units = {"nats_per_sequence", "bits_per_sequence", "bits_per_token", "error_rate"}
    assert report.keys() == {"sequences", "parts", "steps", *units}
    assert report["sequences"] == 8
    for estimate in (*(report[name] for name in units), *report["parts"].values()):
        assert estimate.keys() == {"mean", "standard_error"}
    parts = [part["mean"] for part in report["parts"].values()]
    # The parts, or else the divergences of the steps and that of the length, are the bound.
    bound = pytest.approx(report["nats_per_sequence"]["mean"], rel=1e-6)
    assert sum(parts) == bound
    steps = [step["mean"] for step in report["steps"]]
    assert len(steps) == 10
    assert sum(steps) + report["parts"]["length"]["mean"] == bound
    assert 0.0 <= report["error_rate"]["mean"] <= 1.0
    # What is not known is null: NaN is no JSON.
    assert run(["evaluate", str(trained), "--examples", "2", "--samples", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert report["error_rate"]["standard_error"] is None
    assert run(["evaluate", str(trained), "--examples", "4", "--samples", "0"]) == 0
    assert "bits per token" in capsys.readouterr().out


def test_info_names_step_and_size(trained: Path, capsys) -> None:
    for path in (trained, *(trained / "checkpoints").iterdir()):
        assert run(["info", str(path)]) == 0
        shown = capsys.readouterr().out
        assert "parameters" in shown
        assert re.search(r"steps of the process +10", shown)
        assert re.search(r"vocabulary size +16", shown)


def test_info_for_programs(trained: Path, capsys) -> None:
    assert run(["info", str(trained), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert all(re.fullmatch("[a-z_]+", name) for name in facts)
    assert (facts["vocabulary_size"], facts["steps_of_the_process"]) == (16, 10)
    assert facts["backbone"]["width"] == 16
    assert facts["config"]["training"]["batch_size"] == 4
    assert run(["info", "text8", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["config"] is None
    assert facts["parameters"] > 1_000_000


def test_models_lists_the_bundled_ones(capsys) -> None:
    assert run(["models"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in MODELS)
    assert run(["models", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert tuple(listed) == MODELS
    assert all((Path(facts["folder"]) / "config.json").is_file() for facts in listed.values())


class Seen(Exception):
    """What a command wanted to draw with."""


@pytest.mark.parametrize("command", ["sample", "evaluate"])
def test_seeds_share_no_noise(command: str, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"sample": ["-n64"], "evaluate": ["--examples=2", "--times=1", "--samples=64"]}

    def noise(seed: int) -> set[int]:
        def note(*_: object, generator: RowSeeds, **__: object) -> None:
            raise Seen(generator.seeds.tolist())

        monkeypatch.setattr("indel.sampling.generation.generate", note)
        with pytest.raises(Seen) as seen:
            run([command, str(trained), "--seed", str(seed), *options[command]])
        return set(seen.value.args[0])

    drawn = [noise(seed) for seed in (0, 1, 2, 1_000_003, 2**32 - 1)]
    assert len(drawn[0]) == 64
    assert len(set().union(*drawn)) == 64 * len(drawn)


def test_every_option_is_explained() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert len(commands) > 8
    for name, command in commands.items():
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), (name, parameter.name)


def test_completion_and_the_module_are_the_command(tmp_path: Path) -> None:
    def out(*arguments: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "indel", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert out("--version").startswith("indel ")
    words = {"COMP_WORDS": "indel ev", "COMP_CWORD": "1", "_INDEL_COMPLETE": "complete_bash"}
    assert out(**words).split() == ["evaluate-repair", "evaluate", "evaluate-molecules"]
    # Which shell asks is seen from the process above; the second command keeps bash there.
    shown = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m indel --show-completion; exit $?"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "_INDEL_COMPLETE" in shown.stdout, shown.stderr


def test_interrupted_training_exits_with_130(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    program = subprocess.Popen(
        [
            *(sys.executable, "-m", "indel", *TRAIN, "--set=training.steps=100000"),
            *("--set=validation.every=100000", "--out", str(folder)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(folder.glob("checkpoints/step-*")):
        assert program.poll() is None
        time.sleep(0.05)
    program.send_signal(signal.SIGINT)
    output, errors = program.communicate()
    assert program.returncode == 130, errors
    assert "interrupted; --resume continues" in output
    assert re.search(r"step \d+/100000, .* loss .* nats per sequence", errors)


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
