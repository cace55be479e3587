"""`indel reproduce`: every mistake is one line, and all of it runs from scratch."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from indel.cli import run
from support.small_requests import SMALL_RUNS, small_measures


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "WHAT"),
        (["table3"], "there is no 'table3' to reproduce; there are table1"),
        (["figure2", "--scale", "huge"], "scale must be one of tiny, laptop, paper"),
        (
            ["table1", "--rates", "0,much"],
            "--rates takes numbers with commas between, got '0,much'",
        ),
        (["table1", "--rates", "0,2"], "rates must be"),
        (["table1", "--rates", "0,0"], "rates must be different"),
        (["table1", "--seeds", "0"], "0"),
        (
            ["table1", "--use", "0.6"],
            "--use takes RATE=FOLDER of a run, a checkpoint or a model, got '0.6'",
        ),
        (["table1", "--use", "0.6=nowhere"], "got '0.6=nowhere'"),
        (["table1", "--set", "training.stepz=3"], "did you mean 'steps'"),
        (["report"], "there are no records below"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert run(["reproduce", *arguments, "--out", str(tmp_path)]) == 2
    shown = capsys.readouterr().err
    assert says in shown
    assert "Traceback" not in shown
    complaint = [line for line in shown.strip().splitlines() if line.startswith("indel:")]
    assert len(complaint) == 1


def test_figures_without_a_model_are_made_in_one_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reproduce", "figure2", "figure7", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "tiny")
    assert {path.name for path in (tmp_path / "tiny").iterdir()} == {
        f"figure{number}.{ending}" for number in (2, 7) for ending in ("png", "svg", "json")
    }


@pytest.mark.slow
def test_all_of_it_runs_from_scratch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, page = tmp_path / "results", tmp_path / "docs" / "results.md"
    settings = [f"--set={name}={value}" for name, value in SMALL_RUNS.items()]
    settings += ["--seeds", "2", "--out", str(out), "--page", str(page)]
    with small_measures():
        assert run(["reproduce", "all", "report", "--scale", "tiny", *settings]) == 0
        check_results(out / "tiny", page)
        assert str(tmp_path) not in page.read_text(encoding="utf-8")
        capsys.readouterr()
        # Nothing of it is done twice.
        assert run(["reproduce", "table1", "table2", "figure1", "figure4", *settings]) == 0
    again = capsys.readouterr().err
    assert again.count("8 of 8 runs are there already") == 2
    assert "measuring" not in again


def check_results(folder: Path, page: Path) -> None:
    for table, column in (("table1", "bound (nats)"), ("table2", "bits per character")):
        with (folder / f"{table}.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [row["forward process"] for row in rows] == [
            "in place",
            *(f"{rate} insert/delete" for rate in (0.4, 0.6, 0.8)),
        ]
        for row in rows:
            assert re.fullmatch(r"≤ \d+\.\d+ ± \d+\.\d+", row[column])
        record = json.loads((folder / f"{table}.json").read_text(encoding="utf-8"))
        assert [(run["rate"], run["seed"]) for run in record["runs"]] == [
            (rate, seed) for seed in (0, 1) for rate in (0.0, 0.4, 0.6, 0.8)
        ]
        assert all(len(run["curve"]) == 10 for run in record["runs"])

    for number in range(1, 8):
        stem = folder / f"figure{number}"
        assert stem.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert stem.with_suffix(".png").stat().st_size < 300_000
        assert json.loads(stem.with_suffix(".json").read_text())["figure"] == f"figure{number}"

    def words(number: int) -> str:
        return (folder / f"figure{number}.svg").read_text(encoding="utf-8")

    assert ">D</text>" in words(1)
    assert words(2).count(">INS</text>") == 5
    assert "Stop inserting" in words(3)
    assert "never deleted" in words(7)
    text = (folder / "figure4.txt").read_text(encoding="utf-8")
    assert text.count("thisn sentsnetne wasstype vssry babdly") >= 2
    assert "Repair, in place: 5 draws from x₃" in text
    html = (folder / "figure4.html").read_text(encoding="utf-8")
    assert '<span class="deleted">×' in html

    report = page.read_text(encoding="utf-8")
    for table in ("table1", "table2"):
        assert (folder / f"{table}.md").read_text(encoding="utf-8") in report
        assert f"images/{table}-tiny.png" in report
