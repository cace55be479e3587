"""`indel reproduce`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer
from rich.logging import RichHandler

from indel import extras
from indel.commands.arguments import parsed_settings

ALL, REPORT = "all", "report"
INTERRUPTED = 130


def reproduce(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT…",
            help="table1, table2, ngrams, figure1 … figure7, all, or report: a Markdown page.",
        ),
    ],
    scale: Annotated[str, typer.Option(help="tiny, laptop or paper.")] = "tiny",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Runs of each row of a table; default: by scale.")
    ] = None,
    rates: Annotated[
        str, typer.Option(help="The rows of a table, e.g. 0,0.6: insert/delete rates.")
    ] = "0,0.4,0.6,0.8",
    out: Annotated[Path, typer.Option(help="Results go to OUT/SCALE.")] = Path("results"),
    data: Annotated[
        Path | None, typer.Option(help="text8 or text8.zip; not for scale tiny.")
    ] = None,
    use: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RATE=FOLDER",
            help="A run, one of its checkpoints or a model from elsewhere, instead of training.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of all training runs."),
    ] = None,
    page: Annotated[
        Path, typer.Option(help="Where the report goes; its pictures into images/ beside it.")
    ] = Path("docs/results.md"),
) -> None:
    """Make tables and figures of the paper; what is there already is not made again."""
    for package in ("matplotlib", "accelerate"):
        extras.require("reproducing", package, "plots,train")
    from indel.experiments import EXPERIMENTS, Interrupted, Request
    from indel.experiments.report import write_report

    known = (*EXPERIMENTS, ALL, REPORT)
    for name in what:
        if name not in known:
            raise ValueError(f"there is no {name!r} to reproduce; there are {', '.join(known)}")
    request = Request(
        scale=scale,
        out=out,
        seeds=seeds,
        rates=_rates(rates),
        data=data,
        used=_used(use or []),
        overrides=parsed_settings(set_ or [], "--set"),
    )
    logging.basicConfig(
        level=logging.WARNING, format="%(message)s", handlers=[RichHandler(show_path=False)]
    )
    try:
        for name in EXPERIMENTS if ALL in what else [name for name in what if name != REPORT]:
            request.say(f"{name}, scale {scale}")
            EXPERIMENTS[name](request)
    except Interrupted as reason:
        request.say(f"{reason}; the same command goes on")
        raise typer.Exit(INTERRUPTED) from None
    if REPORT in what:
        print(write_report(out, page))
    else:
        print(request.folder)


def _rates(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(rate) for rate in text.split(","))
    except ValueError:
        raise ValueError(f"--rates takes numbers with commas between, got {text!r}") from None


def _used(pairs: list[str]) -> dict[float, Path]:
    used = {}
    for pair in pairs:
        rate, sign, folder = pair.partition("=")
        try:
            used[float(rate)] = Path(folder)
        except ValueError:
            sign = ""
        if not sign or not Path(folder).is_dir():
            raise ValueError(
                f"--use takes RATE=FOLDER of a run, a checkpoint or a model, got {pair!r}"
            )
    return used
