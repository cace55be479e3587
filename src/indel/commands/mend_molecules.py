"""`indel mend-molecules`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from indel.commands.arguments import Device, Model, Seed
from indel.commands.molecule_views import counted, require_smiles


def mend_molecules(
    model: Model,
    smiles: Annotated[
        list[str] | None, typer.Argument(metavar="[SMILES]…", help="Strings to mend.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="A file with one string per line instead.")
    ] = None,
    draws: Annotated[
        int, typer.Option(min=1, max=10_000, help="How often each is drawn at each t.")
    ] = 32,
    seed: Seed = 0,
    device: Device = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Make broken SMILES strings into molecules; valid ones stay as they are."""
    import indel
    from indel.molecules.chemistry import rdkit
    from indel.molecules.mending import mend

    if bool(smiles) == (file is not None):
        raise ValueError("give SMILES strings or --file FILE, and not both")
    strings = list(smiles or ()) if file is None else _lines(file)
    rdkit()
    denoiser = indel.load(model, device=device)
    require_smiles(denoiser, str(model))
    for text in strings:
        found = mend(denoiser, text, draws=draws, seed=seed)
        if as_json:
            print(json.dumps({**asdict(found), "draws": draws}))
        elif found.smiles is None:
            print(f"{text} not mended")
        else:
            print(f"{found.smiles} {counted(found.edits)}, {found.votes} of {draws} draws")


def _lines(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not a text in UTF-8: {error}") from None
    found = [line.split()[0] for line in lines if line.strip()]
    if not found:
        raise ValueError(f"{file} holds no molecules; expected is one SMILES string per line")
    return found
