"""The page of the commands, from their argument parsers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from indel.cli import app


def commands() -> Iterator[tuple[str, Any, Any]]:
    """The name of each command, the command, and the context that it is run in."""
    whole = typer.main.get_command(app)
    context = whole.make_context("indel", ["models"])
    for name in whole.list_commands(context):
        yield name, whole.get_command(context, name), context


def command_reference() -> str:
    """All commands as Markdown: what each does, how it is called, and its options."""
    parts = []
    for name, command, parent in commands():
        context = type(parent)(command, info_name=name, parent=parent)
        words = " ".join(command.collect_usage_pieces(context))
        parts.append(
            f"## indel {name}\n\n{_text(command.help)}\n\n```text\nindel {name} {words}\n```\n"
        )
        rows = [each.get_help_record(context) for each in command.get_params(context)]
        parts.append(_table([row for row in rows if row is not None and row[0] != "--help"]))
    return "\n".join(parts)


def _table(rows: list[tuple[str, str]]) -> str:
    lines = [f"| `{names}` | {_cell(_text(about))} |\n" for names, about in rows]
    return "| Argument or option | |\n|---|---|\n" + "".join(lines)


def _text(text: str | None) -> str:
    return " ".join((text or "").split())


def _cell(text: str) -> str:
    """Text in a table: its bars and angle brackets are no markup."""
    return re.sub(r"([|*_\[\]{}`])", r"\\\1", text.replace("<", "&lt;").replace(">", "&gt;"))
