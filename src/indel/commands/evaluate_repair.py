"""`indel evaluate-repair`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from indel.atomic_files import write_output
from indel.commands.arguments import BatchSize, Device, Seed, open_repairer
from indel.commands.repair import Words
from indel.commands.repair_views import progress_bar
from indel.text_repair import defaults
from indel.text_repair.pairs import Half, Pair, read_pairs

if TYPE_CHECKING:
    from indel.text_repair.evaluation import Result
    from indel.text_repair.lines import Progress
    from indel.text_repair.repairer import Repairer
    from indel.text_repair.results import Repair

AS_TYPED = "as typed"


def evaluate_repair(
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS.tsv", help="A line each: noisy, a tab, clean.")
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|PATH", help=f"May be repeated (default: {defaults.MODEL} alone)."
        ),
    ] = None,
    half: Annotated[
        Half | None,
        typer.Option(
            help="first: lines 0, 2, 4 … (to choose settings); second: 1, 3, 5 … (to test them)."
        ),
    ] = None,
    min_length: Annotated[int, typer.Option(min=0, help="Of the clean sentence.")] = 0,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Of the clean sentence; default: any.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many pairs, the first.")] = None,
    strength: Annotated[
        int, typer.Option(min=1, help="The time t that the text is taken to be at.")
    ] = defaults.STRENGTH,
    draws: Annotated[
        int,
        typer.Option(
            min=0,
            max=10_000,
            help="0: none, the network's guess of the edits is read off.",
        ),
    ] = 0,
    agreement: Annotated[
        float, typer.Option(help="How sure a correction must be, at most 1.")
    ] = defaults.AGREEMENT,
    words: Words = True,
    checkers: Annotated[
        bool, typer.Option(help="Also measure pyspellchecker, symspellpy and aspell.")
    ] = True,
    seed: Seed = 0,
    batch_size: BatchSize = defaults.BATCH_SIZE,
    device: Device = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write every sentence here, a JSON object a line.")
    ] = None,
) -> None:
    """Measure repair on pairs of a noisy and a clean sentence, beside spell checkers.

    A second table says how often corrections of each probability are right.
    """
    from indel.text_repair.evaluation import as_typed, measure, reliability

    chosen = read_pairs(pairs, half=half, min_length=min_length, max_length=max_length, limit=limit)
    results = {AS_TYPED: as_typed(chosen)}
    bins: dict[str, list[dict[str, float]]] = {}
    names = list(dict.fromkeys(model or [defaults.MODEL]))
    for name in names:
        repairer = open_repairer(
            name,
            device,
            with_words=words,
            strength=strength,
            draws=draws,
            agreement=agreement,
            seed=seed,
            batch_size=batch_size,
        )
        repairer.mender  # noqa: B018  # opened before the time is taken
        found: list[Repair] = []
        with progress_bar(name) as progress:
            results[name] = measure(chosen, partial(_repaired, repairer, found, progress=progress))
        bins[name] = [each._asdict() for each in reliability(chosen, found)]
    if checkers:
        results |= _checked(chosen)
    rows = {name: _row(result, results[names[0]], seed) for name, result in results.items()}
    if out is not None:
        write_output(out, _sentences(chosen, results))
    if as_json:
        print(json.dumps({"pairs": len(chosen), "rows": rows, "reliability": bins}, indent=2))
        return
    print(f"{len(chosen)} pairs, {sum(len(pair.clean) for pair in chosen):,} clean characters")
    console = Console(soft_wrap=True, highlight=False)
    console.print(_table(rows, names[0]))
    for name, table in bins.items():
        console.print()
        console.print(_reliability(name, table))


def _repaired(
    repairer: Repairer, kept: list[Repair], texts: Sequence[str], *, progress: Progress
) -> list[str]:
    kept += repairer(texts, progress=progress)
    return [repair.text for repair in kept]


def _checked(pairs: list[Pair]) -> dict[str, Result]:
    """The results of the spell checkers that are here; of the others it is said why not."""
    from indel.text_repair.evaluation import measure
    from indel.text_repair.spell_checkers import CHECKERS, Unavailable

    results = {}
    for name, open_checker in CHECKERS.items():
        try:
            results[name] = measure(pairs, open_checker())
        except Unavailable as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return results


def _row(result: Result, reference: Result, seed: int) -> dict[str, Any]:
    from indel.text_repair.evaluation import difference

    return {
        "wrong characters": int(result.wrong.sum()),
        "CER": result.error_rate,
        "exact": result.exact,
        "untouched": result.untouched,
        "characters per second": result.speed if result.seconds else None,
        "more wrong": difference(result, reference, seed=seed)._asdict(),
    }


def _table(rows: dict[str, dict[str, Any]], reference: str) -> Table:
    table = Table(
        *("", "wrong", "CER", "exact", "untouched", "char/s", "ΔCER in % [95 %]"),
        box=None,
        padding=(0, 1),
        caption=(
            "wrong: characters, and CER their share of the clean ones; exact: sentences; "
            "untouched: correct words that are still there; "
            f"ΔCER: more than {reference}, paired bootstrap over sentences"
        ),
        caption_justify="left",
    )
    for name, row in rows.items():
        speed, more = row["characters per second"], row["more wrong"]
        mean, low, high = (100 * more[key] for key in ("mean", "low", "high"))
        cells = (
            name,
            f"{row['wrong characters']:,}",
            f"{row['CER']:.2%}",
            f"{row['exact']:.1%}",
            f"{row['untouched']:.2%}",
            "" if speed is None else f"{speed:,.0f}",
            "" if name == reference else f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]",
        )
        table.add_row(*(Text(cell, no_wrap=True) for cell in cells))
    return table


def _reliability(name: str, bins: list[dict[str, float]]) -> Table:
    table = Table(
        *("probability", "places", "mean", "right"),
        box=None,
        padding=(0, 1),
        title=f"{name}: how often the likeliest correction of a place is right",
        title_justify="left",
        caption="places where it would change something, corrected or not",
        caption_justify="left",
    )
    for each in bins:
        table.add_row(
            f"{each['low']:.0%}–{each['high']:.0%}",
            f"{each['places']:,}",
            f"{each['mean']:.1%}",
            f"{each['right']:.1%}",
        )
    return table


def _sentences(pairs: list[Pair], results: dict[str, Result]) -> bytes:
    lines = []
    for number, pair in enumerate(pairs):
        outputs = {
            name: {"text": result.outputs[number], "wrong": int(result.wrong[number])}
            for name, result in results.items()
        }
        lines.append(json.dumps({**pair._asdict(), "outputs": outputs}) + "\n")
    return "".join(lines).encode()
