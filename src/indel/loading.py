"""Which model is meant: the one place that answers, for the library, the command and the page."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from indel.model import Denoiser
from indel.model.saving import WEIGHTS, download
from indel.pretrained import MODELS, pretrained_folder

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def load(model: str | Path, *, device: str | torch.device = "cpu") -> Denoiser:
    """A trained model, ready to use (in evaluation mode).

    Nothing is unpickled and no code is run: a model is JSON and safetensors.

    Args:
        model: The name of a bundled model (text8, in-place, arithmetic, moses), the folder of a
            model, of a training run (its best checkpoint) or of a checkpoint, or a repository on
            the Hugging Face Hub, `owner/name`. A bundled name comes first: `./text8` is a folder.
        device: Where the weights go: "cpu", "cuda", "cuda:1", "mps" …

    Returns:
        The denoiser with its vocabulary, forward process, length limit and edit weights.

    >>> model = load("text8")
    >>> model.vocabulary.size, model.schedule.num_steps, model.length_limit
    (28, 32, 127)

    Reference: docs/model.md
    """
    try:
        where = torch.device(device)
        torch.empty(0, device=where)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {str(device)!r} is not available: {error}") from None
    return Denoiser.from_pretrained(model_folder(model), map_location=where)


def model_folder(model: str | Path, *, newest: bool = False) -> Path:
    """The folder with the weights of the model that is meant; see `load`.

    Of a run it is the best checkpoint in validation, or with `newest` the last one.
    """
    if str(model) in MODELS:
        return pretrained_folder(str(model))
    path = Path(model).expanduser()
    if (path / WEIGHTS).is_file():
        return path
    if path.exists():
        # Only here: training needs packages that using a model does not.
        from indel.training.checkpoints import MODEL, find_checkpoint

        return find_checkpoint(path, prefer_best=not newest) / MODEL
    reason = ""
    if _REPOSITORY.fullmatch(str(model)):
        try:
            return download(str(model))
        except FileNotFoundError as error:
            reason = f" (the Hub says: {' '.join(str(error.__cause__ or error).split())[:200]})"
    raise ValueError(
        f"there is no model at {model}: expected is one of {', '.join(MODELS)}, the folder of "
        f"a model, a run or a checkpoint, or a repository on the Hub{reason}"
    )
