"""Which trained model a figure shows."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from indel.experiments.requests import Request
from indel.experiments.runs import Run, complete
from indel.model import Denoiser
from indel.model.saving import WEIGHTS
from indel.pretrained import pretrained_folder


class ShownModel(NamedTuple):
    """A model and where it comes from."""

    denoiser: Denoiser
    origin: str


def shown_model(request: Request, run: Run, bundled: str) -> ShownModel:
    """The model given with --use, or at scale laptop the bundled one, or that of a table's run."""
    folder = pretrained_folder(bundled)
    if request.scale == "laptop" and not run.foreign and (folder / WEIGHTS).is_file():
        run = replace(run, name=f"bundled {bundled}", folder=folder, foreign=True)
    complete(request, [run])
    return ShownModel(run.model(), run.name)
