"""`indel.train`: any denoiser on any data, by the recipe of the presets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from indel.data import BatchStream, Sequences
from indel.model import Denoiser
from indel.training.config import GIVEN_DATA, TrainingConfig
from indel.training.config_files import changed
from indel.training.engine import TrainingResult, train_denoiser
from indel.training.errors import TrainingError
from indel.training.presets import recipe

_DIGESTED = {"train": 256, "valid": 64}
"""How many examples identify data."""
_GIVEN_SECTIONS = ("data", "process", "model")


def train(
    model: Denoiser,
    data: BatchStream | Sequence[str] | Sequence[Sequence[int]],
    folder: str | Path,
    *,
    steps: int = 2_000,
    batch_size: int = 32,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    console: Console | None = None,
) -> TrainingResult:
    """Train a denoiser on data by minimising the bound on −log p_θ(x_0).

    L = E[−log p_θ(x_T)] + Σ_t E[−log p_θ(x_{t−1}|x_t) + log q(x_t|x_{t−1})], at one random t per
    sequence and step. The table p_θ(|x_T|) is fitted before the first step.

    The recipe is that of the presets: Muon for the hidden matrices, AdamW for the rest, and a
    warm-up, decay and averaging that scale with the number of steps. Validation, checkpoints and
    resuming to the same bits are those of `indel train`, and its commands read the folder.

    Args:
        model: Any denoiser: any schedule, transitions and backbone. Its weights are changed in
            place; the last ones stay in it.
        data: Texts or lists of integers, which become `Sequences` in the model's vocabulary, or
            any `BatchStream` in it.
        folder: Where the run goes; a run that is there is refused unless `resume` is true.
        steps: The number of updates.
        batch_size: Sequences per update.
        seed: Of noise and dropout. The order of the data is that of the data's own seed.
        settings: Other settings by their dotted names, such as {"optimizer.learning_rate": 1e-3};
            see docs/training.md.
        resume: Whether to continue from the newest checkpoint in the folder.
        console: Where progress is shown; None: the terminal, if there is one.

    Returns:
        `TrainingResult`: `.model` is the best one in validation, `.validation` the last metrics.

    >>> import indel, tempfile
    >>> data = indel.Sequences(["GATTACA", "ACT", "TAG", "CAT"])
    >>> schedule = indel.Schedule.paper(data.vocabulary.size, num_steps=4, rate=0.6)
    >>> model = indel.Denoiser.from_preset("tiny", data.vocabulary, schedule)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train(model, data, folder, steps=2, batch_size=4).step
    2

    Reference: Johnson et al. 2021, Eq. (2), App. C; docs/training.md
    """
    if not isinstance(data, BatchStream):
        data = Sequences(data, model.vocabulary, seed=seed)
    _check_fits(model, data)
    given = {
        "training.batch_size": batch_size,
        "training.seed": seed,
        "training.frozen": model.config.frozen,
        **(settings or {}),
    }
    config = _config(data, steps, given)
    return train_denoiser(model, data, config, folder, resume=resume, console=console)


def _config(data: BatchStream, steps: int, settings: Mapping[str, Any]) -> TrainingConfig:
    """The recipe for so many steps with some settings changed; the model is not part of it."""
    if type(steps) is not int or steps < 1:
        raise TrainingError(f"steps must be an integer ≥ 1, got {steps!r}")
    for name in settings:
        if name.partition(".")[0] in _GIVEN_SECTIONS or name == "training.steps":
            raise TrainingError(f"{name!r} is not a setting here: it follows from the arguments")
    sections = recipe(steps)
    if isinstance(data, Sequences):
        validation = sections["validation"]
        validation["examples"] = max(2, min(validation["examples"], data.size("valid")))
    identity = {"name": GIVEN_DATA, "options": {"sha256": _digest(data)}}
    whole = TrainingConfig.from_dict({"data": identity, **sections})
    return replace(changed(whole, settings), process=None, model=None)


def _digest(data: BatchStream) -> str:
    """What tells other data from this: a hash of its vocabulary and of its first examples."""
    digest = hashlib.sha256(json.dumps(data.vocabulary.to_dict(), sort_keys=True).encode())
    for split, count in _DIGESTED.items():
        rows = data.examples(0, count, split).to_lists()  # type: ignore[arg-type]
        digest.update(json.dumps(rows).encode())
    return digest.hexdigest()


def _check_fits(model: Denoiser, data: BatchStream) -> None:
    """Refuse data that the model cannot be trained on, naming what differs."""
    if model.vocabulary != data.vocabulary:
        raise TrainingError(
            f"model and data must have the same vocabulary, got {model.vocabulary!r:.80} and "
            f"{data.vocabulary!r:.80}"
        )
    room = model.max_deletions
    if model.length_limit is not None:
        room = min(room, model.length_limit)
    if room < data.max_length:
        raise TrainingError(
            f"the longest sequence of the data has {data.max_length} tokens, and the model is made "
            f"for {room}: make it with max_length={data.max_length + data.max_length // 10}, or "
            "leave long ones out with Sequences(…, max_length=…)"
        )
