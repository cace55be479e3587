"""`fuzzing.py WHAT COUNT SEED`: tries hostile inputs one by one, and fails at the first defect."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from typer.main import get_command

from indel import CharacterVocabulary
from indel.cli import app, run
from indel.commands.arguments import parsed_settings
from indel.model import Denoiser
from indel.process import Schedule
from indel.training import load_config
from support import hostile_inputs

LIMIT = 120  # seconds for one input, on a machine that does other work too
SMALL = {
    "data.options.numbers": 16,
    "data.options.max_length": 10,
    "model.width": 16,
    "model.num_layers": 1,
    "training.batch_size": 2,
}
# These would wait for visitors, or compute for long.
LEFT_OUT = ("serve", "reproduce", "repair", "evaluate-repair")
ATTEMPT = Callable[[random.Random], bool]
"""Tries one input; whether it is refused. What is not refused properly is raised."""


def build(overrides: list[str]) -> None:
    """All that a training run does before its first step."""
    settings = parsed_settings(overrides, "--set")
    config = load_config("arithmetic", "tiny", overrides={**SMALL, **settings})
    data = config.open_data()
    config.denoiser(data)
    data.batch(0, config.training.batch_size)


def configs() -> ATTEMPT:
    """Settings of a training run."""
    names = hostile_inputs.setting_names()

    def attempt(chance: random.Random) -> bool:
        chosen = hostile_inputs.overrides(chance, names)
        try:
            build(chosen)
        except (ValueError, OSError):
            return True
        except Exception as error:
            raise AssertionError(chosen) from error
        return False

    return attempt


def small_model() -> Path:
    """The folder of a model with a handful of weights."""
    schedule = Schedule.paper(4, 3, 0.6)
    sizes = {"max_length": 10, "width": 8, "num_layers": 1, "feedforward_width": 8}
    denoiser = Denoiser.from_preset("tiny", CharacterVocabulary("acgt"), schedule, **sizes)
    denoiser.length.fit(torch.tensor([1, 2, 3, 4]))
    denoiser.save_pretrained("model")
    return Path("model")


def folders() -> ATTEMPT:
    """Folders of models."""
    model, target = small_model(), Path("damaged")

    def attempt(chance: random.Random) -> bool:
        hostile_inputs.damaged_folder(chance, model, target)
        try:
            Denoiser.from_pretrained(target)
        except (ValueError, OSError) as error:
            return str(target) in str(error)
        return False

    return attempt


def command_lines() -> ATTEMPT:
    """Command lines; the files they may name lie in the current folder."""
    files = [str(small_model()), "text.txt", "empty", ".", "no-such-file"]
    Path("text.txt").write_text("some text\n")
    Path("empty").write_bytes(b"")
    options = {
        name: [option for each in command.params for option in each.opts if option.startswith("-")]
        for name, command in get_command(app).commands.items()  # type: ignore[attr-defined]
        if name not in LEFT_OUT
    }

    def attempt(chance: random.Random) -> bool:
        words = hostile_inputs.command_line(chance, options, files)
        words += ["--dry-run"] if words[0] == "train" else []
        errors = io.StringIO()
        try:
            with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
                code = run(words)
        except Exception as error:
            raise AssertionError(words) from error
        if code == 2 and hostile_inputs.is_one_line(errors.getvalue()):
            return True
        assert code == 0, (words, code, errors.getvalue())
        return False

    return attempt


def main() -> None:
    """The program."""
    kinds = {"configs": configs, "folders": folders, "command-lines": command_lines}
    what, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    attempt, refused = kinds[what](), 0
    for number in range(count):
        # A hang ends the program with the place where it hangs.
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        try:
            refused += attempt(random.Random(f"{seed} {number}"))
        except Exception:
            print(f"{what}: input {number} of seed {seed}", file=sys.stderr)
            raise
        faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"tried": count, "refused": refused}))


if __name__ == "__main__":
    main()
