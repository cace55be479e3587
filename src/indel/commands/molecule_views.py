"""What commands show of molecules beside their strings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from indel.extras import MissingExtraError

if TYPE_CHECKING:
    from indel.model import Denoiser
    from indel.molecules.pictures import Panel
    from indel.molecules.relatives import Relative
    from indel.sampling.particles import HeldSamples

Draw = Annotated[
    Path | None,
    typer.Option(metavar="FILE.svg", help="Of molecules: also draw them, new atoms marked."),
]


def require_smiles(model: Denoiser, name: str) -> None:
    """Refuse a model of anything else."""
    from indel.vocabularies.smiles import spells_smiles

    if not spells_smiles(model.vocabulary):
        raise ValueError(
            f"the model {name} must be one of SMILES strings, got {model.vocabulary!r:.80}"
        )


def relatives_of(model: Denoiser, text: str, variants: list[str]) -> list[Relative] | None:
    """How variants of a molecule compare with it; None for a model of something else.

    Without RDKit a line on stderr says what is missing.
    """
    from indel.molecules.relatives import relatives
    from indel.vocabularies.smiles import spells_smiles

    if not spells_smiles(model.vocabulary):
        return None
    try:
        return relatives(text, variants)
    except MissingExtraError as error:
        print(f"indel: similarity and validity are not shown: {error}", file=sys.stderr)
        return None


def counted(edits: int) -> str:
    """How many edits, in words.

    >>> counted(1), counted(2)
    ('1 edit', '2 edits')
    """
    return "1 edit" if edits == 1 else f"{edits} edits"


def check_molecule(model: Denoiser, text: str, draw: Path | None) -> None:
    """Refuse what is no molecule before anything is drawn, where RDKit can tell."""
    from indel.molecules.chemistry import molecule, rdkit
    from indel.vocabularies.smiles import spells_smiles

    if draw is not None:
        require_smiles(model, "for --draw")
        rdkit()
    if spells_smiles(model.vocabulary):
        try:
            molecule(text)
        except MissingExtraError:
            return


def write_picture(path: Path, panels: list[Panel], columns: int = 4) -> None:
    """Write molecules to an SVG file, whole or not at all."""
    from indel.atomic_files import write_output
    from indel.molecules.pictures import picture

    write_output(path, picture(panels, columns).encode())


def filled_panels(samples: HeldSamples) -> list[Panel]:
    """Molecules that grew from a pattern: what the model wrote is new."""
    from dataclasses import replace

    from indel.molecules.growing import grown_panel

    panels = [grown_panel(samples, row) for row in range(len(samples.texts))]
    return [replace(panel, caption=f"{panel.smiles}\n{panel.caption}") for panel in panels]
