"""Every shell command of the Markdown files is run; NOT_RUN says which are only parsed, and why."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer

from indel.cli import app, run
from support.programs import environment
from support.shown_commands import PAGES, ROOT, Shown, make_files, named_commands, shown_commands
from support.small_requests import SMALL_RUNS, small_measures

TWO_STEPS = [
    *("--set", "training.steps=2", "--set", "training.batch_size=4"),
    *("--set", "training.tensorboard=false", "--set", "training.compile=false"),
    *("--set", "validation.examples=4", "--set", "validation.samples=4"),
]
SHORT_TRAINING = ["--scale", "tiny", *TWO_STEPS]
"""Appended to every training: the last of two values counts, and two steps make a whole run."""

SHORT_COMPARISON = [
    *("--scale", "tiny", "--budget", "0.01", "--seeds", "1"),
    *("--processes", "autoregressive,in-place-uniform"),
]

APPENDED: dict[str, list[str]] = {
    "train": SHORT_TRAINING,
    "compare": SHORT_COMPARISON,
    "sample": ["-n", "1"],
    "infill": ["-n", "1"],
    "mutate": ["-n", "1"],
    "evaluate": ["--examples", "4", "--samples", "2"],
    "evaluate-molecules": ["--samples", "8", "--reference", "50"],
    "mend-molecules": ["--draws", "1"],
    "score": ["--chains", "2", "--times", "2"],
    "evaluate-repair": ["--limit", "1", "--no-checkers"],
    "tune-repair": ["--limit", "1", "--model", "./a-model"],
    "repair": [],
    "info": [],
    "push": [],
    "models": [],
    "reproduce": [],
    "serve": ["--port", "0"],
}
"""What makes each command fast."""

SMALLER = {"--particles": "2", "--chains": "2"}
"""Options that only some of the commands have, and what makes them fast."""

SHORT_TABLE = [
    *("--scale", "tiny", "--seeds", "1", "--rates", "0.6"),
    *(f"--set={name}={value}" for name, value in SMALL_RUNS.items()),
]
"""Appended to what trains the runs of a table; figures take models that are there."""

NOT_RUN = {
    r"--multi_gpu|--use_fsdp": "there is no GPU",
    r"^PAGE=|^ask\b": "tests/web/test_api.py runs it",
}
"""Commands that are only parsed, and why."""


def reason_not_to_run(command: Shown) -> str | None:
    line = " ".join(command.words)
    return next((why for part, why in NOT_RUN.items() if re.search(part, line)), None)


def found(name: str) -> tuple[typer.Context, Any]:
    """A command of `indel`, and the context that it is run in."""
    whole = typer.main.get_command(app)
    context = whole.make_context("indel", [name])
    command = whole.get_command(context, name)
    assert command is not None, f"there is no command {name}"
    return context, command


def parse(words: list[str]) -> None:
    """Whether there is such a command and it has these options."""
    context, command = found(words[0])
    command.make_context(words[0], words[1:], parent=context)


def parse_launch(words: list[str]) -> None:
    """Whether Accelerate's launcher has these options."""
    from accelerate.commands.launch import launch_command_parser

    launch_command_parser().parse_args(words)


def parse_install(words: list[str]) -> None:
    """Whether the extras that pip is asked for exist."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"(?:\.|indel)\[([\w,]+)\]", " ".join(words))
    assert set(extras.split(",")) <= project["optional-dependencies"].keys(), words
    if "-c" in words:
        assert (ROOT / words[words.index("-c") + 1]).is_file(), words


def recipe(target: str) -> list[Shown]:
    """What a target of the Makefile says to `indel`; installing is left out."""
    told = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = re.findall(r"^\S*/bin/indel (.*)$", told.stdout, re.MULTILINE)
    return [Shown("Makefile", ["indel", *shlex.split(line)]) for line in lines]


def run_here(command: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    """Run `indel …` in this process and keep what it prints where it is to go."""
    assert command.indel is not None
    capsys.readouterr()
    code = run(quick(command.indel))
    printed = capsys.readouterr()
    assert code == 0, f"{command}\n{printed.err}"
    if command.output is not None:
        Path(command.output).write_text(printed.out)
    assert printed.out.strip() or "--out" in command.words, f"{command} prints nothing"


def serve(command: Shown) -> None:
    """Run `indel serve …` until the page is there, and end it as its user does."""
    assert command.indel is not None
    with subprocess.Popen(
        [sys.executable, "-m", "indel", *quick(command.indel)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            server.stdout.readline()
            ready = server.stdout.readline()
            assert ready.startswith("indel is ready at "), server.stderr.read()
            assert httpx.get(ready.split()[4], timeout=300).status_code == 200
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == 0, server.stderr.read()
        finally:
            server.kill()


def launch(command: Shown) -> None:
    """Run `accelerate launch …` as the processes that it starts."""
    assert command.indel is not None
    start = command.words[2 : -len(command.indel)]
    words = [*command.words[:2], "--main_process_port", "0", *start, *quick(command.indel)]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(words, env=environment(PATH=path), capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert done.stdout.strip(), f"{command} prints nothing"


def quick(words: list[str]) -> list[str]:
    """What is said to `indel`, with fewer samples, steps and examples."""
    name = words[0]
    assert name in APPENDED, f"say in APPENDED what makes indel {name} fast"
    smaller = [
        word for option, value in SMALLER.items() if option in words for word in (option, value)
    ]
    return [*with_what_is_there(words), *appended(words), *smaller]


def appended(words: list[str]) -> list[str]:
    """What makes a command fast; some have two forms."""
    match words:
        case ["compare", *rest] if "--report" in rest:
            return []
        case ["reproduce", what, *_] if not what.startswith("figure"):
            return SHORT_TABLE
        case ["train", *rest] if "--start" in rest:
            # The network must be that of the model to start from.
            return [*TWO_STEPS, "--scale", "laptop"]
    return APPENDED[words[0]]


def with_what_is_there(words: list[str]) -> list[str]:
    """The sample of text8 instead of all of it, which is not in the repository, and so on."""
    match words:
        case ["train" | "compare" as name, "text8", *rest]:
            rest = without(rest, "--data", "--option")
            # Scale tiny has fewer steps than the pages speak of.
            steps = ["--set", "process.num_steps=32"] if name == "train" else []
            return [name, "text8-sample", *rest, *steps]
        case ["reproduce", *rest]:
            return ["reproduce", *without(rest, "--data")]
        case ["evaluate-molecules", *rest] if importlib.util.find_spec("fcd") is None:
            return ["evaluate-molecules", *(each for each in rest if each != "--fcd")]
    return words


def without(words: list[str], *options: str) -> list[str]:
    """The words but for these options and their values."""
    return [
        word
        for before, word in pairwise(["", *words])
        if word not in options and before not in options
    ]


def check(command: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a command, or parse one that cannot be run."""
    why_not = reason_not_to_run(command)
    asked = command.indel
    if asked is not None:
        parse(asked)
    match command.words:
        case ["accelerate", "launch", *rest]:
            parse_launch(rest)
            if asked is not None and not why_not:
                launch(command)
        case ["indel", "serve", *_]:
            serve(command)
        case ["indel", *_]:
            if not why_not:
                run_here(command, capsys)
        case ["pip", "install", *rest]:
            parse_install(rest)
        case ["make", target]:
            for each in recipe(target):
                check(each, capsys)
        case _:
            assert why_not, f"{command.page}: nothing runs {command}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_run(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In their order, in one folder, with fewer samples, steps and examples."""
    if commands := list(shown_commands(page)):
        make_files(tmp_path, molecules=page.name == "molecules.md")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("INDEL_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.delitem(sys.modules, "rewards", raising=False)
        with small_measures():
            for command in commands:
                check(command, capsys)


# ---------------------------------------------------------------- commands within sentences


def check_named(words: list[str]) -> None:
    """The command and its options, or the program, exist."""
    match words:
        case ["indel", name, *rest] if not name.startswith("-"):
            context, command = found(name)
            params = command.get_params(context)
            known = {name for each in params for name in (*each.opts, *each.secondary_opts)}
            assert {word for word in rest if word.startswith("-")} <= known, words
        case ["indel", option]:
            whole = typer.main.get_command(app)
            assert any(option in each.opts for each in whole.params), words
        case ["python", "-m", "indel"]:
            pass
        case ["python", file, *rest]:
            text = (ROOT / file).read_text(encoding="utf-8")
            for word in rest:
                assert not word.startswith("-") or f'"{word}"' in text, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_within_sentences_exist(page: Path) -> None:
    for words in named_commands(page):
        check_named(words)


# ---------------------------------------------------------------- what is wrong is seen


@pytest.mark.parametrize(
    "line",
    ["indel sample --loudly", "indel sing", "indel --sing", "python studies/infilling.py --sing"],
)
def test_a_wrong_command_within_a_sentence_is_seen(line: str) -> None:
    with pytest.raises(AssertionError, match=r"sing|loudly"):
        check_named(line.split())


def test_commands_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.shown_commands.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nindel sample text8 -n 2 > out.txt  # two\nls\n```\nindel not in a block\n"
        "```console\n$ indel models\ntext8\n```\n"
    )
    first, second, third = shown_commands(page)
    assert first.indel == ["sample", "text8", "-n", "2"]
    assert first.output == "out.txt"
    assert second.words == ["ls"]
    assert second.indel is None
    assert third.indel == ["models"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("indel sample text8 --loudly", "--loudly"),
        ("indel sing", "no command sing"),
        ("indel sample nowhere", "there is no model at nowhere"),
        ("accelerate launch --loudly -m indel sample text8", "2"),
        ("accelerate launch --cpu -m indel sample text8 --loudly", "--loudly"),
        ('pip install -c constraints.txt -e ".[loud]"', "loud"),
        ("ls", "nothing runs ls"),
        ("make noise", "noise"),
    ],
)
def test_a_wrong_command_is_seen(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((Exception, SystemExit), match=says):
        check(Shown("here", shlex.split(line)), capsys)
