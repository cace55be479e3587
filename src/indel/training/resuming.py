"""Which checkpoint a run resumes from, and whether the config that is given now allows it."""

from __future__ import annotations

from pathlib import Path

from indel.atomic_files import read_json
from indel.model import DenoiserConfig
from indel.training import checkpoints
from indel.training.checkpoints import Snapshot
from indel.training.config import TrainingConfig
from indel.training.config_files import JSON_NAME, flat_settings
from indel.training.errors import CheckpointError
from indel.training.learning_rates import flat_steps

FINGERPRINT = "data_fingerprint"
"""Where the state of a checkpoint has the checksum of its data."""

# These say for how long and what is looked at, not what step n does.
HARMLESS = frozenset(
    {
        "training.steps",
        "training.bad_steps",
        "training.save_every",
        "training.keep",
        "training.log_every",
        "training.tensorboard",
        "validation.every",
        "validation.examples",
        "validation.num_times",
        "validation.samples",
        "validation.batch_size",
    }
)


def check_resumable(
    snapshot: Snapshot,
    config: TrainingConfig,
    denoiser: DenoiserConfig,
    fingerprint: str,
    folder: Path,
) -> None:
    """Refuse a config under which the run would not be the same, naming what differs."""
    _refuse_other_settings(TrainingConfig.from_dict(snapshot.config), config, folder)
    # The config may name the same data while the data itself is other than it was.
    for what, same in (
        ("vocabulary", snapshot.denoiser.vocabulary == denoiser.vocabulary),
        ("noise schedule", snapshot.denoiser.schedule == denoiser.schedule),
        ("backbone", snapshot.denoiser.backbone == denoiser.backbone),
        # Checkpoints of older versions have no fingerprint.
        ("content of the data", snapshot.state.get(FINGERPRINT, fingerprint) == fingerprint),
        # Settings that describe the model were compared above.
        ("network", config.model is not None or snapshot.denoiser == denoiser),
    ):
        if not same:
            raise CheckpointError(
                f"the run in {folder} was made with another {what} than it would have now; "
                "resume with the former data and model or start a new run in another folder"
            )


def checkpoint_to_resume(folder: Path, config: TrainingConfig) -> Path | None:
    """The newest checkpoint, or, where other steps are asked for, the newest before the cool-down.

    With the schedule "flat" a run can be extended: what was done while the rates were full is as
    if the new number of steps had been asked for from the start. Cooled checkpoints are renamed.
    """
    found = checkpoints.latest(folder)
    if found is None or config.optimizer.schedule != "flat":
        return found
    made_with = checkpoints.config_of(found)
    _refuse_other_settings(made_with, config, folder)
    before, now = made_with.training.steps, config.training.steps
    flat = min(flat_steps(steps, config.optimizer.cool_down) for steps in (before, now))
    if before == now or checkpoints.step_of(found) <= flat:
        return found
    level = checkpoints.latest(folder, up_to=flat)
    if level is None:
        raise CheckpointError(
            f"the run in {folder} has training.steps = {before}, and now it is {now}; that takes "
            f"a checkpoint of step {flat} or before, from which the rates fall for the shorter of "
            f"the two, and there is none: resume with training.steps = {before}"
        )
    return level


def _refuse_other_settings(before: TrainingConfig, now: TrainingConfig, folder: Path) -> None:
    former = flat_settings(before)
    for name, value in flat_settings(now).items():
        if name not in HARMLESS and former[name] != value:
            raise CheckpointError(
                f"the run in {folder} has {name} = {former[name]!r}, but now it is {value!r}; "
                "resume with the former value or start a new run in another folder"
            )


def load_run_config(folder: str | Path) -> TrainingConfig:
    """The config that a run was started with."""
    path = Path(folder) / JSON_NAME
    try:
        return TrainingConfig.from_dict(read_json(path))
    except FileNotFoundError:
        raise CheckpointError(f"{folder} is no folder of a training run: no {JSON_NAME}") from None
    except (ValueError, OSError) as error:
        raise CheckpointError(f"{path} is no config of a training run: {error}") from None
