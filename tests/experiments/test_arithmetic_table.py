"""Table 1 from real runs of a second: its numbers, resuming, runs from elsewhere, the report."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from indel.experiments import Request
from indel.experiments.arithmetic_table import planned_runs, reproduce_table1, table_rows
from indel.experiments.files import read_json
from indel.experiments.report import write_report
from indel.experiments.runs import complete, planned_run
from indel.training import find_checkpoint, train
from indel.training.config_files import changed
from support.small_requests import said, small_measures, small_request

RATES = (0.0, 0.6)


@pytest.fixture(scope="module", autouse=True)
def quickly() -> Iterator[None]:
    with small_measures():
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Request:
    request = small_request(tmp_path_factory.mktemp("results"), seeds=2, rates=RATES)
    reproduce_table1(request)
    return request


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def late_validations(request: Request, rate: float, seed: int, name: str) -> float:
    """The mean over the last tenth of training, read from the run's own lines of JSON."""
    path = request.folder / "runs" / f"arithmetic-rate{rate:g}-seed{seed}" / "metrics.jsonl"
    records = map(json.loads, path.read_text().splitlines())
    values = [r[name] for r in records if r["kind"] == "validation" and r["step"] > 18]
    assert len(values) == 1
    return float(np.mean(values))


def test_the_table_holds_means_and_deviations_of_the_last_tenth(made: Request) -> None:
    with (made.folder / "table1.csv").open(encoding="utf-8") as file:
        rows = {row["forward process"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["in place", "0.6 insert/delete"]
    for rate, row in zip(RATES, rows.values(), strict=True):
        for column, name, factor in (
            ("bound (nats)", "bound", 1.0),
            ("error rate (%)", "error_rate", 100.0),
        ):
            values = [factor * late_validations(made, rate, seed, name) for seed in (0, 1)]
            expected = f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"
            assert row[column].removeprefix("≤ ") == expected
        assert (row["seeds"], row["examples seen"]) == ("2", "160")
    assert rows["in place"]["paper: bound"] == "≤ 39.95 ± 0.06"
    assert rows["0.6 insert/delete"]["paper: error rate"] == "5.16 ± 0.27"


def test_markdown_config_and_curves_are_beside_it(made: Request) -> None:
    lines = (made.folder / "table1.md").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "|" + "---|" * 7
    assert [line.split(" | ")[1] for line in lines[2:]] == [
        row[1] for row in table_rows(read_json(made.folder / "table1.json"))
    ]
    assert "num_steps = 3" in (made.folder / "table1.toml").read_text()
    drawn = (made.folder / "table1-curves.svg").read_text(encoding="utf-8")
    for text in ("examples seen", "bound (nats)", "error rate (%)", "in place"):
        assert f">{text}</text>" in drawn


def test_the_curve_is_against_examples_seen(made: Request) -> None:
    run = read_json(made.folder / "table1.json")["runs"][0]
    assert [point["examples"] for point in run["curve"]] == list(range(16, 161, 16))
    assert run["curve"][-1]["bound"] == late_validations(made, 0.0, 0, "bound")
    mean, error = run["final"]["bound"]
    assert 0 < error < mean


def test_what_is_finished_is_not_run_or_measured_again(made: Request) -> None:
    before = files(made.folder / "runs")
    again = small_request(made.out, seeds=2, rates=RATES)
    reproduce_table1(again)
    assert files(made.folder / "runs") == before
    assert "4 of 4 runs are there already" in said(again)
    assert "measuring" not in said(again)
    assert "measuring" in said(made)


def test_an_unfinished_run_goes_on_to_the_same_bits(made: Request, tmp_path: Path) -> None:
    request = small_request(tmp_path, seeds=1, rates=(0.6,))
    (run,) = planned_runs(request)
    train(changed(run.config, {"training.steps": 10}), run.folder, console=request.console)
    assert run.steps_done == 10
    complete(request, [run])
    assert run.finished
    assert "run 1 of 1, arithmetic-rate0.6-seed0" in said(request)

    whole = weights(find_checkpoint(made.folder / "runs" / run.name))
    assert same(whole, weights(find_checkpoint(run.folder)))


def test_a_run_from_elsewhere_serves_and_is_left_alone(made: Request, tmp_path: Path) -> None:
    elsewhere = made.folder / "runs" / "arithmetic-rate0.6-seed1"
    before = files(elsewhere)
    request = small_request(tmp_path, seeds=2, rates=(0.6,), used={0.6: elsewhere})
    reproduce_table1(request)
    assert files(elsewhere) == before
    assert "run 1" not in said(request)
    (run,) = read_json(request.folder / "table1.json")["runs"]
    assert run["foreign"]
    assert run["late"]["bound"] == late_validations(made, 0.6, 1, "bound")
    assert not [path for path in request.out.rglob("*") if path.name == "metrics.jsonl"]


def test_a_run_from_elsewhere_serves_as_it_was_at_a_checkpoint(
    made: Request, tmp_path: Path
) -> None:
    """So runs of different lengths compare after equally many examples."""
    elsewhere = made.folder / "runs" / "arithmetic-rate0.6-seed1"
    earlier, newest = sorted((elsewhere / "checkpoints").glob("step-*"))[-2:]
    assert (earlier.name, newest.name) == ("step-00000018", "step-00000020")
    request = small_request(tmp_path, rates=(0.6,), used={0.6: earlier})
    (planned,) = planned_runs(request)
    assert same(planned.model().state_dict(), weights(earlier))
    assert not same(planned.model().state_dict(), weights(newest))
    reproduce_table1(request)
    (run,) = read_json(request.folder / "table1.json")["runs"]
    assert (run["steps"], run["examples"]) == (18, 144)
    assert max(point["examples"] for point in run["curve"]) == 144


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    return load_file(checkpoint / "model" / "model.safetensors")


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_model_of_numbers_does_not_serve_for_text(made: Request) -> None:
    used = {0.6: made.folder / "runs" / "arithmetic-rate0.6-seed0"}
    request = small_request(made.out, used=used)
    assert planned_run(request, "arithmetic", 0.6, 0, {}).foreign
    assert not planned_run(request, "text8-sample", 0.6, 0, {}).foreign


def test_another_config_in_the_same_folder_is_refused(made: Request) -> None:
    request = small_request(made.out, seeds=1, rates=(0.0,), overrides={"model.width": 24})
    with pytest.raises(ValueError, match=r"model\.width = 16, but now it is 24"):
        reproduce_table1(request)


# ---------------------------------------------------------------- report


def test_the_report_is_made_from_the_records_alone(made: Request, tmp_path: Path) -> None:
    copy = tmp_path / "results"
    (copy / "tiny").mkdir(parents=True)
    shutil.copy(made.folder / "table1.json", copy / "tiny")
    page = tmp_path / "docs" / "results.md"
    assert write_report(copy, page) == page
    text = page.read_text(encoding="utf-8")
    for line in (made.folder / "table1.md").read_text(encoding="utf-8").splitlines():
        assert line in text
    assert "## Table 1: arithmetic sequences, scale tiny" in text
    assert "160 examples a run" in text
    assert (tmp_path / "docs" / "images" / "table1-tiny.png").stat().st_size < 300_000
    assert "![Learning curves](images/table1-tiny.png)" in text
    again = write_report(copy, tmp_path / "again" / "results.md")
    assert again.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(("shift", "word"), [(-50.0, "better"), (50.0, "worse")])
def test_the_report_says_who_wins(made: Request, tmp_path: Path, shift: float, word: str) -> None:
    record = read_json(made.folder / "table1.json")
    for run in record["runs"]:
        run["late"] = {"bound": 60.0 + run["seed"], "error_rate": 0.5 + 0.01 * run["seed"]}
        if run["rate"]:
            run["late"]["bound"] += shift
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "table1.json").write_text(json.dumps(record), encoding="utf-8")
    text = write_report(tmp_path, tmp_path / "results.md").read_text(encoding="utf-8")
    assert f"**bound (nats), insert/delete against in place: {word} at 0.6.**" in text
    assert "**error rate (%), insert/delete against in place: undecided at 0.6.**" in text
    # Two seeds that differ by 1: a standard error of 1/2 each, √½ for the difference.
    assert f"| bound (nats) | 0.6 insert/delete | {shift:+.3f} | 0.707 |" in text
    assert "standard error is that of the mean over the seeds" in text


def test_unequal_budgets_are_named(made: Request, tmp_path: Path) -> None:
    record = read_json(made.folder / "table1.json")
    for number, run in enumerate(record["runs"]):
        run["curve"] = [
            {"examples": seen, "bound": 10.0 * number + seen, "error_rate": 0.5}
            for seen in (100, 200, 300)[: 2 if number == 0 else 3]
        ]
    record["runs"][0]["examples"] = 999
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "table1.json").write_text(json.dumps(record), encoding="utf-8")
    text = write_report(tmp_path, tmp_path / "results.md").read_text(encoding="utf-8")
    assert "did not have equal budgets" in text
    assert "in place 999" in text
    rates = [run["rate"] for run in record["runs"]]
    bound = 200.0 + 10.0 * fmean(number for number, rate in enumerate(rates) if not rate)
    seen = "After 200 examples, which all rows have seen"
    assert f"{seen}, bound (nats): in place {bound:.3f}" in text
    assert "After 300 examples" not in text


def test_the_report_says_how_far_the_paper_is(made: Request, tmp_path: Path) -> None:
    record = read_json(made.folder / "table1.json") | {"scale": "laptop"}
    for run in record["runs"]:
        bound = 41.95 if run["rate"] == 0 else 35.21
        run["final"] |= {"bound": [bound, 0.5], "error_rate": [0.1, 0.01]}
    (tmp_path / "laptop").mkdir()
    (tmp_path / "laptop" / "table1.json").write_text(json.dumps(record), encoding="utf-8")
    text = write_report(tmp_path, tmp_path / "results.md").read_text(encoding="utf-8")
    over = "Over the paper's own runs, bound (nats)"
    assert f"{over}: in place +2.00, 0.6 insert/delete -0.50." in text
    assert "error rate (%): in place -3.12, 0.6 insert/delete +4.84." in text
    assert "**Not run: 0.4 insert/delete, 0.8 insert/delete.**" in text
    # The paper has not measured the reduced task.
    page = write_report(made.out, tmp_path / "tiny.md").read_text(encoding="utf-8")
    assert "Over the paper" not in page


def test_no_records_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no records below .*indel reproduce table1"):
        write_report(tmp_path, tmp_path / "results.md")


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "table1.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"cannot read the record .*table1\.json"):
        write_report(tmp_path, tmp_path / "results.md")
