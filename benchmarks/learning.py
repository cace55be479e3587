"""How much a CPU-second teaches: named recipes trained for equal process CPU time.

    python benchmarks/learning.py --data text8.zip --tasks arithmetic-0.6,text8-0.6 \
        --minutes 20 --fast-minutes 7 --seeds 0,1 --out runs/learning

Each recipe is trained by `indel train` in a process of its own with one thread, two processes at a
time, the recipes of one task in turn. Steps are chosen so that they take the budget: a few steps
measure what one costs, compilation left out. The CPU seconds of a row are those of its steps and
of counting contexts before the first one, without validation.
`before` is trained for --minutes, all other recipes for --fast-minutes. `now` is the preset and
`network` the preset without counts; t5, no-biases and so on change one ingredient of `now`,
network-t5, network-no-biases and so on the same one of `network`. A row that is in --out
already is not trained again, so a benchmark that was stopped goes on.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from indel.training import read_metrics

Settings = dict[str, Any]

COMMON: Settings = {
    "validation.examples": 128,
    "validation.samples": 0,
    "training.tensorboard": False,
    "training.keep": 1,
}
TASKS: dict[str, Settings] = {
    "arithmetic-0.6": {"process.rate": 0.6},
    "arithmetic-0": {"process.rate": 0.0},
    "text8-0.6": {"process.rate": 0.6, "validation.num_times": 4},
    "text8-0": {"process.rate": 0.0, "validation.num_times": 4},
}

Recipe = dict[str, Settings]
"""What differs from the preset, for each kind of task that the recipe is for."""


def both(**settings: Any) -> Recipe:
    """The same for both tasks; in names of settings `__` is the dot."""
    found = {name.replace("__", "."): value for name, value in settings.items()}
    return {"arithmetic": found, "text8": found}


# The recipe of version 0.1: T5's stack, Muon, a cosine, an average of the weights.
_BEFORE: Settings = {
    "model.backbone": "t5",
    "model.num_heads": 4,
    "model.contexts": 0,
    "optimizer.muon_learning_rate": 0.01,
    "optimizer.schedule": "cosine",
    "optimizer.average_decay": 0.998,
    "training.compile": False,
}
# One ingredient less, or another value, each.
INGREDIENTS: dict[str, Recipe] = {
    # The stack of T5 is not compiled: compare it with not-compiled too.
    "t5": both(model__backbone="t5", training__compile=False),
    "no-biases": both(model__local_biases=False),
    "no-sines": {"arithmetic": {"model.embedding_init": "normal"}},
    "geometric-sines": {"arithmetic": {"model.embedding_init": "sines"}},
    "slow-embeddings": {"arithmetic": {"optimizer.embedding_learning_rate": 0.001}},
    "trigrams": {"text8": {"model.trigrams": 31**3}},
    "four-heads": {"arithmetic": {"model.num_heads": 4, "model.head_width": 32}},
    "eight-heads": {"text8": {"model.num_heads": 8, "model.head_width": 24}},
    "not-compiled": both(training__compile=False),
    "cosine": both(optimizer__schedule="cosine"),
    # The embeddings keep their rate; 0.001 is what others take for matrices of this size.
    "adamw": {
        "arithmetic": {
            "optimizer.name": "adamw",
            "optimizer.learning_rate": 0.001,
            "optimizer.embedding_learning_rate": 0.01,
        },
        "text8": {
            "optimizer.name": "adamw",
            "optimizer.learning_rate": 0.001,
            "optimizer.embedding_learning_rate": 0.003,
        },
    },
    "muon-0.01": {"text8": {"optimizer.muon_learning_rate": 0.01}},
    "muon-0.02": {"arithmetic": {"optimizer.muon_learning_rate": 0.02}},
    "muon-0.03": {"arithmetic": {"optimizer.muon_learning_rate": 0.03}},
    "batch-16": both(training__batch_size=16),
    "times-by-size": both(training__times="term-size"),
}
# With counts the network hardly matters, so what it is made of is compared without them.
NETWORK: Recipe = both(model__contexts=0)
RECIPES: dict[str, Recipe] = {
    "before": {
        "arithmetic": {
            **_BEFORE,
            "model.head_width": 32,
            "model.embedding_init": "normal",
            "optimizer.learning_rate": 0.05,
        },
        "text8": {**_BEFORE, "model.head_width": 48, "model.trigrams": 0},
    },
    "now": both(),
    "network": NETWORK,
    **INGREDIENTS,
    **{
        f"network-{name}": {task: NETWORK[task] | differs for task, differs in recipe.items()}
        for name, recipe in INGREDIENTS.items()
    },
}
CALIBRATION_STEPS = 24
POINTS = 6
"""Validations on a curve."""


def train(task: str, settings: Settings, folder: Path, data: Path | None) -> None:
    """One run of `indel train` with one thread."""
    name = task.split("-")[0]
    command = [sys.executable, "-m", "indel.cli", "train", name, "--out", str(folder)]
    command += ["--resume"] if (folder / "config.json").exists() else []
    command += ["--data", str(data)] if data is not None and name == "text8" else []
    for key, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        command += ["--set", f"{key}={text}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with (folder.parent / f"{folder.name}.log").open("a") as log:
        subprocess.run(command, check=True, stdout=log, stderr=log, env=environment)


def seconds_per_step(task: str, settings: Settings, folder: Path, data: Path | None) -> float:
    """CPU seconds of a step, by the later half of a few steps: the first ones also compile."""
    few = {
        "training.steps": CALIBRATION_STEPS,
        "training.log_every": 1,
        "validation.every": 10**9,
        "validation.examples": 2,
        "validation.num_times": 1,
    }
    if not (folder / "metrics.jsonl").exists():
        train(task, settings | few, folder, data)
    steps = [record for record in read_metrics(folder) if record["kind"] == "train"]
    half = len(steps) // 2
    spent = steps[-1]["cpu_seconds"] - steps[half]["cpu_seconds"]
    return float(spent / (len(steps) - 1 - half))


def lane(
    task: str, recipe: str, seed: int, minutes: float, out: Path, data: Path | None
) -> dict[str, Any]:
    """Train a recipe for its budget; returns the curve of its bound over CPU seconds."""
    name = f"{task}-{recipe}-seed{seed}-{minutes:g}min"
    done = out / f"{name}.json"
    if done.exists():
        return dict(json.loads(done.read_text()))
    settings = {**COMMON, **TASKS[task], **RECIPES[recipe][task.split("-")[0]]}
    settings["training.seed"] = seed
    each = seconds_per_step(task, settings, out / f"{task}-{recipe}-calibration", data)
    steps = max(POINTS, round(60.0 * minutes / each))
    settings |= {
        "training.steps": steps,
        "training.save_every": max(1, steps // POINTS),
        "validation.every": max(1, steps // POINTS),
    }
    if settings.get("optimizer.schedule") == "cosine":
        settings["optimizer.period"] = steps
    folder = out / name
    train(task, settings, folder, data)
    records = read_metrics(folder)
    row = {
        "task": task,
        "recipe": recipe,
        "seed": seed,
        "minutes": minutes,
        "steps": steps,
        "examples": steps * settings.get("training.batch_size", 32),
        "curve": [
            [record["cpu_seconds"], record["bound"], record["bits_per_token"]]
            for record in records
            if record["kind"] == "validation"
        ],
    }
    done.write_text(json.dumps(row, indent=1))
    return row


def seconds_to_reach(curve: list[list[float]], bound: float) -> float | None:
    """When the curve first gets down to the bound, interpolated; None if it never does."""
    before: list[float] | None = None
    for point in curve:
        if point[1] <= bound:
            if before is None:
                return point[0]
            share = (before[1] - bound) / (before[1] - point[1])
            return before[0] + share * (point[0] - before[0])
        before = point
    return None


def base_of(recipe: str) -> str | None:
    """The recipe that differs in one ingredient."""
    if recipe in INGREDIENTS:
        return "now"
    return "network" if recipe.startswith("network-") else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--recipes", default="before,now")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--fast-minutes", type=float, default=7.0)
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--data", type=Path, help="text8.zip")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/learning"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    lanes = [
        (task, recipe, int(seed), options.minutes if recipe == "before" else options.fast_minutes)
        for seed in options.seeds.split(",")
        for task in options.tasks.split(",")
        for recipe in options.recipes.split(",")
        if task.split("-")[0] in RECIPES[recipe]
    ]
    with ThreadPoolExecutor(options.workers) as pool:
        rows = list(pool.map(lambda each: lane(*each, options.out, options.data), lanes))
    print(f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {options.workers} runs at a time\n")
    print(
        "| task | seed | recipe | examples | CPU s | bound (nats) | bits | more than its base "
        "| reaches `before` after |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    ends = {(row["task"], row["seed"], row["recipe"]): row["curve"][-1][1] for row in rows}
    for row in rows:
        task, seed, recipe = row["task"], row["seed"], row["recipe"]
        cpu, bound, bits = row["curve"][-1]
        base = ends.get((task, seed, base_of(recipe)))
        aim = ends.get((task, seed, "before"))
        at = None if aim is None else seconds_to_reach(row["curve"], aim)
        print(
            f"| {task} | {seed} | {recipe} | {row['examples']:,} | {cpu:.0f} "
            f"| {bound:.2f} | {bits:.3f} | {'' if base is None else f'{bound - base:+.2f}'} "
            f"| {'not' if at is None else f'{at:.0f} s'} |"
        )


if __name__ == "__main__":
    main()
