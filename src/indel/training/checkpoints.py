"""Checkpoints: folders of safetensors and JSON that are whole or are not there."""

from __future__ import annotations

import json
import logging
import os
import shutil
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from indel.atomic_files import mode_of_the_umask, read_json, sha256
from indel.model import DenoiserConfig
from indel.model.saving import CONFIG_FILES, read_config, write_checksums, write_config
from indel.model.saving import WEIGHTS as MODEL_WEIGHTS
from indel.training.config import TrainingConfig
from indel.training.errors import CheckpointError

CHECKPOINTS = "checkpoints"
MODEL = "model"
"""The folder inside of a checkpoint that `Denoiser.from_pretrained` loads."""
_WEIGHTS = "weights.safetensors"
_OPTIMIZER = "optimiser.safetensors"  # spelled as in the checkpoints of earlier versions
_STATE = "state.json"
_CONFIG = "config.json"
_MANIFEST = "manifest.json"
_PREFIX = "step-"
_COOLED = "cooled-"
_UNFINISHED = ".unfinished-"
_DAMAGED = "damaged-"
_REQUIRED = (
    f"{MODEL}/{MODEL_WEIGHTS}",
    *(f"{MODEL}/{name}" for name in CONFIG_FILES),
    _OPTIMIZER,
    _STATE,
    _CONFIG,
)

_log = logging.getLogger(__name__)

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Snapshot:
    """All that a run needs to go on as if it had never stopped."""

    step: int
    weights: Tensors
    averages: Tensors | None
    """The moving average of the weights, which is then the model that others load."""
    optimizer: Tensors
    """parameter/quantity → its value."""
    state: dict[str, Any]
    """Counters and estimates, as JSON data."""
    config: dict[str, Any]
    denoiser: DenoiserConfig


def write_checkpoint(folder: Path, snapshot: Snapshot) -> Path:
    """Write a checkpoint of a run under a temporary name, flush it, and only then rename it."""
    place = folder / CHECKPOINTS
    target = place / f"{_PREFIX}{snapshot.step:08d}"
    unfinished = place / f"{_UNFINISHED}{target.name}-{uuid.uuid4().hex}"
    try:
        unfinished.mkdir(parents=True)
        _fill(unfinished, snapshot)
        _discard(target)
        unfinished.rename(target)
        _flush(place)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        reason = getattr(error, "strerror", None) or error
        kept = latest(folder)
        rest = f"the last good checkpoint is {kept}" if kept else "there is no earlier checkpoint"
        raise CheckpointError(
            f"cannot write the checkpoint {target}: {reason}; {rest}. "
            "Make room or choose another folder, then resume"
        ) from error
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return target


def read_checkpoint(path: str | Path) -> Snapshot:
    """Read a checkpoint that `check` finds whole."""
    path = Path(path)
    if problem := check(path):
        raise CheckpointError(f"{path} is no whole checkpoint: {problem}")
    state = json.loads((path / _STATE).read_text(encoding="utf-8"))
    model = load_file(path / MODEL / MODEL_WEIGHTS)
    averaged = (path / _WEIGHTS).exists()
    return Snapshot(
        step=state.pop("step"),
        weights=load_file(path / _WEIGHTS) if averaged else model,
        averages=model if averaged else None,
        optimizer=load_file(path / _OPTIMIZER),
        state=state,
        config=json.loads((path / _CONFIG).read_text(encoding="utf-8")),
        denoiser=read_config(path / MODEL),
    )


def check(path: Path) -> str | None:
    """What is wrong with a checkpoint: nothing, or a file that is missing, short or changed."""
    try:
        manifest = read_json(path / _MANIFEST)
        for name in _REQUIRED:
            if name not in manifest:
                return f"{_MANIFEST} does not list {name}"
        for name, expected in manifest.items():
            file = path / name
            if not file.is_file():
                return f"{name} is missing"
            if file.stat().st_size != expected["size"]:
                return f"{name} has {file.stat().st_size} bytes instead of {expected['size']}"
            if sha256(file) != expected["sha256"]:
                return f"{name} has changed since it was written"
    except FileNotFoundError:
        return f"{_MANIFEST} is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{_MANIFEST} cannot be read ({error})"
    return None


def latest(folder: str | Path, *, up_to: int | None = None) -> Path | None:
    """The newest whole checkpoint of a run, of those up to a step; a warning names damaged ones."""
    for path in reversed(_all(Path(folder))):
        if up_to is not None and step_of(path) > up_to:
            continue
        problem = check(path)
        if problem is None:
            return path
        _log.warning("skipping the checkpoint %s: %s", path, problem)
    return None


def set_aside_damaged(folder: Path) -> None:
    """Rename damaged checkpoints, so that they count neither as newest nor as kept."""
    for path in _all(folder):
        if problem := check(path):
            _set_aside_damaged(path, problem)


def best(folder: str | Path) -> Path | None:
    """The checkpoint with the lowest bound in validation, as the newest one knows."""
    newest = latest(folder)
    if newest is None:
        return None
    state = json.loads((newest / _STATE).read_text(encoding="utf-8"))
    if state.get("best_step") is None:
        return None
    path = Path(folder) / CHECKPOINTS / f"{_PREFIX}{state['best_step']:08d}"
    return path if check(path) is None else None


def find_checkpoint(path: str | Path, *, prefer_best: bool = False) -> Path:
    """The checkpoint that a path means: itself, or the newest or best one of a run's folder."""
    path = Path(path)
    if (path / _MANIFEST).is_file():
        if problem := check(path):
            raise CheckpointError(f"{path} is no whole checkpoint: {problem}")
        return path
    found = (best(path) if prefer_best else None) or latest(path)
    if found is None:
        raise CheckpointError(
            f"{path} holds no checkpoint; expected is the folder of a training run or of one of "
            f"its checkpoints, {CHECKPOINTS}/{_PREFIX}…"
        )
    return found


def step_of(checkpoint: Path) -> int:
    """The step that a checkpoint was written at."""
    return int(checkpoint.name.removeprefix(_PREFIX))


def config_of(checkpoint: Path) -> TrainingConfig:
    """The config of the run when the checkpoint was written."""
    config = json.loads((checkpoint / _CONFIG).read_text(encoding="utf-8"))
    return TrainingConfig.from_dict(config)


def run_of(path: Path) -> Path:
    """The folder of the run if the path is that of one of its checkpoints, otherwise the path."""
    return path.parent.parent if path in _all(path.parent.parent) else path


def set_aside(folder: Path, *, after: int) -> list[Path]:
    """Rename the checkpoints after a step to `cooled-…`: they stay, and the run forgets them."""
    moved = []
    for path in _all(folder):
        if step_of(path) > after:
            target = path.with_name(f"{_COOLED}{step_of(path):08d}")
            _discard(target)
            moved.append(path.rename(target))
    return moved


def tidy(folder: Path, *, keep: int, spared: Collection[int]) -> None:
    """Delete all checkpoints but the newest `keep` and the spared steps, and unfinished ones.

    Only whole checkpoints count: a damaged one among those to keep is set aside.
    """
    whole = 0
    for path in reversed(_all(folder)):
        if whole < keep or step_of(path) in spared:
            if problem := check(path):
                _set_aside_damaged(path, problem)
            else:
                whole += 1
        else:
            _discard(path)
    for leftover in (folder / CHECKPOINTS).glob(f"{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _all(folder: Path) -> list[Path]:
    """What looks like a checkpoint, oldest first."""
    found = (folder / CHECKPOINTS).glob(f"{_PREFIX}*")
    return sorted(
        (path for path in found if path.name.removeprefix(_PREFIX).isdecimal()),
        key=step_of,
    )


def _fill(folder: Path, snapshot: Snapshot) -> None:
    model = folder / MODEL
    model.mkdir()
    write_config(model, snapshot.denoiser)
    averaged = snapshot.averages is not None
    _save(snapshot.averages or snapshot.weights, model / MODEL_WEIGHTS)
    write_checksums(model)
    if averaged:
        _save(snapshot.weights, folder / _WEIGHTS)
    _save(snapshot.optimizer, folder / _OPTIMIZER)
    _write_json(folder / _STATE, {"step": snapshot.step, **snapshot.state})
    _write_json(folder / _CONFIG, snapshot.config)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    manifest = {
        path.relative_to(folder).as_posix(): {
            "size": path.stat().st_size,
            "sha256": sha256(path),
        }
        for path in files
    }
    _write_json(folder / _MANIFEST, manifest)
    for path in (*files, folder / _MANIFEST, model, folder):
        _flush(path)


def _save(tensors: Tensors, path: Path) -> None:
    with mode_of_the_umask(path):
        save_file(tensors, path)


def _write_json(path: Path, data: object) -> None:
    path.write_text(json.dumps(data, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _flush(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _set_aside_damaged(path: Path, problem: str) -> None:
    name = f"{_DAMAGED}{path.name}"
    number = len(list(path.parent.glob(f"{name}*")))
    aside = path.with_name(f"{name}-{number + 1}" if number else name)
    path.rename(aside)
    _log.warning("the checkpoint %s is damaged (%s): renamed to %s", path, problem, aside.name)


def _discard(path: Path) -> None:
    """Delete a checkpoint so that at no moment half of it bears its name."""
    if path.exists():
        leftover = path.with_name(f"{_UNFINISHED}{path.name}-{uuid.uuid4().hex}")
        path.rename(leftover)
        shutil.rmtree(leftover, ignore_errors=True)
