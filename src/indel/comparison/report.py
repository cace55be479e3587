"""Tables, learning curves and a part of the docs, made from the records of comparisons alone."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from indel.comparison.registry import USUAL
from indel.experiments.comparisons import Measured
from indel.experiments.files import (
    markdown_table,
    read_json,
    write_json,
    write_picture,
    write_text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = dict[str, Any]

TABLE = "table"
CURVES = "curves.png"
BEGIN = "<!-- indel compare --report: what follows is written by the command -->"
END = "<!-- indel compare --report: end -->"
CANNOT = "cannot"


class Column(NamedTuple):
    """One measure of the tables."""

    key: str
    """Part and name in the record's measures, with a dot between."""
    title: str
    factor: float = 1.0
    digits: int = 2

    @property
    def place(self) -> tuple[str, str]:
        """Part and name."""
        part, _, name = self.key.partition(".")
        return part, name


_VALIDITY = (
    Column("error_rate", "wrong steps, %", 100, 1),
    Column("valid", "valid, %", 100, 1),
    Column("known_words", "existing words, %", 100, 1),
)


def _with_validity(part: str) -> tuple[Column, ...]:
    return tuple(each._replace(key=f"{part}.{each.key}") for each in _VALIDITY)


TABLES: dict[str, tuple[Column, ...]] = {
    "Likelihood and samples": (
        Column("likelihood.nats_per_sequence", "−log p, nats per sequence"),
        Column("likelihood.bits_per_token", "bits per token", digits=3),
        *_with_validity("samples"),
        Column("samples.length_distance", "distance of lengths", digits=3),
        Column("samples.unique", "different samples, %", 100, 1),
        Column("samples.distinct_groups", "different groups of 4, %", 100, 1),
    ),
    "Gaps of known length": (
        Column("infill_known_length.exact", "as it was, %", 100, 1),
        *_with_validity("infill_known_length"),
    ),
    "Gaps of unknown length": (
        Column("infill_unknown_length.exact", "as it was, %", 100, 1),
        Column("infill_unknown_length.right_length", "right length, %", 100, 1),
        *_with_validity("infill_unknown_length"),
    ),
    "Repair": (
        Column("repair.before", "wrong tokens before, %", 100, 2),
        Column("repair.after", "after, %", 100, 2),
    ),
    "Cost": (
        Column(".parameters", "weights", digits=0),
        Column(".steps", "steps in the budget", digits=0),
        Column("samples.calls", "network calls per sample", digits=0),
        Column("samples.cpu_seconds", "CPU-ms per sample", 1000, 1),
    ),
}


class Results(NamedTuple):
    """All that is known of a comparison."""

    settings: Record
    runs: dict[str, list[Record]]
    """The records of each process, by seed."""


def read_results(folder: Path) -> Results:
    """The settings and the finished runs of a folder."""
    path = folder / "comparison.json"
    if not path.is_file():
        raise ValueError(
            f"{folder} holds no comparison: first make one with indel compare DATA --out {folder}"
        )
    runs: dict[str, list[Record]] = {}
    records = [read_json(each) for each in sorted((folder / "runs").glob("*/record.json"))]
    usual = {name: place for place, name in enumerate(USUAL)}
    for record in sorted(
        records, key=lambda each: (usual.get(each["process"], len(usual)), each["process"])
    ):
        runs.setdefault(record["process"], []).append(record)
    return Results(read_json(path), runs)


def write_results(folder: Path) -> None:
    """Write the tables of all finished runs and their learning curves."""
    results = read_results(folder)
    if not results.runs:
        return
    write_text(folder / f"{TABLE}.md", tables_text(results))
    write_text(folder / f"{TABLE}.csv", _csv(results))
    write_json(folder / f"{TABLE}.json", _as_json(results))
    write_picture(draw_curves(results), folder / CURVES)


def write_page(folders: Sequence[Path], page: Path) -> Path:
    """Put the tables and curves of comparisons between the two marks of a page."""
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read the page {page}: {error}") from None
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} must hold the lines {BEGIN!r} and {END!r}")
    parts = []
    for folder in folders:
        results = read_results(folder)
        if not results.runs:
            raise ValueError(f"{folder} holds no finished run yet")
        name = f"comparison-{_slug(results.settings)}.png"
        write_picture(draw_curves(results), page.parent / "images" / name)
        about = f"## Results: {_title(results.settings)}\n\n{_about(results)}\n\n"
        curves = f"\n![Learning curves](images/{name})\n"
        parts.append(about + tables_text(results, level="###") + curves)
    return write_text(page, f"{before}{BEGIN}\n\n{chr(10).join(parts)}\n{END}{after}")


# --- tables --------------------------------------------------------------------------------------


def measured(records: Sequence[Record], column: Column) -> Measured | None:
    """A measure of all seeds of a process; None where it has none."""
    values, errors = [], []
    for record in records:
        part, name = column.place
        found = record.get(name) if not part else (record["measures"].get(part) or {}).get(name)
        mean, error = found if isinstance(found, list) else (found, None)
        if mean is None:
            return None
        values.append(float(mean))
        errors.append(math.nan if error is None else float(error))
    return Measured(tuple(values), tuple(errors)).scaled(column.factor)


def tables_text(results: Results, *, level: str = "##") -> str:
    """All tables as Markdown."""
    parts = []
    for title, columns in TABLES.items():
        used = [each for each in columns if _is_measured(results, each)]
        if used:
            header = ["process", *(each.title for each in used)]
            parts.append(f"{level} {title}\n\n{markdown_table(header, _rows(results, used))}")
    return "\n".join(parts)


def _rows(results: Results, columns: Sequence[Column]) -> list[list[str]]:
    rows = [
        [name, *(_cell(records, column) for column in columns)]
        for name, records in results.runs.items()
    ]
    own = results.settings["of_data"]["samples"]
    known = [own.get(each.place[1]) if each.place[0] == "samples" else None for each in columns]
    if any(each is not None for each in known):
        of_data = [
            "" if found is None else f"{column.factor * found[0]:.{column.digits}f}"
            for column, found in zip(columns, known, strict=True)
        ]
        rows.append(["*the data itself*", *of_data])
    return rows


def _cell(records: Sequence[Record], column: Column) -> str:
    found = measured(records, column)
    part, _ = column.place
    if found is None:
        if part == "likelihood":
            return "none" if records[0]["measures"].get(part) is None else "∞"
        return CANNOT if part in ("infill_known_length", "infill_unknown_length", "repair") else "–"
    if column.digits == 0 and part != "likelihood":
        return f"{found.mean:,.0f}"
    text = found.text(column.digits)
    if found.deviation is None and math.isfinite(found.errors[0]):
        text += f" ± {found.errors[0]:.{column.digits}f}"
    kind = (records[0]["measures"].get("likelihood") or {}).get("kind")
    return f"≤ {text}" if part == "likelihood" and kind == "bound" else text


def _is_measured(results: Results, column: Column) -> bool:
    return any(measured(records, column) is not None for records in results.runs.values())


def _csv(results: Results) -> str:
    """One row for each process and measure, with means and errors as numbers."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["process", "measure", "seeds", "mean", "deviation", "standard_error"])
    for row in _measured_rows(results):
        writer.writerow(["" if value is None else value for value in row.values()])
    return text.getvalue()


def _as_json(results: Results) -> Record:
    return {"settings": results.settings, "measures": _measured_rows(results), "runs": results.runs}


def _measured_rows(results: Results) -> list[Record]:
    """Every measure of every process; a deviation is over seeds, an error over sequences or seeds.

    Measures that a process does not have are rows without a mean.
    """
    rows = []
    for columns in TABLES.values():
        for column in columns:
            if not _is_measured(results, column):
                continue
            for name, records in results.runs.items():
                found = measured(records, column._replace(factor=1.0))
                rows.append(
                    {
                        "process": name,
                        "measure": column.key.removeprefix("."),
                        "seeds": len(records),
                        "mean": None if found is None else found.mean,
                        "deviation": None if found is None else found.deviation,
                        "standard_error": None if found is None else _finite(found.standard_error),
                    }
                )
    return rows


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# --- curves and words ----------------------------------------------------------------------------

_PANELS: tuple[tuple[str, str, float], ...] = (
    ("nats_per_sequence", "−log p or its bound, nats per sequence", 1.0),
    ("error_rate", "wrong steps of samples, %", 100.0),
    ("known_words", "existing words of samples, %", 100.0),
)


def draw_curves(results: Results) -> Figure:
    """A panel for each measure that was taken during training, a line for each seed."""
    from indel.drawing.learning_curves import Curve, draw_learning_curves

    panels: dict[str, dict[str, list[Curve]]] = {}
    for name, title, factor in _PANELS:
        groups = {}
        for process, records in results.runs.items():
            curves = [_curve(record["curve"], name, factor, Curve) for record in records]
            if any(curve.values for curve in curves):
                groups[process] = curves
        if groups:
            panels[title] = groups
    return draw_learning_curves(panels, unit="CPU-minutes of training")


def _curve(points: Sequence[Record], name: str, factor: float, make: Callable[..., Any]) -> Any:
    known = [each for each in points if each.get(name) is not None]
    return make(
        [each["cpu_seconds"] / 60 for each in known], [factor * each[name] for each in known]
    )


def _title(settings: Record) -> str:
    return f"{settings['data']}, {settings['budget_minutes']:g} CPU-minutes per process"


def _slug(settings: Record) -> str:
    name = settings["data"].partition(":")[0]
    return f"{name}-{settings['scale']}-{settings['budget_minutes']:g}min"


def _about(results: Results) -> str:
    """What was run, where and when."""
    settings = results.settings
    seeds = sorted({len(records) for records in results.runs.values()})
    options = ", ".join(f"{name} {value}" for name, value in settings["data_options"].items())
    spread = "± is the standard deviation over seeds"
    if seeds == [1]:
        spread = "± is the standard error over sequences"
    return (
        f"Data: {settings['data']} ({options or 'no options'}), {settings['vocabulary_size']} "
        f"tokens, sequences of at most {settings['max_length']}. Scale {settings['scale']}: "
        f"{_backbone(settings['backbone'])}, T = {settings['num_steps']}, batches of "
        f"{settings['batch_size']}. Each process trained for {settings['budget_minutes']:g} "
        f"CPU-minutes, with {' or '.join(map(str, seeds))} seed{'' if seeds == [1] else 's'}; "
        f"{spread}. Machine: {settings['machine']}; {settings['date']}."
    )


def _backbone(backbone: Record) -> str:
    return (
        f"{backbone['num_layers']} layers of width {backbone['width']} with "
        f"{backbone['num_heads']} heads"
    )
