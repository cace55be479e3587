"""Named settings: a task at a scale."""

from __future__ import annotations

from typing import Any

from indel import checks

Settings = dict[str, dict[str, Any]]

TASKS = ("arithmetic", "text8", "text8-sample", "moses", "moses-sample")
SCALES = ("tiny", "laptop", "paper")

# The recipe for two cores (docs/experiments.md): the rotary stack with positions that start out
# local, Muon for the hidden matrices, rates that stay until they fall to zero at the end.
_SMALL_OPTIMISER: dict[str, Any] = {
    "name": "muon",
    "learning_rate": 3e-3,
    "muon_learning_rate": 0.02,
    "beta2": 0.98,
    "schedule": "flat",
    "warm_up": 50,
    "cool_down": 0.4,
}

# Data of one's own, by scale: the preset of the model, T, and how many steps unless it is said.
_OWN: dict[str, tuple[str, int, int]] = {"tiny": ("tiny", 10, 400), "laptop": ("small", 32, 4500)}

_ARITHMETIC: dict[str, Settings] = {
    # Up or down by one among sixteen numbers: about a minute on two cores.
    "tiny": {
        "data": {
            "name": "arithmetic",
            "options": {"numbers": 16, "max_step": 1, "min_length": 6, "max_length": 10},
        },
        "process": {"num_steps": 10, "rate": 0.6},
        "model": {"preset": "tiny", "num_layers": 3, "max_length": 30, "limit_length": False},
        "optimizer": {**_SMALL_OPTIMISER},
        "training": {
            "steps": 1000,
            "batch_size": 32,
            "save_every": 250,
        },
        "validation": {"every": 500, "examples": 128, "samples": 256},
    },
    "laptop": {
        "data": {"name": "arithmetic"},
        "process": {"num_steps": 10, "rate": 0.6},
        "model": {
            "preset": "small",
            "max_length": 128,
            "num_heads": 8,
            "head_width": 16,
            "embedding_init": "whole-sines",
            # Each pair of neighbors is a context; a step that is lost spans several deletions.
            "contexts": 12_000,
            "remembered_deletions": 6,
            "limit_length": False,
        },
        "optimizer": {**_SMALL_OPTIMISER, "learning_rate": 0.01, "muon_learning_rate": 0.01},
        # A million examples.
        "training": {
            "steps": 31_250,
            "batch_size": 32,
            "save_every": 500,
            "sort_by_length": True,
            "compile": True,
        },
        "validation": {"every": 1000, "examples": 256, "samples": 64},
    },
    # Paper: App. C.2
    "paper": {
        "data": {"name": "arithmetic"},
        "process": {"num_steps": 10, "rate": 0.6},
        "model": {
            "preset": "paper-arithmetic",
            "position_init": "zeros",
            "limit_length": False,
        },
        "optimizer": {
            "name": "adam",
            "learning_rate": 2e-4,
            "schedule": "constant",
            "warm_up": 5000,
        },
        "training": {
            "steps": 100_000,
            "batch_size": 512,
            "save_every": 1000,
            "log_every": 100,
        },
        # 10 validations in the last 10,000 steps: 46,080 sequences and 2,304 samples, nearly.
        "validation": {"every": 1000, "examples": 4608, "samples": 256, "batch_size": 256},
    },
}

_TEXT8: dict[str, Settings] = {
    "tiny": {
        "data": {"name": "text8", "options": {"chunk_length": 32}},
        "process": {"num_steps": 10, "rate": 0.6},
        "model": {"preset": "tiny", "max_length": 64},
        "optimizer": {**_SMALL_OPTIMISER},
        "training": {"steps": 400, "batch_size": 32, "save_every": 200},
        "validation": {"every": 200, "examples": 64, "samples": 4},
    },
    "laptop": {
        "data": {"name": "text8"},
        "process": {"num_steps": 32, "rate": 0.6},
        "model": {
            "preset": "small",
            "width": 192,
            "num_heads": 4,
            "head_width": 48,
            "feedforward_width": 768,
            "max_length": 127,
            # Most groups of five letters and many of seven: 200,000 are no better.
            "contexts": 120_000,
            "remembered_deletions": 1,
        },
        "optimizer": {**_SMALL_OPTIMISER},
        # Ten core-hours, most of them for the counts.
        "training": {"steps": 15_000, "batch_size": 32, "save_every": 250, "compile": True},
        "validation": {"every": 1000, "examples": 128, "num_times": 8, "samples": 8},
    },
    # Paper: App. C.3; of its twelve schedules, the one that it also used for arithmetic.
    "paper": {
        "data": {"name": "text8"},
        "process": {"num_steps": 32, "rate": 0.6},
        "model": {"preset": "paper-text8", "max_length": 127, "position_init": "zeros"},
        "optimizer": {
            "name": "adam",
            "learning_rate": 2e-4,
            "schedule": "constant",
            "warm_up": 5000,
        },
        "training": {
            "steps": 1_000_000,
            "batch_size": 512,
            "save_every": 5000,
            "log_every": 100,
        },
        # 10 validations in the last 100,000 steps: 40,960 sequences.
        "validation": {"every": 10_000, "examples": 4096, "samples": 16, "batch_size": 256},
    },
}

# Molecules, 36 tokens each and at most 54. The paper has none, so neither does the scale `paper`.
_MOSES: dict[str, Settings] = {
    "tiny": {
        "data": {"name": "moses"},
        "process": {"num_steps": 10, "rate": 0.6},
        "model": {"preset": "tiny", "max_length": 64},
        "optimizer": {**_SMALL_OPTIMISER},
        "training": {"steps": 400, "batch_size": 32, "save_every": 200, "sort_by_length": True},
        "validation": {"every": 200, "examples": 64, "samples": 16},
    },
    "laptop": {
        "data": {"name": "moses"},
        "process": {"num_steps": 32, "rate": 0.6},
        "model": {
            "preset": "small",
            "width": 192,
            "num_heads": 4,
            "head_width": 48,
            "feedforward_width": 768,
            "max_length": 80,
            "contexts": 60_000,
            "remembered_deletions": 2,
        },
        "optimizer": {**_SMALL_OPTIMISER},
        # Two million molecules: each one and a quarter times.
        "training": {
            "steps": 31_250,
            "batch_size": 64,
            "save_every": 500,
            "sort_by_length": True,
            "compile": True,
        },
        "validation": {"every": 1250, "examples": 256, "num_times": 8, "samples": 64},
    },
}


def recipe(steps: int) -> Settings:
    """How to train on data of one's own in so many steps: the recipe of the presets, scaled.

    >>> recipe(2000)["optimizer"]["warm_up"], recipe(100)["optimizer"]["warm_up"]
    (100, 5)
    """
    return {
        "optimizer": {
            **_SMALL_OPTIMISER,
            "warm_up": min(100, max(1, steps // 20)),
        },
        "training": {
            "steps": steps,
            "batch_size": 32,
            "save_every": max(1, steps // 10),
            "log_every": max(1, steps // 200),
            "tensorboard": False,
        },
        "validation": {"every": max(1, steps // 5), "examples": 128, "num_times": 8, "samples": 8},
    }


def training_preset(task: str, scale: str, *, steps: int | None = None) -> Settings:
    """The settings of a task at a scale, as nested tables.

    >>> training_preset("text8", "paper")["training"]["steps"]
    1000000

    A task may also be data of one's own, `lines:FILE`, `csv:FILE:COLUMN`, `pairs:FILE.tsv`,
    `smiles:FILE`, `file:PATH` or `huggingface:NAME`: then the recipe is scaled to the number of
    steps. The source of a pair is frozen in nine of ten examples.
    """
    if ":" in task:
        checks.choice("scale for data of one's own", scale, _OWN)
        preset_name, num_steps, usual = _OWN[scale]
        settings = recipe(usual if steps is None else steps)
        if task.startswith("pairs:"):
            settings["training"] |= {"frozen": "source", "frozen_share": 0.9}
        return {
            "data": {"name": task},
            "process": {"num_steps": num_steps, "rate": 0.6},
            "model": {"preset": preset_name},
            **settings,
        }
    checks.choice("task", task, TASKS)
    checks.choice("scale", scale, SCALES)
    if task == "arithmetic":
        return _ARITHMETIC[scale]
    if task.startswith("moses"):
        checks.choice("scale for molecules", scale, _MOSES)
    preset = (_MOSES if task.startswith("moses") else _TEXT8)[scale]
    # A sample is its data in small: only where the sequences come from differs.
    return {**preset, "data": {**preset["data"], "name": task}}
