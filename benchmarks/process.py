"""Speed and memory of the forward process, as a Markdown table; exits with 1 if a target is missed.

    python benchmarks/process.py

Machines differ, so speeds are ratios between things measured in turns in this one run.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
from torch import Tensor, nn

from indel import Batch
from indel.process import Schedule, corrupt, log_prob

SEED = 0
RATE = 0.6
THREADS = min(2, os.cpu_count() or 1)
REPETITIONS = 15
LARGE_VOCABULARY, MANY_STEPS = 50_000, 1000


@dataclass(frozen=True)
class Row:
    """One line of the table; the value must stay below the limit, if there is one."""

    what: str
    value: float
    unit: str
    limit: float | None = None
    note: str = ""

    @property
    def missed(self) -> bool:
        """Whether a target was missed."""
        return self.limit is not None and not self.value < self.limit

    def __str__(self) -> str:
        target = "" if self.limit is None else f"< {self.limit:g} {self.unit}"
        verdict = "" if self.limit is None else ("**missed**" if self.missed else "met")
        return (
            f"| {self.what} | {self.value:.3g} {self.unit} | {target} | {verdict} | {self.note} |"
        )


def forward_pass(batch: Batch, generator: torch.Generator) -> tuple[Callable[[], Tensor], str]:
    """One pass of six layers of width 128 over the batch, and the name of what makes it."""
    embedded = torch.randn(len(batch), batch.width, 128, generator=generator)
    try:
        from indel.model.transformer import Transformer, TransformerConfig
    except ImportError:  # the forward process is complete without a model
        layer = nn.TransformerEncoderLayer(
            128, nhead=4, dim_feedforward=512, dropout=0.0, batch_first=True, norm_first=True
        )
        encoder = nn.TransformerEncoder(layer, num_layers=6, enable_nested_tensor=False)
        encoder.eval().requires_grad_(False)
        return lambda: encoder(embedded), "torch.nn.TransformerEncoder"
    sizes = {"width": 128, "num_layers": 6, "num_heads": 4, "head_width": 32}
    config = TransformerConfig(**sizes, feedforward_width=512)
    model = Transformer(config, generator=generator).eval().requires_grad_(False)
    return lambda: model(embedded, batch.mask), "indel.model.transformer.Transformer"


def random_batch(rows: int, length: int, vocab_size: int, generator: torch.Generator) -> Batch:
    """Sequences of one length, all tokens alike."""
    tokens = torch.randint(vocab_size, (rows, length), generator=generator)
    return Batch(tokens, torch.full((rows,), length))


def corrupt_large(vocab_size: int, num_steps: int, *, given: bool = False) -> None:
    """Build the paper's schedule and corrupt 8 × 1,024 tokens with it.

    `given` draws inserts from a vector of K probabilities, so that there is something of size K.
    """
    generator = torch.Generator().manual_seed(SEED)
    weights = torch.arange(1, vocab_size + 1, dtype=torch.float64)
    inserted = weights / weights.sum() if given else None
    schedule = Schedule.paper(vocab_size, num_steps, RATE, inserted=inserted)
    x_0 = random_batch(8, 1024, vocab_size, generator)
    t = torch.randint(1, num_steps + 1, (8,), generator=generator)
    corrupt(schedule, x_0, t, generator=generator)


def medians(actions: dict[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """The median seconds of each action, taken in turns so that all share the machine's moods."""
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for repetition in range(repetitions + 1):
        for name, action in actions.items():
            start = perf_counter()
            action()
            if repetition:  # the first fills caches
                seconds[name].append(perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}


def speed() -> list[Row]:
    """Sampling and likelihood next to one forward pass."""
    generator = torch.Generator().manual_seed(SEED)
    schedule = Schedule.paper(28, 32, RATE)
    x_0 = random_batch(64, 118, 28, generator)
    t = torch.randint(1, 33, (64,), generator=generator)
    before, after = (random_batch(64, 128, 28, generator) for _ in range(2))
    forward, network = forward_pass(x_0, generator)
    took = medians(
        {
            "forward": forward,
            "corrupt": lambda: corrupt(schedule, x_0, t, generator=generator),
            "log_prob": lambda: log_prob(schedule, before, after, t),
        },
        REPETITIONS,
    )
    share = 100 * took["corrupt"] / took["forward"]
    ratio = took["log_prob"] / took["forward"]
    note = f"a pass of `{network}`, 6 × 128, took {1000 * took['forward']:.0f} ms"
    return [
        Row("`corrupt`, 64 × 118, K = 28, T = 32", share, "% of a forward pass", 5.0, note),
        Row("`log_prob`, 64 pairs of length 128", took["log_prob"], "s", 1.0),
        Row("the same", ratio, "× a forward pass"),
    ]


def growth() -> list[Row]:
    """What twice the steps or twice the vocabulary cost in time: 2 is linear, 4 quadratic."""
    rows = []
    for name, given in (("uniform inserts", False), ("inserts from a vector", True)):
        sizes = {
            "base": (LARGE_VOCABULARY, MANY_STEPS),
            "twice T": (LARGE_VOCABULARY, 2 * MANY_STEPS),
            "twice K": (2 * LARGE_VOCABULARY, MANY_STEPS),
        }
        took = medians(
            {
                size: lambda k=k, steps=steps, given=given: corrupt_large(k, steps, given=given)
                for size, (k, steps) in sizes.items()
            },
            repetitions=5,
        )
        for size in ("twice T", "twice K"):
            note = f"{took[size]:.2f} s against {took['base']:.2f} s"
            rows.append(Row(f"{size}, {name}", took[size] / took["base"], "× the time", 3.0, note))
    return rows


def memory() -> list[Row]:
    """The peak beyond `import torch` of a fresh process that builds and uses a large schedule."""
    rows = []
    for vocab_size, num_steps, inserted, limit in (
        (LARGE_VOCABULARY, MANY_STEPS, "uniform", 200.0),
        (LARGE_VOCABULARY, 2 * MANY_STEPS, "uniform", None),
        (2 * LARGE_VOCABULARY, MANY_STEPS, "uniform", None),
        (LARGE_VOCABULARY, MANY_STEPS, "given", 200.0),
    ):
        probe = Path(__file__).with_name("process_memory.py")
        command = [sys.executable, str(probe), str(vocab_size), str(num_steps), inserted]
        peaks = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        what = f"`Schedule.paper({vocab_size}, {num_steps}, {RATE})`, {inserted} inserts, 8 × 1,024"
        note = f"of it `import indel`: {peaks['indel'] - peaks['torch']:.1f} MB"
        rows.append(Row(what, peaks["corrupted"] - peaks["torch"], "MB beyond torch", limit, note))
    return rows


def machine() -> str:
    """What the numbers were measured on, and how."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return (
        f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores, "
        f"{THREADS} threads, load {os.getloadavg()[0]:.1f} at the start; "
        f"torch {torch.__version__}, Python {platform.python_version()}; "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, seed {SEED}, medians of interleaved repetitions; "
        f"`python {Path(__file__).parent.name}/{Path(__file__).name}`"
    )


def main() -> int:
    """Print the table."""
    torch.set_num_threads(THREADS)
    print(machine(), end="\n\n")
    print("| what | measured | target | | |\n|---|---|---|---|---|")
    missed = False
    for part in (speed, growth, memory):
        for row in part():
            print(row, flush=True)
            missed |= row.missed
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
