"""`indel push`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from indel.commands.arguments import Model


def push(
    model: Model,
    repository: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Where it goes.")],
    title: Annotated[str | None, typer.Option(help="Of a card that is written anew.")] = None,
    private: Annotated[bool, typer.Option("--private", help="Only for the owner.")] = False,
    message: Annotated[str, typer.Option(help="Of the commit.")] = "Upload a model of indel",
    dry_run: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write what would be uploaded there, and upload nothing."
        ),
    ] = None,
) -> None:
    """Upload a model with its card to the Hugging Face Hub, in one commit."""
    import tempfile

    from indel.commands.hub_folders import check_repository, find_token, upload, write_hub_folder

    check_repository(repository)
    if dry_run is not None:
        if dry_run.exists():
            raise ValueError(f"{dry_run} is there already: name a new folder, or remove it first")
        dry_run.parent.mkdir(parents=True, exist_ok=True)
        # All or nothing: the folder gets its name when everything is in it.
        with tempfile.TemporaryDirectory(dir=dry_run.parent) as work:
            folder = write_hub_folder(str(model), repository, Path(work) / "model", title=title)
            folder.rename(dry_run)
        print(f"{dry_run} is what would be uploaded to {repository}; nothing was")
        return
    token = find_token()
    with tempfile.TemporaryDirectory() as work:
        folder = write_hub_folder(str(model), repository, Path(work) / "model", title=title)
        address = upload(folder, repository, token=token, private=private, message=message)
    print(f"{address}\nindel.load({repository!r})")
