"""Where the time of a training step goes at text8 shape, measured in one run (`make bench`)."""

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer

from indel.bound.objective import Objective
from indel.model import Denoiser
from indel.training import load_config, train

WARM_UP = 3


class Stopwatch:
    """Adds up the time spent in some functions."""

    def __init__(self) -> None:
        self.calls: dict[str, list[tuple[float, float]]] = defaultdict(list)

    def watch(self, owner: Any, name: str, label: str) -> None:
        """Measure every call of a method from now on."""
        original: Callable[..., Any] = getattr(owner, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            result = original(*arguments, **options)
            self.calls[label].append((start, time.perf_counter()))
            return result

        setattr(owner, name, timed)

    def share(self, label: str, start: float, end: float) -> float:
        """The part of a stretch of time that was spent in these calls."""
        inside = [(a, b) for a, b in self.calls[label] if start <= a and b <= end]
        return sum(b - a for a, b in inside) / (end - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()
    watch = Stopwatch()
    starts: list[float] = []
    call = Objective.__call__

    def started(*arguments: Any, **named: Any) -> Any:
        starts.append(time.perf_counter())
        return call(*arguments, **named)

    Objective.__call__ = started  # type: ignore[method-assign]
    watch.watch(Denoiser, "forward", "network, forward")
    watch.watch(Accelerator, "backward", "backward (network and loss)")
    watch.watch(AcceleratedOptimizer, "step", "optimizer")
    config = load_config(
        "text8-sample",
        "laptop",
        overrides={
            "training.steps": options.steps,
            "training.batch_size": options.batch_size,
            "training.save_every": 10**6,
            "training.tensorboard": False,
            "validation.every": 10**6,
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        train(config, Path(folder) / "run")
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, torch {torch.__version__}, {torch.get_num_threads()} "
        f"threads, batch {options.batch_size}; python benchmarks/training.py\n"
    )
    print("| part | share of a step |\n|---|---|")
    shares = {label: watch.share(label, starts[WARM_UP], starts[-1]) for label in watch.calls}
    for label, share in shares.items():
        print(f"| {label} | {share:.1%} |")
    rest = 1.0 - sum(shares.values())
    print(f"| all else: data, corruption, loss, averages, records | {rest:.1%} |")


if __name__ == "__main__":
    main()
