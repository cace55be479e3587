"""The record of a table, a JSON file that holds all of its runs: read by row, drawn as curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from indel.experiments.comparisons import Measured
from indel.experiments.files import write_figure, write_json, write_table, write_text
from indel.experiments.paper_numbers import rate_name
from indel.experiments.requests import Request
from indel.experiments.runs import Run, settings_beside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = dict[str, Any]


def runs_by_rate(record: Record) -> dict[float, list[Record]]:
    """The runs of each row, rates rising."""
    rates = sorted({run["rate"] for run in record["runs"]})
    return {rate: [run for run in record["runs"] if run["rate"] == rate] for rate in rates}


def measured_by_rate(
    record: Record,
    value: Callable[[Record], float],
    error: Callable[[Record], float],
) -> dict[float, Measured]:
    """One measure of each row, given how to read it and its standard error off a run."""
    return {
        rate: Measured(tuple(map(value, runs)), tuple(map(error, runs)))
        for rate, runs in runs_by_rate(record).items()
    }


def papers_own_task(record: Record) -> bool:
    """Whether the paper's numbers compare: scale `tiny` makes another task of it."""
    return bool(record["scale"] != "tiny")


def common_examples(record: Record) -> int | None:
    """The most examples after which every run was validated; None if there is no such number."""
    seen = [{point["examples"] for point in run.get("curve", ())} for run in record["runs"]]
    return max(set.intersection(*seen), default=None) if seen else None


def validated_at(record: Record, examples: int, name: str) -> dict[float, float]:
    """A measure of each row, the mean over its seeds, when its runs had seen so many examples."""
    return {
        rate: fmean(
            point[name] for run in runs for point in run["curve"] if point["examples"] == examples
        )
        for rate, runs in runs_by_rate(record).items()
    }


def draw_curves(
    record: Record,
    panels: Mapping[str, tuple[str, float]],
    paper: Mapping[str, Mapping[float, float]],
) -> Figure:
    """Learning curves: panels say what is drawn and in which unit, `paper` where its runs ended.

    The latter is left out where the paper did not measure this task.
    """
    from indel.drawing.learning_curves import Curve, draw_learning_curves

    rows = runs_by_rate(record)
    return draw_learning_curves(
        {
            title: {
                rate_name(rate): [
                    Curve(
                        [point["examples"] for point in run["curve"]],
                        [factor * point[name] for point in run["curve"]],
                    )
                    for run in runs
                    if run.get("curve")
                ]
                for rate, runs in rows.items()
            }
            for title, (name, factor) in panels.items()
        },
        paper={
            title: {rate_name(rate): value for rate, value in levels.items()}
            for title, levels in paper.items()
            if papers_own_task(record)
        },
    )


def write_record(
    request: Request,
    record: Record,
    runs: Sequence[Run],
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    curves: Figure,
) -> None:
    """Write the record, the config of its first run, the table and the curves."""
    name = record["experiment"]
    write_json(request.folder / f"{name}.json", record)
    write_text(request.folder / f"{name}.toml", settings_beside(runs[0].config))
    write_table(request.folder / name, header, rows)
    write_figure(curves, request.folder / f"{name}-curves")
    request.say(f"wrote {request.folder / name}.md, .csv, .json, .toml and its learning curves")
