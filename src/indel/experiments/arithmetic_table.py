"""Table 1: arithmetic sequences, likelihood and error rate for four insert/delete rates.

The paper trains a six-layer transformer on 100,000 batches of 512 sequences of 32 to 64 of 512
numbers, T = 10, five seeds a rate, and averages the validations of the last tenth of training: the
bound on 46,080 sequences and the error rate of 2,304 samples.

Scale `paper` does that. `laptop` keeps the data and trains a smaller network, which starts from
counts, on fewer examples, one seed a rate unless asked for more; it measures the newest model once,
on the test part. `tiny` makes the task smaller: up or down by one among 64
numbers, 10 to 12 of them, T = 3. At every scale a validation takes the same sequences as the one
before, so 46,080 counts repeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from indel.data import ArithmeticData
from indel.experiments import table_records
from indel.experiments.comparisons import Measured
from indel.experiments.paper_numbers import BOUND, ERROR_RATE, PaperValue, rate_name
from indel.experiments.records import FinalMeasure, run_record
from indel.experiments.requests import Request
from indel.experiments.runs import Run, complete, different, planned_run
from indel.experiments.table_records import Record, measured_by_rate, runs_by_rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "table1"
SEEDS = {"tiny": 5, "laptop": 1, "paper": 5}
CHANGES: dict[str, dict[str, Any]] = {
    # In place, the first step back from pure noise settles many tokens at once, and none knows of
    # the others; inserts and deletes ease this and make the later steps harder. So short a sequence
    # shows it with few steps only: with ten, even a perfect denoiser is better in place
    # (studies/ideal_arithmetic.py).
    "tiny": {
        "data.options.numbers": 64,
        "data.options.min_length": 10,
        "data.options.max_length": 12,
        "model.max_length": 40,
        "process.num_steps": 3,
        "optimizer.period": 600,
        "training.steps": 600,
        "validation.every": 60,
    },
    "laptop": {},
    # Nine validations in the last tenth: 46,080 sequences and 2,304 samples.
    "paper": {"validation.every": 1200, "validation.examples": 5120, "validation.samples": 256},
}
FINAL = {
    "tiny": FinalMeasure(examples=256, samples=256, split="test"),
    "laptop": FinalMeasure(examples=256, samples=256, split="test", batch_size=32),
    "paper": FinalMeasure(examples=4608, samples=2304, split="test"),
}
"""The newest model once more, for standard errors over sequences where there is one seed only."""

HEADER = (
    *("forward process", "bound (nats)", "error rate (%)"),
    *("paper: bound", "paper: error rate", "seeds", "examples seen"),
)
PANELS = {"bound (nats)": ("bound", 1.0), "error rate (%)": ("error_rate", 100.0)}
"""What learning curves show: the name of the measure in a record, and the unit."""
PAPER = {
    title: {rate: value.mean for rate, value in values.items()}
    for title, values in zip(PANELS, (BOUND, ERROR_RATE), strict=True)
}
"""Where the paper's own runs ended, by measure and rate."""


def planned_runs(request: Request) -> list[Run]:
    """All runs of the table, seed by seed, so that an unfinished table has all rows."""
    return different(
        planned_run(request, "arithmetic", rate, seed, CHANGES[request.scale])
        for seed in range(request.seeds or SEEDS[request.scale])
        for rate in request.rates
    )


def reproduce_table1(request: Request) -> None:
    """Train, measure, and write the table, its record and its learning curves.

    Paper: Table 1, App. C.2
    """
    runs = planned_runs(request)
    complete(request, runs)
    data = runs[0].config.open_data()
    assert isinstance(data, ArithmeticData)
    record: Record = {
        "experiment": NAME,
        "scale": request.scale,
        "entropy": data.exact_entropy(),
        "measured_on": FINAL[request.scale].examples,
        "samples": FINAL[request.scale].samples,
        "runs": [run_record(request, run, FINAL[request.scale]) for run in runs],
    }
    curves = draw_curves(record)
    table_records.write_record(request, record, runs, HEADER, table_rows(record), curves)


def bounds(record: Record) -> dict[float, Measured]:
    """The bound in nats of each rate."""
    return _measured(record, "bound")


def error_rates(record: Record) -> dict[float, Measured]:
    """The error rate in percent of each rate."""
    return {rate: row.scaled(100.0) for rate, row in _measured(record, "error_rate").items()}


def table_rows(record: Record) -> list[list[str]]:
    """A row for each rate, with the paper's numbers beside ours."""
    bound, errors = bounds(record), error_rates(record)
    return [
        [
            rate_name(rate),
            f"≤ {bound[rate].text(2)}",
            errors[rate].text(2),
            f"≤ {_text(BOUND.get(rate))}",
            _text(ERROR_RATE.get(rate)),
            str(len(runs)),
            f"{max(run['examples'] for run in runs):,}",
        ]
        for rate, runs in runs_by_rate(record).items()
    ]


def draw_curves(record: Record) -> Figure:
    """Bound and error rate against examples seen; level lines: where the paper's runs ended."""
    return table_records.draw_curves(record, PANELS, PAPER)


def measured_once(record: Record) -> bool:
    """Whether the newest model counts, and not the mean over the last tenth of training."""
    return bool(record["scale"] == "laptop")


def _measured(record: Record, name: str) -> dict[float, Measured]:
    once = measured_once(record)
    return measured_by_rate(
        record,
        lambda run: run["final"][name][0] if once else run["late"][name],
        lambda run: run["final"][name][1],
    )


def _text(value: PaperValue | None) -> str:
    return "–" if value is None else f"{value.mean:.2f} ± {value.deviation:.2f}"
