"""A trained denoiser as a folder: JSON for what it is, safetensors for its weights."""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from huggingface_hub import snapshot_download
from safetensors import SafetensorError
from safetensors.torch import load_model
from torch import nn

from indel.atomic_files import read_json, sha256, whole_file
from indel.model.config import DenoiserConfig
from indel.process import Schedule
from indel.vocabularies import Vocabulary

CONFIG = "config.json"
VOCABULARY = "vocabulary.json"
SCHEDULE = "schedule.json"
WEIGHTS = "model.safetensors"  # the name that Hugging Face's tools look for
CONFIG_FILES = (CONFIG, VOCABULARY, SCHEDULE)
FILES = (*CONFIG_FILES, WEIGHTS)
CHECKSUMS = "checksums.json"
WORDS = "words.txt"
WORD_PAIRS = "word_pairs.txt"
REPAIR_WEIGHTS = "repair.json"
FOR_REPAIR = (WORDS, WORD_PAIRS, REPAIR_WEIGHTS)
"""Counts of words and weights for repair, which some models of text have beside them."""
LENGTHS = "length.logits"

_log = logging.getLogger(__name__)

Parsed = TypeVar("Parsed")


def write_config(folder: Path, config: DenoiserConfig) -> None:
    """Write everything but the weights."""
    for name, data in (
        (CONFIG, config.to_dict()),
        (VOCABULARY, config.vocabulary.to_dict()),
        (SCHEDULE, config.schedule.to_dict()),
    ):
        text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
        (folder / name).write_text(text + "\n", encoding="utf-8")


def read_config(folder: Path) -> DenoiserConfig:
    """Read what `write_config` wrote; an error says which file is not as expected."""
    vocabulary = _read(folder / VOCABULARY, "a vocabulary", Vocabulary.from_dict)
    schedule = _read(folder / SCHEDULE, "a noise schedule", Schedule.from_dict)
    return _read(
        folder / CONFIG,
        "the sizes of a denoiser",
        lambda data: DenoiserConfig.from_dict(
            data if "limit_length" in data else {**data, "limit_length": _limited_before(folder)},
            vocabulary,
            schedule,
        ),
    )


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files of a denoiser, the last thing to be written."""
    text = json.dumps({name: sha256(folder / name) for name in FILES}, indent=2)
    with whole_file(folder / CHECKSUMS) as file:
        file.write(f"{text}\n".encode())


def check_checksums(folder: Path) -> None:
    """Refuse a folder of which a file has changed; one without checksums is older than they are."""
    path = folder / CHECKSUMS
    if not path.is_file():
        _log.warning("%s has no %s: it is loaded unchecked", folder, CHECKSUMS)
        return
    expected = _read(path, "checksums", lambda data: data)
    for name in FILES:
        if expected.get(name) != sha256(_existing(folder / name, "a part of the denoiser")):
            raise ValueError(
                f"{folder / name} has changed since it was written ({CHECKSUMS}): get the folder "
                f"again, or remove {CHECKSUMS} if the change is yours"
            )


def _limited_before(folder: Path) -> bool:
    """Whether a model was trained with a length limit, from before its own config said so.

    Its training config does: that of the checkpoint around it, or the one exported with it.
    """
    try:
        training = tomllib.loads((folder / "training.toml").read_text(encoding="utf-8"))["training"]
        return bool(training["limit_length"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    try:
        around = json.loads((folder.parent / CONFIG).read_text(encoding="utf-8"))
        return bool(around["training"]["limit_length"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return True


def download(repository: str | Path, **options: Any) -> Path:
    """The folder of a model that lies in a repository on the Hub, fetched if it has changed."""
    wanted = [*FILES, CHECKSUMS, *FOR_REPAIR]
    try:
        return Path(snapshot_download(str(repository), allow_patterns=wanted, **options))
    except (OSError, ValueError) as error:  # no such repository, no network, no valid name
        raise FileNotFoundError(
            f"there is no folder {repository}, and nothing came from the Hub: {error}"
        ) from error


def read_weights(folder: Path, model: nn.Module) -> None:
    """Fill a model with the weights of a folder, every one of them and no others."""
    path = _existing(folder / WEIGHTS, "the weights")
    try:
        load_model(model, path)
    except SafetensorError as error:
        raise ValueError(f"{path} should hold weights as safetensors: {error}") from error
    except RuntimeError as error:
        raise ValueError(f"{path} does not fit {folder / CONFIG}: {error}") from error
    for name, weight in model.state_dict().items():
        # A length that never occurs may have probability zero.
        of_lengths = name == LENGTHS or name.startswith("other_lengths.")
        wrong = weight.isnan() | weight.isposinf() if of_lengths else ~weight.isfinite()
        if bool(wrong.any()):
            raise ValueError(
                f"{path}: {int(wrong.sum())} of the values of {name} are not finite numbers; "
                "the model cannot be used"
            )


def _read(path: Path, what: str, parse: Callable[[dict[str, object]], Parsed]) -> Parsed:
    try:
        data = read_json(_existing(path, what))
        if not isinstance(data, dict):
            raise ValueError(f"a JSON object was expected, not {type(data).__name__}")
        return parse(data)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{path} should hold {what} as JSON: {error}") from error


def _existing(path: Path, what: str) -> Path:
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} with {what} is missing; the folder of a denoiser holds {', '.join(FILES)}"
        )
    return path
