"""`indel models`."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table


def models(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """List the trained models that come with the package."""
    from indel.pretrained import DESCRIPTIONS, pretrained_folder

    if as_json:
        facts = {
            name: {"description": description, "folder": str(pretrained_folder(name))}
            for name, description in DESCRIPTIONS.items()
        }
        print(json.dumps(facts, ensure_ascii=False))
        return
    table = Table("name", "what it generates", box=None, padding=(0, 2))
    for name, description in DESCRIPTIONS.items():
        table.add_row(name, description)
    Console(soft_wrap=True, highlight=False).print(table)
