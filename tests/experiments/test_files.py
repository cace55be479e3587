"""What is written is whole, equal for equal content, and a failure is one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from indel.experiments.files import read_json, write_figure, write_json, write_text


def figure() -> Figure:
    drawing = Figure(figsize=(2, 1))
    drawing.text(0.1, 0.5, "some words & more")
    return drawing


def test_equal_figures_are_equal_files_with_their_config(tmp_path: Path) -> None:
    first = write_figure(figure(), tmp_path / "a", {"figure": "a", "number": 3})
    second = write_figure(figure(), tmp_path / "b", {"figure": "a", "number": 3})
    assert [path.suffix for path in first] == [".png", ".svg", ".json"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert ">some words &amp; more</text>" in first[1].read_text(encoding="utf-8")
    assert read_json(first[2]) == {"figure": "a", "number": 3}


def test_numbers_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "x.json", {"value": float("nan")})
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(ValueError, match=r"cannot write .*choose another --out"):
        write_text(tmp_path / "out" / "table.md", "text")
