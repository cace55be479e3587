"""`make gpu-check` compares what it should, and says so where there is no GPU."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from support.programs import environment

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "gpu_check.py"


def test_every_way_is_there() -> None:
    found = runpy.run_path(str(PROGRAM))
    names = {gpus: [way.name for way in found["ways"](gpus)] for gpus in (0, 1, 4)}
    assert names[0] == ["CPU, eager", "CPU, compiled", "CPU, bfloat16"]
    assert names[1] == ["CPU, eager", "GPU, eager", "GPU, compiled", "GPU, bfloat16"]
    assert names[4] == [*names[1], "4 GPUs, FSDP"]
    command = found["ways"](4)[-1].command(["text8-sample"])
    launched = command[command.index("launch") + 1 : command.index("indel.cli") - 1]
    from accelerate.commands.launch import launch_command_parser

    assert launch_command_parser().parse_args([*launched, "-m", "x"]).num_processes == 4


def test_distance_and_speed() -> None:
    found = runpy.run_path(str(PROGRAM))
    assert found["furthest"]([10.0, 21.0], [10.0, 20.0]) == pytest.approx(0.05)
    records = [{"seconds": second} for second in (9.0, 10.0, 11.0, 12.0)]
    assert found["speed"](records, tokens=100) == pytest.approx(100.0)


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: make gpu-check")
def test_without_a_gpu_the_cpu_is_checked() -> None:
    done = subprocess.run(
        [sys.executable, PROGRAM, "--steps", "4", "--batch-size", "8"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("there is no GPU")
    rows = re.findall(r"^\| CPU, (\w+) \| [\d.]+ \| (\S+) \| [\d,]+ \|$", done.stdout, re.M)
    distances = {name: float(value) for name, value in rows}
    assert distances.keys() == {"eager", "compiled", "bfloat16"}
    assert distances["eager"] == 0.0
    assert distances["compiled"] < 1e-3
    assert 0.0 < distances["bfloat16"] < 5e-2
