"""`indel compare`: every mistake is one line, what is done is not done again, all of it runs."""

from __future__ import annotations

import csv
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from indel.cli import run
from indel.comparison import runs
from indel.comparison.measures import Sizes
from indel.comparison.report import BEGIN, END, read_results
from indel.comparison.scales import SCALES
from indel.data import ArithmeticData
from support.small_methods import STACK

ARITHMETIC = {"numbers": 8, "max_step": 1, "min_length": 3, "max_length": 5}
ENTROPY = ArithmeticData(**ARITHMETIC).exact_entropy()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scale that takes seconds."""
    scale = replace(
        SCALES["tiny"],
        backbone=STACK,
        num_steps=4,
        batch_size=8,
        validations=2,
        sizes=Sizes(likelihood=64, samples=16, gaps=3, repairs=4),
        data_options={"arithmetic": ARITHMETIC},
    )
    monkeypatch.setitem(SCALES, "tiny", scale)


def compare(out: Path, processes: str, *more: str, budget: str = "0.01") -> int:
    """Run the command at the small scale."""
    arguments = ["--scale", "tiny", "--budget", budget, "--seeds", "1", "--out", str(out)]
    return run(["compare", "arithmetic", "--processes", processes, *arguments, *more])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name the data to compare on"),
        (["arithmetics", "--processes", "autoregressive"], "did you mean 'arithmetic'"),
        (["arithmetic", "--processes", "masked"], "there is no process 'masked'"),
        (["arithmetic", "--processes", "delete-only,delete-only"], "must be different names"),
        (["arithmetic", "--processes", "delete-only", "--budget", "0"], "--budget must be"),
        (["arithmetic", "--processes", "delete-only", "--budget", "nan"], "--budget must be"),
        (["arithmetic", "--processes", "delete-only", "--seeds", "0"], "--seeds must be"),
        (["arithmetic", "--processes", "delete-only", "--scale", "paper"], "--scale must be one"),
        (["text8-sample", "--processes", "in-place-gaussian"], "needs tokens that have an order"),
        (
            ["arithmetic", "--processes", "delete-only", "--option", "numbrs=9"],
            "data 'arithmetic': got an unexpected keyword argument 'numbrs'",
        ),
        (["arithmetic", "--option", "numbers", "--processes", "delete-only"], "takes KEY=VALUE"),
        (["--report", "nowhere"], "nowhere holds no comparison"),
        (["arithmetic", "--report", "nowhere"], "--report trains nothing: leave out 'arithmetic'"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/comparison.md").write_text(f"{BEGIN}\n{END}\n")
    assert run(["compare", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("indel: ")
    assert told.err.count("\n") == 1
    assert says in told.err
    assert not (tmp_path / "comparisons").exists()


def rows(out: Path) -> dict[tuple[str, str], dict[str, str]]:
    with (out / "table.csv").open() as file:
        return {(row["process"], row["measure"]): row for row in csv.DictReader(file)}


def check_no_likelihood_beats_the_entropy(out: Path, entropy: float) -> None:
    """A model, and a bound even more, cannot need fewer nats than the data has."""
    for (_, measure), row in rows(out).items():
        if measure == "likelihood.nats_per_sequence" and row["mean"]:
            assert float(row["mean"]) >= entropy - 4 * float(row["standard_error"])


@pytest.mark.usefixtures("small")
def test_a_small_comparison_leaves_tables_and_is_not_done_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert compare(out, "autoregressive") == 0
    records = out / "runs/autoregressive-seed0"
    first = (records / "record.json").read_bytes()
    assert compare(out, "autoregressive,insert-delete-0.6") == 0
    told = capsys.readouterr()
    assert told.err.count("training") == 2, "each once"
    assert (records / "record.json").read_bytes() == first
    table = (out / "table.md").read_text()
    assert table in told.out
    assert "| autoregressive | cannot |" in table
    assert re.search(r"\| insert-delete-0.6 \| ≤ \d+\.\d\d ± \d", table)
    assert "*the data itself*" in table
    check_no_likelihood_beats_the_entropy(out, ENTROPY)
    found = rows(out)
    assert found["autoregressive", "repair.after"]["mean"] == ""
    assert float(found["insert-delete-0.6", "samples.calls"]["mean"]) == 4
    whole = json.loads((out / "table.json").read_text())
    assert whole["settings"]["budget_minutes"] == 0.01
    steps = found["autoregressive", "steps"]["mean"]
    assert whole["runs"]["autoregressive"][0]["steps"] == float(steps) > 1
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    # Trained, but not measured: the weights are read, and nothing is trained.
    (records / "record.json").unlink()
    monkeypatch.setattr(runs, "train_method", None)
    assert compare(out, "autoregressive") == 0
    again = read_results(out).runs["autoregressive"][0]
    assert again["measures"]["likelihood"] == json.loads(first)["measures"]["likelihood"]
    capsys.readouterr()
    assert compare(out, "autoregressive", budget="0.02") == 2
    assert "holds a comparison with budget_minutes 0.01, asked is 0.02" in capsys.readouterr().err
    # The page.
    page = tmp_path / "page.md"
    page.write_text(f"# Mine\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    assert run(["compare", "--report", str(out), "--page", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("# Mine\n")
    assert text.endswith(f"{END}\n\nafter\n")
    assert "old" not in text
    assert "### Likelihood and samples" in text
    assert "Each process trained for 0.01 CPU-minutes, with 1 seed" in text
    (image,) = re.findall(r"\((images/.*\.png)\)", text)
    assert (tmp_path / image).is_file()
    page.write_text("no marks")
    assert run(["compare", "--report", str(out), "--page", str(page)]) == 2
    assert "must hold the lines" in capsys.readouterr().err
    assert page.read_text() == "no marks"


@pytest.mark.usefixtures("small")
def test_data_may_move(tmp_path: Path) -> None:
    """Where the data lies is no part of a comparison's settings."""
    book = tmp_path / "book.txt"
    book.write_text("the cat sat on the mat and the dog sat on the log " * 200)
    for cache in ("here", "there"):
        comparison = runs.Comparison(
            f"file:{book}",
            ["autoregressive"],
            budget=0.01,
            seeds=1,
            out=tmp_path / "out",
            scale="tiny",
            options={"cache": str(tmp_path / cache), "chunk_length": 16},
        )
        comparison._agree_on_settings(comparison.open(0))
    assert str(tmp_path / "here") not in (tmp_path / "out" / "comparison.json").read_text()


def likelihoods(out: Path) -> dict[str, Any]:
    found = read_results(out).runs
    return {name: records[0]["measures"] for name, records in found.items()}


@pytest.mark.slow
def test_the_tiny_comparison_runs_from_scratch(tmp_path: Path) -> None:
    """24 CPU-seconds each: enough to see who has learned what."""
    names = "autoregressive,in-place-uniform,in-place-mask,in-place-gaussian,insert-delete-0.4,"
    names += "delete-only,mask-insert-delete-0.6"
    out = tmp_path / "out"
    assert compare(out, names, budget="0.4") == 0
    data = ArithmeticData(**SCALES["tiny"].data_options["arithmetic"])
    entropy = data.exact_entropy()
    check_no_likelihood_beats_the_entropy(out, entropy)
    found = likelihoods(out)
    for name, measures in found.items():
        nats = measures["likelihood"]["nats_per_sequence"][0]
        untrained = data.max_length * math.log(data.vocabulary.size)
        assert nats < 0.7 * untrained, name
        # Of the data's own sequences about half are different.
        assert measures["samples"]["unique"][0] > 0.2, name
    assert found["autoregressive"]["likelihood"]["nats_per_sequence"][0] < entropy + 0.5
    assert found["autoregressive"]["samples"]["valid"][0] > 0.9
    assert found["autoregressive"]["infill_known_length"] is None
    assert found["in-place-mask"]["infill_known_length"]["exact"][0] > 0.8
    assert found["in-place-mask"]["infill_unknown_length"] is None
    assert found["delete-only"]["infill_known_length"]["exact"][0] > 0.5
    assert found["insert-delete-0.4"]["infill_unknown_length"]["right_length"][0] > 0.15
    assert found["insert-delete-0.4"]["repair"]["before"][0] > 0
    curve = read_results(out).runs["delete-only"][0]["curve"]
    assert len(curve) == SCALES["tiny"].validations
    assert curve[-1]["nats_per_sequence"] < curve[0]["nats_per_sequence"]
    for name in ("table.md", "table.csv", "table.json", "curves.png", "comparison.json"):
        assert (out / name).stat().st_size > 100
