"""Does training work on your GPUs? A few steps in each way to compute them, beside the CPU.

python benchmarks/gpu_check.py                  `make gpu-check`; ends with code 1 if a loss differs
python benchmarks/gpu_check.py --scale laptop   the same with a larger network

Each way is a run of `indel train` with the same seed, so with the same weights, batches and noise.
Without a GPU it says so and checks the ways of the CPU.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import torch

from indel.training import load_config, read_metrics

FLOAT32, BFLOAT16 = 1e-3, 5e-2
"""How far a loss may be from that of the CPU in float32, as a share of it."""
WARM_UP = 2
"""Steps that the speed leaves out: they compile, and fill caches."""


@dataclass(frozen=True)
class Way:
    """One way to compute a training step."""

    name: str
    tolerance: float = FLOAT32
    settings: Sequence[str] = ("training.precision=float32",)
    gpus: int = 0
    launcher: Sequence[str] = ()
    """The options of Accelerate's launcher; without any, it is left out."""

    def command(self, training: Sequence[str]) -> list[str]:
        """What starts it."""
        settings = [word for setting in self.settings for word in ("--set", setting)]
        start = [sys.executable, "-m"]
        if self.launcher:
            start += ["accelerate.commands.accelerate_cli", "launch", *self.launcher, "-m"]
        return [*start, "indel.cli", "train", *training, *settings]


def ways(gpus: int) -> list[Way]:
    """Those that a machine with so many GPUs has; the first is what the others are compared to."""
    where = "GPU" if gpus else "CPU"
    one = min(gpus, 1)
    found = [Way("CPU, eager")]
    if gpus:
        found.append(Way("GPU, eager", gpus=1))
    found += [
        Way(
            f"{where}, compiled",
            settings=("training.precision=float32", "training.compile=true"),
            gpus=one,
        ),
        Way(
            f"{where}, bfloat16",
            tolerance=BFLOAT16,
            settings=("training.precision=bfloat16",),
            gpus=one,
        ),
    ]
    if gpus > 1:
        sharded = ("--use_fsdp", "--fsdp_version", "2", "--num_processes", str(gpus))
        plain = ("--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no")
        found.append(Way(f"{gpus} GPUs, FSDP", gpus=gpus, launcher=(*sharded, *plain)))
    return found


def train(way: Way, training: Sequence[str], folder: Path) -> list[dict[str, float]]:
    """The records of all steps of a run."""
    visible = ",".join(map(str, range(way.gpus)))
    # An empty list hides the GPUs.
    hidden = {} if way.gpus > 1 else {"CUDA_VISIBLE_DEVICES": visible}
    done = subprocess.run(
        way.command([*training, "--out", str(folder)]),
        env={**os.environ, **hidden},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return [record for record in read_metrics(folder) if record["kind"] == "train"]


def furthest(losses: Sequence[float], expected: Sequence[float]) -> float:
    """The largest distance of a loss from what is expected, as a share of it."""
    return max(abs(a - b) / abs(b) for a, b in zip(losses, expected, strict=True))


def speed(records: Sequence[dict[str, float]], tokens: int) -> float:
    """Tokens per second, after the warm-up."""
    first, last = records[WARM_UP - 1], records[-1]
    return (len(records) - WARM_UP) * tokens / (last["seconds"] - first["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", default="tiny", choices=["tiny", "laptop"])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=32)
    options = parser.parse_args()
    if options.steps <= WARM_UP:
        parser.error(f"--steps must be larger than {WARM_UP}, got {options.steps}")
    gpus = torch.cuda.device_count()
    device = torch.cuda.get_device_name(0) if gpus else platform.machine()
    if not gpus:
        print("there is no GPU that torch can use here: only the ways of the CPU are checked\n")
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, torch {torch.__version__}, {gpus} GPUs, {device}, "
        f"{torch.get_num_threads()} threads; {options.steps} steps of {options.batch_size} "
        f"sequences, scale {options.scale}, seed 0\n"
    )
    training = ["text8-sample", "--scale", options.scale, "--contexts", "0"]
    fixed = {
        "training.steps": options.steps,
        "training.batch_size": options.batch_size,
        "training.log_every": 1,
        "training.tensorboard": "false",
        "training.compile": "false",
        "validation.every": 10**6,
        "validation.examples": 8,
        "validation.samples": 0,
        # FSDP has no Muon. These networks have no dropout, whose noise would depend on the device.
        "optimizer.name": "adamw",
    }
    training += [word for name, value in fixed.items() for word in ("--set", f"{name}={value}")]
    length = load_config("text8-sample", options.scale).data.options["chunk_length"]
    print("| way | loss of the last step | furthest from the CPU | tokens per second |")
    print("|---|---|---|---|")
    expected: list[float] = []
    wrong = False
    with tempfile.TemporaryDirectory() as work:
        for number, way in enumerate(ways(gpus)):
            try:
                records = train(way, training, Path(work) / str(number))
            except RuntimeError as error:
                print(f"| {way.name} | failed: {error} | | |", flush=True)
                wrong = True
                continue
            losses = [record["loss"] for record in records]
            expected = expected or losses
            distance = furthest(losses, expected)
            verdict = "" if distance <= way.tolerance else f", more than {way.tolerance:g}: WRONG"
            wrong = wrong or bool(verdict)
            print(
                f"| {way.name} | {losses[-1]:.4f} | {distance:.1e}{verdict} "
                f"| {speed(records, options.batch_size * length):,.0f} |",
                flush=True,
            )
    sys.exit(int(wrong))


if __name__ == "__main__":
    main()
