"""Commands of several processes give what one process gives."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from indel.cli import run
from indel.process import Schedule
from indel.sharing import Processes
from support.denoisers import tiny_denoiser

TYPED = "Teh frist line\n\nis follwed by anohter,\nand by a thrid oen.\n"
COMMANDS = {
    "sample": ["sample", "{model}", "-n", "7", "--batch-size", "2", "--calls", "3", "--json"],
    "evaluate": [
        *("evaluate", "{model}", "--data", "arithmetic", "--examples", "5"),
        *("--times", "2", "--samples", "3", "--batch-size", "2", "--json"),
    ],
    "repair": ["repair", "--file", "-", "--plain"],
    "score": [
        *("score", "{model}", "{numbers}", "--reference", "{numbers}"),
        *("--chains", "2", "--times", "1", "--json"),
    ],
}
MARK = "--- end of a command"
PROGRAM = f"""
import json, sys
from indel.cli import run
for arguments in json.loads(sys.argv[1]):
    assert run(arguments) == 0
    print({MARK!r}, flush=True)
"""


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def launch(program: list[str], count: int) -> list[subprocess.Popen[bytes]]:
    """What a launcher does: the same program, told by the environment which of how many it is."""
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen(
            program,
            env={**os.environ, **where, "RANK": str(index), "WORLD_SIZE": str(count)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for index in range(count)
    ]


def finished(workers: list[subprocess.Popen[bytes]], text: str = "") -> list[str]:
    """What each process printed; only the first one is given standard input."""
    try:
        answers = []
        for index, worker in enumerate(workers):
            out, problems = worker.communicate(text.encode() if index == 0 else b"", timeout=240)
            assert worker.returncode == 0, problems.decode()
            answers.append(out.decode())
        return answers
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def small_model(folder: Path) -> Path:
    """A model of the numbers that the data are made of."""
    tiny_denoiser(Schedule.paper(512, 4, 0.6), max_length=64, max_deletions=None).save_pretrained(
        folder / "model"
    )
    return folder / "model"


def test_two_processes_print_what_one_does(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    numbers, model = tmp_path / "numbers.txt", small_model(tmp_path)
    numbers.write_text("1 2 3 4\n2 4 6\n5 6\n")
    commands = {
        name: [each.format(numbers=numbers, model=model) for each in arguments]
        for name, arguments in COMMANDS.items()
    }
    program = [sys.executable, "-c", PROGRAM, json.dumps(list(commands.values()))]
    first, second = finished(launch(program, 2), TYPED)
    together = first.split(f"{MARK}\n")[:-1]
    assert second == f"{MARK}\n" * len(COMMANDS)  # all is printed once
    typed = tmp_path / "typed.txt"
    typed.write_text(TYPED)
    for (name, arguments), shared in zip(commands.items(), together, strict=True):
        alone = [str(typed) if each == "-" else each for each in arguments]
        assert run(alone) == 0
        assert shared == capsys.readouterr().out, name
    assert "first line" in together[2]


@pytest.mark.slow
def test_the_launcher_of_accelerate_shares_rows(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model = small_model(tmp_path)
    launcher = [
        *(sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2"),
        *("--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"),
        *("--main_process_port", str(free_port())),
    ]
    arguments = [each.format(model=model) for each in COMMANDS["sample"]]
    shared = subprocess.run(
        [*launcher, "-m", "indel", *arguments], capture_output=True, text=True, check=True
    )
    assert run(arguments) == 0
    assert shared.stdout == capsys.readouterr().out


def test_alone_nothing_is_shared() -> None:
    assert Processes.launched({}) == Processes()
    # One process of a launcher needs nobody, and a cluster's WORLD_SIZE alone says nothing.
    environment = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "x", "MASTER_PORT": "1"}
    assert Processes.launched(environment) == Processes()
    assert Processes.launched({"WORLD_SIZE": "8"}) == Processes()
    assert not torch.distributed.is_initialized()


def test_each_process_has_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert Processes(5, 8).device("cuda") == "cuda:1"
    assert Processes(5, 8).device("cuda:3") == "cuda:3"
    assert Processes(5, 8).device("cpu") == "cpu"
