"""`indel serve`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from indel import extras

if TYPE_CHECKING:
    from indel.web.models import Models

Model = Annotated[str, typer.Option(help="A bundled model, or the folder of a model or a run.")]


def serve(
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")] = 7860,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name that the page is served under, e.g. by a proxy."),
    ] = None,
    allow_frame: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN", help="A site that may show the page in a frame: https://NAME."
        ),
    ] = None,
    text8: Model = "text8",
    in_place: Model = "in-place",
    arithmetic: Model = "arithmetic",
    molecules: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A model of SMILES, for the tab of molecules (default: moses, if RDKit is there).",
        ),
    ] = None,
) -> None:
    """Serve the page: repair, watch, fill, process, likelihood and molecules in a browser."""
    if not host.strip():
        raise ValueError(f"--host must be an address, such as 127.0.0.1 or 0.0.0.0, got {host!r}")
    for origin in allow_frame or ():
        if not re.fullmatch(r"https?://[\w.-]+(:\d+)?", origin, re.ASCII):
            raise ValueError(f"--allow-frame must be a site such as https://NAME, got {origin!r}")
    packages = ("gradio", "matplotlib", "PIL")
    for package in packages:
        extras.require_installed("the page", package, "web")
    if molecules is not None:
        extras.require_installed("the tab for molecules", "rdkit", "molecules")
    elif extras.installed("rdkit"):
        molecules = "moses"
    # Before they are imported, which takes seconds.
    print("indel is loading its models and their first examples …", flush=True)
    for package in packages:
        extras.require("the page", package, "web")
    from indel.web.serving import serve as serve_page

    models = open_models(text8, in_place, arithmetic, molecules)
    serve_page(models, host=host, port=port, names=allow_host or (), frames=allow_frame or ())


def open_models(text8: str, in_place: str, arithmetic: str, molecules: str | None = None) -> Models:
    """The models of the page, with the words that lie beside the first."""
    from indel.loading import load, model_folder
    from indel.text_repair.known_words import KnownWords
    from indel.web.models import Models

    words = KnownWords.read(model_folder(text8))
    chemist = None if molecules is None else load(molecules)
    return Models(load(text8), load(in_place), load(arithmetic), words, chemist)
