"""`indel compare`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer
from rich.logging import RichHandler

from indel import extras
from indel.commands.arguments import parsed_settings

INTERRUPTED = 130


def compare(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]", help="arithmetic, text8, text8-sample, lines:FILE, csv:FILE:COLUMN …"
        ),
    ] = None,
    processes: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME…",
            help="autoregressive, in-place-uniform, in-place-mask, in-place-gaussian, "
            "insert-delete-RATE, delete-only, mask-delete-only-RATE, mask-insert-delete-RATE, "
            "levenshtein-transformer, insertion-deletion-transformer, edit-flow; default: all.",
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option(help="CPU-minutes of training for each process and seed.")
    ] = 15.0,
    seeds: Annotated[int, typer.Option(help="Runs of each process.")] = 2,
    out: Annotated[
        Path | None, typer.Option(help="The folder; what is there already is not done again.")
    ] = None,
    scale: Annotated[str, typer.Option(help="tiny or laptop.")] = "laptop",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="Of the data, e.g. path=text8.zip."),
    ] = None,
    report: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER", help="Put the tables of these comparisons into --page; no training."
        ),
    ] = None,
    page: Annotated[Path, typer.Option(help="Where --report writes.")] = Path("docs/comparison.md"),
) -> None:
    """Train every process with the same network, data and budget, and measure all of them."""
    extras.require("comparing", "matplotlib", "plots")
    from indel.comparison.registry import USUAL, process_of
    from indel.comparison.report import write_page
    from indel.comparison.runs import Comparison
    from indel.comparison.training import Interrupted

    if report:
        if data is not None:
            raise ValueError(f"--report trains nothing: leave out {data!r}")
        print(write_page(report, page))
        return
    if data is None:
        raise ValueError("name the data to compare on: arithmetic, text8, text8-sample, lines:FILE")
    names = None if processes is None else [each.strip() for each in processes.split(",")]
    logging.basicConfig(
        level=logging.WARNING, format="%(message)s", handlers=[RichHandler(show_path=False)]
    )
    if names is None:
        names = [each for each in USUAL if data == "arithmetic" or not process_of(each).needs_order]
    comparison = Comparison(
        data=data,
        processes=names,
        budget=budget,
        seeds=seeds,
        out=out or Path("comparisons") / _folder_name(data, scale),
        scale=scale,
        options=parsed_settings(option or [], "--option"),
    )
    try:
        comparison.run()
    except (Interrupted, KeyboardInterrupt) as reason:
        comparison.say(f"{reason or 'interrupted'}; the same command goes on")
        raise typer.Exit(INTERRUPTED) from None
    print((comparison.out / "table.md").read_text(encoding="utf-8"))
    print(comparison.out)


def _folder_name(data: str, scale: str) -> str:
    """The data without the signs of paths."""
    return "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in data) + f"-{scale}"
