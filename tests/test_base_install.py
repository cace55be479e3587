"""What works with the base install: no extra is imported by a command that does not need it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

# Refuses to import the packages of all extras, as if they were not installed.
WITHOUT_EXTRAS = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

BLOCKED = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Missing())
from indel.cli import main
main()
"""
TEXT8 = ["--option=vocabulary=text8", "--option=max_length=9"]
EXTRAS = ("data", "molecules", "plots", "spelling", "tokenizers", "train", "transformers", "web")


def extra_packages() -> set[str]:
    """The modules of all extras of pyproject.toml."""
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {
        requirement.split(">=")[0]
        for extra in EXTRAS
        for requirement in project["optional-dependencies"][extra]
        if not requirement.startswith("indel[")
    }
    modules = packages_distributions().items()
    return {module for module, homes in modules if wanted & {home.lower() for home in homes}}


def indel(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in a process that finds no extra."""
    blocked = ",".join(extra_packages())
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, blocked, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )


def test_the_extras_are_found() -> None:
    assert {"accelerate", "matplotlib", "gradio", "datasets", "transformers"} <= extra_packages()
    assert "torch" not in extra_packages()


@pytest.mark.parametrize(
    ("arguments", "shows"),
    [
        (["info", "text8"], "parameters"),
        (["sample", "arithmetic", "-n", "1"], " "),
        (["repair", "a sentense", "--draws", "2", "--plain"], "a "),
        (
            ["evaluate", "text8", "--data", "text8-sample", "--examples", "2", "--times", "1"],
            "bits",
        ),
        (["train", "arithmetic", "--scale", "tiny", "--dry-run"], "steps = "),
        (["corrupt", "abc"], "abc"),
    ],
)
def test_what_needs_no_extra_works_without(
    arguments: list[str], shows: str, tmp_path: Path
) -> None:
    done = indel(*arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert shows in done.stdout


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["train", "arithmetic", "--scale", "tiny", "--out", "run"], "train"),
        (["reproduce", "figure7"], "plots,train"),
        (["serve"], "web"),
        (["evaluate", "text8", "--data=huggingface:x", *TEXT8], "data"),
        (["export", "text8", "new"], "plots"),
        (["evaluate-molecules", "text8"], "molecules"),
        (["mend-molecules", "text8", "C1CC"], "molecules"),
        (["info", "foreign"], "transformers"),
    ],
)
def test_what_needs_an_extra_names_it_in_one_line(
    arguments: list[str], extra: str, tmp_path: Path
) -> None:
    from indel.pretrained import pretrained_folder

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for file in pretrained_folder("arithmetic").iterdir():
        (foreign / file.name).write_bytes(file.read_bytes())
    (foreign / "checksums.json").unlink(missing_ok=True)
    config = json.loads((foreign / "config.json").read_text(encoding="utf-8"))
    config["backbone"] = {"kind": "hugging-face", "model_type": "bert", "options": {}}
    (foreign / "config.json").write_text(json.dumps(config), encoding="utf-8")
    done = indel(*arguments, folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f'pip install "indel[{extra}]"' in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["foreign"]


def test_serve_says_at_once_that_it_loads(tmp_path: Path) -> None:
    """Before the page's packages are imported: this one says when, and ends the program."""
    (tmp_path / "gradio.py").write_text("print('imported', flush=True)\nraise SystemExit(3)\n")
    folders = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "indel", "serve"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
        check=False,
    )
    assert done.returncode == 3, done.stderr
    said, then = done.stdout.splitlines()
    assert said.startswith("indel is loading")
    assert then == "imported"
