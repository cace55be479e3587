"""Every shell command of the Markdown files is run; NOT_RUN says which are only parsed, and why."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from indel.cli import app, run
from support.programs import environment
from support.shown_commands import PAGES, ROOT, Shown, make_files, named_commands, shown_commands

SHORT_TRAINING = [
    *("--scale", "tiny", "--set", "training.steps=2", "--set", "training.batch_size=4"),
    *("--set", "training.tensorboard=false", "--set", "training.compile=false"),
    *("--set", "validation.examples=4", "--set", "validation.samples=4"),
]
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
    "score": ["--chains", "2", "--times", "2"],
    "evaluate-repair": ["--limit", "1", "--no-checkers"],
    "tune-repair": ["--limit", "1", "--model", "./a-model"],
    "repair": [],
    "info": [],
    "push": [],
    "models": [],
    "reproduce": [],
}
"""What makes each command fast."""

SMALLER = {"--particles": "2", "--chains": "2"}
"""Options that only some of the commands have, and what makes them fast."""

KEPT = {
    "train": SHORT_TRAINING,
    "compare": SHORT_COMPARISON,
    "tune-repair": ["--model", "./a-model"],
}
"""What the slow test appends: nothing trains for hours, and the bundled model stays as it is."""

NOT_RUN = {
    r"--multi_gpu|--use_fsdp": "there is no GPU",
    r"text8\.zip": "text8 is not in the repository",
    r"^indel train text8 ": "text8 is not in the repository",
    r"--data FOLDER": "MOSES is not in the repository",
    r"^indel serve$": "tests/test_serve_command.py runs it",
    r"^PAGE=|^ask\b": "tests/web/test_api.py runs it",
    r"compare --report": "tests/test_compare_command.py runs it",
    r"reproduce (table1|all report)": "tests/test_reproduce_command.py runs it with small runs",
}
"""Commands that are only parsed, and why."""

LONG = r"--compare|^accelerate|runs/two"
"""Commands that only the slow test runs."""


def reason_not_to_run(command: Shown, quickly: bool) -> str | None:
    reasons = {**NOT_RUN, LONG: "it is slow"} if quickly else NOT_RUN
    line = " ".join(command.words)
    return next((why for part, why in reasons.items() if re.search(part, line)), None)


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


def run_here(command: Shown, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Run `indel …` in this process and keep what it prints where it is to go."""
    assert command.indel is not None
    capsys.readouterr()
    code = run([*command.indel, *more])
    printed = capsys.readouterr()
    assert code == 0, f"{command}\n{printed.err}"
    if command.output is not None:
        Path(command.output).write_text(printed.out)
    assert printed.out.strip() or "--out" in command.words, f"{command} prints nothing"


def launch(command: Shown, more: list[str]) -> None:
    """Run `accelerate launch …` as the processes that it starts."""
    words = [*command.words[:2], "--main_process_port", "0", *command.words[2:], *more]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(words, env=environment(PATH=path), capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert done.stdout.strip(), f"{command} prints nothing"


def additions(words: list[str], quickly: bool) -> list[str]:
    """The options that are appended to what is said to `indel`."""
    name = words[0]
    if not quickly:
        return KEPT.get(name, [])
    assert name in APPENDED, f"say in APPENDED what makes indel {name} fast"
    smaller = [
        word for option, value in SMALLER.items() if option in words for word in (option, value)
    ]
    return [*APPENDED[name], *smaller]


def check(command: Shown, quickly: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a command, or parse one that cannot be run."""
    why_not = reason_not_to_run(command, quickly)
    asked = command.indel
    if asked is not None:
        parse(asked)
    match command.words:
        case ["accelerate", "launch", *rest]:
            parse_launch(rest)
            if asked is not None and not why_not:
                launch(command, additions(asked, quickly))
        case ["indel", *words]:
            if not why_not:
                run_here(command, additions(words, quickly), capsys)
        case ["pip", "install", *rest]:
            parse_install(rest)
        case ["make", target]:
            for each in recipe(target):
                parse(each.words[1:])
                if not quickly:
                    check(each, quickly, capsys)
        case _:
            assert why_not, f"{command.page}: nothing runs {command}"


@pytest.mark.slow
@pytest.mark.parametrize("quickly", [True, False])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_run(
    page: Path,
    quickly: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In their order, in one folder; quickly means with fewer samples, steps and examples."""
    if commands := list(shown_commands(page)):
        make_files(tmp_path)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("INDEL_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.delitem(sys.modules, "rewards", raising=False)
        for command in commands:
            check(command, quickly, capsys)


# ---------------------------------------------------------------- commands within sentences


def check_named(words: list[str]) -> None:
    """The command and its options, or the program, exist."""
    match words:
        case ["indel", name, *rest] if not name.startswith("-"):
            context, command = found(name)
            known = {option for each in command.get_params(context) for option in each.opts}
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
    )
    first, second = shown_commands(page)
    assert first.indel == ["sample", "text8", "-n", "2"]
    assert first.output == "out.txt"
    assert second.words == ["ls"]
    assert second.indel is None


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
        check(Shown("here", shlex.split(line)), True, capsys)
