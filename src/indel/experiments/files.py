"""What an experiment leaves behind: figures as PNG and SVG, tables as Markdown and CSV, JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indel.atomic_files import write_output

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 115
_STYLE: dict[Any, Any] = {
    # Letters as wide as the font says, whatever the resolution.
    "text.hinting": "none",
    # Text stays text, to be found and read aloud.
    "svg.fonttype": "none",
    "svg.hashsalt": "indel",
}
# Without date and version, equal figures are equal files.
_METADATA: dict[str, dict[str, Any]] = {".png": {"Software": None}, ".svg": {"Date": None}}


def write_text(path: Path, text: str) -> Path:
    """Write a file whole or not at all."""
    return _write(path, text.encode("utf-8"))


def write_json(path: Path, data: Mapping[str, Any]) -> Path:
    """Write plain data, readable and without numbers that are none."""
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    return write_text(path, text + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ValueError(f"cannot read the record {path}: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path} is no record of an experiment: expected is a JSON object")
    return data


def write_figure(figure: Figure, stem: Path, config: Mapping[str, Any] | None = None) -> list[Path]:
    """Write a figure as PNG and SVG, and beside it what it was made from."""
    written = [write_picture(figure, _named(stem, ending)) for ending in _METADATA]
    if config is not None:
        written.append(write_json(_named(stem, ".json"), config))
    return written


def write_picture(figure: Figure, path: Path) -> Path:
    """Write a figure in the format that the name of the file says, PNG or SVG."""
    import matplotlib

    content = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(
            content, format=path.suffix[1:], dpi=DOTS_PER_INCH, metadata=_METADATA[path.suffix]
        )
    return _write(path, content.getvalue())


def write_table(stem: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Path]:
    """Write a table as Markdown and as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return [
        write_text(_named(stem, ".md"), markdown_table(header, rows)),
        write_text(_named(stem, ".csv"), text.getvalue()),
    ]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The lines of a table.

    >>> print(markdown_table(["a", "b"], [["1", "2"]]), end="")
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [header, ["---"] * len(header), *rows]
    joined = ("|".join(line) if line[0] == "---" else " | ".join(line) for line in lines)
    return "".join(f"|{line}|\n" if line.startswith("---") else f"| {line} |\n" for line in joined)


def _named(stem: Path, ending: str) -> Path:
    return stem.with_name(stem.name + ending)


def _write(path: Path, content: bytes) -> Path:
    write_output(path, content)
    return path
