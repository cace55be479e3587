"""What works with the base install: no extra is imported by a command that does not need it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

import pytest

from support.programs import environment

# Refuses to import the packages of all extras, as if they were not installed. torch and what most
# commands need is imported once, without extras too; each command then has a process of its own,
# with its own folder and streams.
WITHOUT_EXTRAS = """
import json, os, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

blocked, commands = map(json.loads, sys.argv[1:])
BLOCKED = set(blocked)
sys.meta_path.insert(0, Missing())
import indel.api.basics, indel.api.editing, indel.data, indel.loading, indel.text_repair.repairer
from indel.cli import main

codes = []
for folder, arguments in commands:
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        for number, name in enumerate(["out", "err"], start=1):
            os.dup2(os.open(f"{folder}.{name}", os.O_WRONLY | os.O_CREAT), number)
        sys.argv = ["indel", *arguments]
        main()
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(codes))
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


WORKING = {
    "info": (["info", "text8"], "parameters"),
    "sample": (["sample", "arithmetic", "-n", "1", "--calls", "2"], " "),
    "repair": (["repair", "a sentense", "--draws", "2", "--plain"], "a "),
    "evaluate": (
        ["evaluate", "text8", "--data", "text8-sample", "--examples", "2", "--times", "1"],
        "bits",
    ),
    "dry run": (["train", "arithmetic", "--scale", "tiny", "--dry-run"], "steps = "),
    "corrupt": (["corrupt", "abc"], "abc"),
    "push": (["push", "arithmetic", "someone/numbers", "--dry-run", "out"], "would be uploaded"),
}
"""Commands that need no extra, and what they show."""

REFUSED = {
    "train": (["train", "arithmetic", "--scale", "tiny", "--out", "run"], "train"),
    "reproduce": (["reproduce", "figure7"], "plots,train"),
    "compare": (["compare", "arithmetic", "--out", "run"], "plots"),
    "serve": (["serve"], "web"),
    "datasets": (["evaluate", "text8", "--data=huggingface:x", *TEXT8], "data"),
    "export": (["export", "text8", "new"], "plots"),
    "metrics of molecules": (["evaluate-molecules", "text8"], "molecules"),
    "broken molecules": (["mend-molecules", "text8", "C1CC"], "molecules"),
    "foreign network": (["info", "foreign"], "transformers"),
}
"""Commands that need an extra, and its name."""


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str
    folder: Path


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """All of these commands, run where no extra is found, each in a folder with a foreign model."""
    folders = {name: tmp_path_factory.mktemp(name) for name in (*WORKING, *REFUSED)}
    for folder in folders.values():
        make_foreign_model(folder / "foreign")
    known = {**WORKING, **REFUSED}
    commands = [(str(folder), known[name][0]) for name, folder in folders.items()]
    done = subprocess.run(
        [
            *(sys.executable, "-c", WITHOUT_EXTRAS),
            *(json.dumps(sorted(extra_packages())), json.dumps(commands)),
        ],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = {}
    for (name, folder), code in zip(folders.items(), json.loads(done.stdout), strict=True):
        out, err = (Path(f"{folder}.{end}").read_text() for end in ("out", "err"))
        found[name] = Outcome(code, out, err, folder)
    return found


def make_foreign_model(folder: Path) -> None:
    """A model whose network is one of transformers."""
    from indel.pretrained import pretrained_folder

    folder.mkdir()
    for file in pretrained_folder("arithmetic").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "checksums.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["backbone"] = {"kind": "hugging-face", "model_type": "bert", "options": {}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def test_the_extras_are_found() -> None:
    assert {"accelerate", "matplotlib", "gradio", "datasets", "transformers"} <= extra_packages()
    assert "torch" not in extra_packages()


@pytest.mark.parametrize("name", WORKING)
def test_what_needs_no_extra_works_without(name: str, outcomes: dict[str, Outcome]) -> None:
    assert outcomes[name].code == 0, outcomes[name].err
    assert WORKING[name][1] in outcomes[name].out


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_an_extra_names_it_in_one_line(name: str, outcomes: dict[str, Outcome]) -> None:
    found = outcomes[name]
    assert found.code == 2, found.err
    assert found.out == ""
    assert found.err.count("\n") == 1
    assert f'pip install "indel[{REFUSED[name][1]}]"' in found.err
    assert sorted(path.name for path in found.folder.iterdir()) == ["foreign"]


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
