"""The trained models that come with the package."""

from __future__ import annotations

from pathlib import Path

MODELS = ("text8", "in-place", "arithmetic")
"""Insert/delete and in-place models of text, and an insert/delete model of number sequences."""


def pretrained_folder(name: str) -> Path:
    """The folder of a bundled model, for `Denoiser.from_pretrained`.

    >>> pretrained_folder("text8").name
    'text8'
    """
    if name not in MODELS:
        raise ValueError(f"there is no bundled model {name!r}; there are {', '.join(MODELS)}")
    return Path(__file__).parent / name
