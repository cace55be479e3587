"""The programs and notebooks of `examples` run, and are as short and self-contained as promised."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from support.programs import environment

FOLDER = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.name != "run_notebooks.py")
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def name_of(path: Path) -> str:
    return path.name


def run_script(
    name: str,
    arguments: list[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """What a program prints, run in a folder of its own."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    return capsys.readouterr().out


def test_there_are_four_programs_below_sixty_lines_and_two_notebooks() -> None:
    assert len(SCRIPTS) == 4
    assert len(NOTEBOOKS) == 2
    for path in SCRIPTS:
        assert len(path.read_text(encoding="utf-8").splitlines()) < 60, path.name


def test_a_forward_process_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run_script("own_forward_process.py", ["hello you"], tmp_path, monkeypatch, capsys)
    assert "x₀  hello·you" in out
    assert "over all edits: -" in out


@pytest.mark.slow
def test_training_on_strings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from indel import load

    out = run_script("train_on_strings.py", ["--steps", "4"], tmp_path, monkeypatch, capsys)
    assert "of 100 samples contain TATAAT" in out
    assert "bits per letter" in out
    assert load(tmp_path / "runs/dna/model").vocabulary.size == 4


@pytest.mark.slow
def test_infilling_and_steering(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run_script("infill_and_steer.py", ["--particles", "2"], tmp_path, monkeypatch, capsys)
    varied = [line.split(": ", 1) for line in out.splitlines() if " edits: " in line]
    assert len(varied) == 3
    assert all(text.startswith("the history ") for _, text in varied)


@pytest.mark.slow
def test_repairing_and_scoring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run_script("repair_and_score.py", [], tmp_path, monkeypatch, capsys)
    assert out.startswith("I received the package yesterday, thank you.\n")
    right, wrong = (line for line in out.splitlines() if "nats" in line)
    # The edit that mends a word gains, the one that changes it costs.
    assert ": -" in right
    assert ": +" in wrong


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_is_whole_and_ready_for_colab(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    first, second, *_ = notebook.cells
    assert first.source.startswith("%pip install -q ")
    assert first.metadata.tags == ["skip-execution"]
    assert f"/blob/main/examples/{path.name})" in second.source
    run = [cell for cell in notebook.cells[1:] if cell.cell_type == "code"]
    # From top to bottom, in one go.
    assert [cell.execution_count for cell in run] == list(range(1, len(run) + 1))
    outputs = [each for cell in run for each in cell.outputs]
    assert len(outputs) >= len(run) - 1
    assert {each.output_type for each in outputs} <= {"stream", "execute_result"}
    assert {each.get("name") for each in outputs} <= {"stdout", None}
    text = path.read_text(encoding="utf-8")
    assert not any(place in text for place in ("/home/", "/root/", "/work/", "site-packages"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / "run_notebooks.py", path, "--out", tmp_path],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown, found = (nbformat.read(each, as_version=4) for each in (path, tmp_path / path.name))

    def kinds(notebook: nbformat.NotebookNode) -> list[list[str]]:
        cells = (cell.get("outputs", []) for cell in notebook.cells)
        return [[each.output_type for each in outputs] for outputs in cells]

    assert kinds(found) == kinds(shown)
