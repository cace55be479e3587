"""The programs that pages show with their outputs run, and print what has that form."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs/tools"))

import shown_outputs  # noqa: E402

PAGES = shown_outputs.pages()
BUNDLED = {"quickstart.md", "fill-and-steer.md"}
"""Pages whose programs call the bundled models, which are slow: the tour has the same calls."""


def quick(program: str) -> str:
    """The program with few steps and samples."""
    program = re.sub(r"\bsteps=[\d_]+", "steps=2", program)
    program = re.sub(r"range\(4000\)", "range(80)", program)
    program = re.sub(r"model, 50, seed", "model, 3, seed", program)
    program = re.sub(r"examples=32", "examples=4", program)
    return re.sub(r"contexts=500", "contexts=50", program)


def test_tutorials_have_outputs() -> None:
    names = {page.name for page in PAGES}
    assert {"own-sequences.md", "own-process.md", "from-in-place.md", *BUNDLED} == names


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in BUNDLED], ids=lambda page: page.stem
)
def test_programs_run_quickly(page: Path, tmp_path: Path) -> None:
    found = shown_outputs.blocks(page.read_text(encoding="utf-8"))
    outputs = shown_outputs.printed([quick(each.program) for each in found], page.name, tmp_path)
    for block, output in zip(found, outputs, strict=True):
        if block.output is not None:
            assert not shown_outputs.differences(block.output, output)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    found = shown_outputs.blocks(page.read_text(encoding="utf-8"))
    outputs = shown_outputs.printed([each.program for each in found], page.name, tmp_path)
    for block, output in zip(found, outputs, strict=True):
        if block.output is not None:
            assert not shown_outputs.differences(block.output, output)


def test_every_output_is_dated_and_none_is_empty() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert re.search(r"^\*Outputs of \d{4}-\d{2}-\d{2}: `python docs/tools/", text, re.M), page
        assert all(each.output != "" for each in shown_outputs.blocks(text)), page


def test_the_quick_start_is_fifteen_lines() -> None:
    (block,) = shown_outputs.blocks((ROOT / "docs/quickstart.md").read_text(encoding="utf-8"))
    assert len([line for line in block.program.splitlines() if line]) <= 15
    for part in ("load(", "generate(", "repair(", "evaluate(", "infill("):
        assert part in block.program


def test_an_output_of_another_form_is_seen() -> None:
    assert shown_outputs.differences("one\ntwo\n", "one\n")
    assert shown_outputs.differences("a 1\n", "a b\n")
    page = '```python\nprint(1)\n```\n\n```text title="Output"\n2\n```\n\n*Outputs of today.*\n'
    new = shown_outputs.renewed(page, ["1\n"])
    assert shown_outputs.blocks(new)[0].output == "1\n"
    assert "`python docs/tools/shown_outputs.py --write`" in new
