"""The trained models that come with the package."""

from __future__ import annotations

from pathlib import Path

DESCRIPTIONS = {
    "text8": "English text in a–z and spaces, with inserts and deletes",
    "in-place": "the same text with replacements alone",
    "arithmetic": "numbers that count up or down, with inserts and deletes",
    "moses": "molecules written as SMILES, with inserts and deletes",
}
"""What each bundled model generates."""
MODELS = tuple(DESCRIPTIONS)


def pretrained_folder(name: str) -> Path:
    """The folder of a bundled model, for `Denoiser.from_pretrained`.

    >>> pretrained_folder("text8").name
    'text8'
    """
    if name not in MODELS:
        raise ValueError(f"there is no bundled model {name!r}; there are {', '.join(MODELS)}")
    return Path(__file__).parent / name
