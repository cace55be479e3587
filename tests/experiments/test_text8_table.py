"""Table 2: the sweep, the choice of the best schedule, and which data is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from indel.experiments import Request
from indel.experiments.paper_numbers import RATES
from indel.experiments.runs import settings_beside
from indel.experiments.text8_table import best_runs, bits, planned_runs, table_rows
from support.small_requests import small_request


def record_of(*runs: tuple[float, int, float, str, float]) -> dict[str, Any]:
    """(rate, seed, learning rate, schedule, bits) of each run."""
    return {
        "scale": "paper",
        "runs": [
            {
                "rate": rate,
                "seed": seed,
                "learning_rate": learning_rate,
                "schedule": schedule,
                "examples": 5120,
                "final": {"bits_per_token": [mean, 0.01]},
            }
            for rate, seed, learning_rate, schedule, mean in runs
        ],
    }


def test_paper_scale_sweeps_twelve_schedules_for_each_rate(tmp_path: Path) -> None:
    runs = planned_runs(Request(scale="paper", out=tmp_path, data=tmp_path / "text8.zip"))
    assert len(runs) == len({run.name for run in runs}) == 48
    optimizers = {(r.config.optimizer.learning_rate, r.config.optimizer.schedule) for r in runs}
    assert len(optimizers) == 12
    assert {run.rate for run in runs} == set(RATES)
    config = runs[0].config
    assert (config.training.steps, config.training.batch_size) == (1_000_000, 512)
    assert config.data.options["path"] == str(tmp_path / "text8.zip")
    # The path is this machine's business.
    assert str(tmp_path) not in settings_beside(config)


def test_laptop_scale_has_one_schedule_and_equal_budgets(tmp_path: Path) -> None:
    runs = planned_runs(Request(scale="laptop", out=tmp_path))
    assert [run.rate for run in runs] == list(RATES)
    assert len({run.config.training.steps for run in runs}) == 1


def test_tiny_scale_needs_no_data(tmp_path: Path) -> None:
    (run,) = planned_runs(small_request(tmp_path, rates=(0.4,), data=tmp_path / "nowhere"))
    assert run.config.data.name == "text8-sample"
    assert run.config.open_data().vocabulary.size == 28


def test_the_best_schedule_of_each_rate_is_reported() -> None:
    record = record_of(
        (0.0, 0, 1e-4, "constant", 1.70),
        (0.0, 0, 2e-4, "cosine", 1.68),
        (0.0, 1, 2e-4, "cosine", 1.72),
        (0.6, 0, 1e-4, "constant", 1.80),
        (0.6, 0, 2e-4, "cosine", 1.90),
    )
    assert [run["final"]["bits_per_token"][0] for run in best_runs(record)["runs"]] == [
        1.68,
        1.72,
        1.80,
    ]
    in_place, other = table_rows(record)
    assert in_place == [
        *("in place", "≤ 1.700 ± 0.028", "0.020", "≤ 1.669", "2", "0.0002", "cosine", "5,120")
    ]
    assert other[1:4] == ["≤ 1.800", "0.010", "≤ 1.789"]
    assert bits(record)[0.6].standard_error == 0.01


def test_a_bare_model_has_no_history() -> None:
    record = record_of((0.6, 0, 1e-4, "constant", 1.8))
    for name in ("learning_rate", "schedule", "examples"):
        del record["runs"][0][name]
    assert table_rows(record)[0][5:] == ["–", "–", "–"]
