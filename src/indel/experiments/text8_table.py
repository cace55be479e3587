"""Table 2: text8, bits per character for four insert/delete rates.

The paper trains a twelve-layer transformer on 1,000,000 batches of 512 chunks of 118 characters,
T = 32, sequences of 128 or more drawn again, with twelve learning-rate schedules a rate, and gives
the best: the bound on 40,960 chunks of the validation set, corrected for the length limit.

Scale `paper` does that. `laptop` trains a smaller network, which starts from counts, on fewer
chunks, with one schedule, and measures the bound on a subset of the validation set. `tiny` takes
the sample of text8 that comes with the package, chunks of 32 and T = 10: it shows that all parts
work, and no more. At every scale it is the newest model that is measured, once; the paper averages
over the last tenth of training.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from indel.experiments import table_records
from indel.experiments.comparisons import Measured
from indel.experiments.paper_numbers import BITS, LEARNING_RATES, SCHEDULES, rate_name
from indel.experiments.records import FinalMeasure, run_record
from indel.experiments.requests import Request
from indel.experiments.runs import Run, complete, different, planned_run
from indel.experiments.table_records import Record, measured_by_rate, runs_by_rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "table2"
TASK = {"tiny": "text8-sample", "laptop": "text8", "paper": "text8"}
CHANGES: dict[str, dict[str, Any]] = {
    # Longer sequences than the data has: Figure 4 repairs one of 119 characters.
    "tiny": {"model.max_length": 127, "validation.every": 40},
    "laptop": {},
    "paper": {},
}
FINAL = {
    "tiny": FinalMeasure(examples=128, split="valid", samples=32),
    "laptop": FinalMeasure(examples=256, num_times=8, split="valid", samples=32, batch_size=32),
    "paper": FinalMeasure(examples=40_960, split="valid", samples=256, batch_size=256),
}
HEADER = (
    *("forward process", "bits per character", "standard error"),
    *("paper", "seeds", "learning rate", "schedule", "examples seen"),
)
PANELS = {"bits per character": ("bits_per_token", 1.0)}
"""What learning curves show: the name of the measure in a record, and the unit."""
PAPER = {title: BITS for title in PANELS}
"""Where the paper's own runs ended, by measure and rate."""


def planned_runs(request: Request) -> list[Run]:
    """All runs of the table; at scale `paper` the whole sweep of learning rates and schedules."""
    return different(
        planned_run(request, TASK[request.scale], rate, seed, changes, suffix)
        for seed in range(request.seeds or 1)
        for changes, suffix in _sweep(request)
        for rate in request.rates
    )


def reproduce_table2(request: Request) -> None:
    """Train, measure, and write the table, its record and its learning curves.

    Paper: Table 2, App. C.3
    """
    runs = planned_runs(request)
    complete(request, runs)
    measure = FINAL[request.scale]
    record: Record = {
        "experiment": NAME,
        "scale": request.scale,
        "measured_on": measure.examples,
        "times": measure.num_times,
        "runs": [run_record(request, run, measure) for run in runs],
    }
    curves = draw_curves(record)
    table_records.write_record(request, record, runs, HEADER, table_rows(record), curves)


def bits(record: Record) -> dict[float, Measured]:
    """Bits a character of the best schedule of each rate."""
    return measured_by_rate(best_runs(record), _bits, lambda run: run["final"]["bits_per_token"][1])


def best_runs(record: Record) -> Record:
    """The record with the runs of the best learning-rate schedule of each rate alone."""
    kept: list[Record] = []
    for runs in runs_by_rate(record).values():
        best = min(runs, key=_bits)
        kept += [run for run in runs if _schedule(run) == _schedule(best)]
    return {**record, "runs": kept}


def table_rows(record: Record) -> list[list[str]]:
    """A row for each rate, with the paper's number beside ours."""
    best = best_runs(record)
    measured = bits(record)
    return [
        [
            rate_name(rate),
            f"≤ {measured[rate].text(3)}",
            f"{measured[rate].standard_error:.3f}",
            f"≤ {BITS[rate]:.3f}" if rate in BITS else "–",
            str(len(runs)),
            *_schedule(runs[0]),
            f"{runs[0]['examples']:,}" if "examples" in runs[0] else "–",
        ]
        for rate, runs in runs_by_rate(best).items()
    ]


def draw_curves(record: Record) -> Figure:
    """Bits a character against examples seen; level lines: where the paper's runs ended."""
    return table_records.draw_curves(best_runs(record), PANELS, PAPER)


def _sweep(request: Request) -> list[tuple[dict[str, Any], str]]:
    """Settings, and the part of a run's name that tells them apart."""
    changes = CHANGES[request.scale]
    if TASK[request.scale] == "text8" and request.data is not None:
        changes = {**changes, "data.options.path": str(request.data)}
    if request.scale != "paper":
        return [(changes, "")]
    return [
        (
            {**changes, "optimizer.learning_rate": learning_rate, "optimizer.schedule": schedule},
            f"-{learning_rate:g}-{schedule}",
        )
        for learning_rate, schedule in product(LEARNING_RATES, SCHEDULES)
    ]


def _bits(run: Record) -> float:
    mean: float = run["final"]["bits_per_token"][0]
    return mean


def _schedule(run: Record) -> tuple[str, str]:
    rate = run.get("learning_rate")
    return ("–" if rate is None else f"{rate:g}", run.get("schedule", "–"))
