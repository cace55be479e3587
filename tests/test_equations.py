"""docs/equations.md is true: its symbols exist and name their equations, its tests are run."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import example, given, settings

import oracles
from indel.process import Jump, Step
from indel.process.composition import compose
from indel.process.counts import prob_explicit
from indel.process.edit_transducers import jump_transducer, step_transducer
from indel.process.measures import Measure
from indel.process.transducers import geometric_series
from oracles import OracleStep
from support.cases import Case, cases

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/equations.md").read_text(encoding="utf-8")
EQUATIONS = range(1, 18)
FIRST, AGAIN, UNNUMBERED = "Equations of the paper", "Equations seen again", "Definitions"


class Row(NamedTuple):
    """One line of a table."""

    reference: str
    symbols: tuple[str, ...]
    tests: tuple[str, ...]


def rows(page: str, title: str) -> list[Row]:
    """The table under a title; its last column holds tests, those before it symbols."""
    section = re.split(r"^#+ ", page, flags=re.MULTILINE)
    (text,) = (part for part in section if part.startswith(title))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    table = []
    for line in lines[2:]:
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        symbols = re.findall(r"`(indel[\w.]+)`", "".join(cells[1:-1]))
        table.append(Row(cells[0].strip(), tuple(symbols), tuple(re.findall("`(.+?)`", cells[-1]))))
    return table


def every_row(page: str) -> list[Row]:
    return [row for title in (FIRST, AGAIN, UNNUMBERED) for row in rows(page, title)]


def resolve(symbol: str) -> Any:
    """The object with a dotted name: as much of it as is a module, then attributes."""
    parts = symbol.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(symbol)


def cited(docstring: str | None) -> tuple[str, set[int]]:
    """The "Paper:" line of a docstring, and the equations on it.

    >>> cited("Sums.\\n\\nPaper: App. B.2, Eqs. (6), (10)–(12) and (14)")[1] == {6, 10, 11, 12, 14}
    True
    """
    line = next(iter(re.findall(r"^\s*Paper: (.*)$", docstring or "", re.MULTILINE)), "")
    numbers: set[int] = set()
    for first, last in re.findall(r"\((\d+)\)(?:–\((\d+)\))?", line):
        numbers |= set(range(int(first), int(last or first) + 1))
    return line, numbers


def check_page(page: str) -> None:
    """Every equation is listed with one home; every symbol exists and names what it is for."""
    homes = rows(page, FIRST)
    assert [row.reference for row in homes] == [f"({number})" for number in EQUATIONS]
    for row in homes + rows(page, AGAIN):
        for symbol in row.symbols:
            number = int(row.reference.strip("()"))
            assert number in cited(resolve(symbol).__doc__)[1], f"{symbol}: no Eq. ({number})"
    for row in rows(page, UNNUMBERED):
        for symbol in row.symbols:
            line, _ = cited(resolve(symbol).__doc__)
            assert row.reference in line, f"{symbol}: no {row.reference}"
    for row in every_row(page):
        assert row.symbols, f"{row.reference}: no symbol"
        assert row.tests, f"{row.reference}: no test"


def check_tests(nodes: Iterable[str], items: Iterable[pytest.Item] = ()) -> None:
    """Every test exists, is among the fast ones and is not skipped: the suite runs it.

    What the session of this test has not collected itself is collected in another process.
    """
    nodes = set(nodes)
    assert all("::test_" in node for node in nodes), nodes
    fast = [item.nodeid for item in items if item.get_closest_marker("slow") is None]
    check_collected(nodes - {*fast, *map(function_of, fast)})
    for node in map(function_of, nodes):
        file, _, name = node.partition("::")
        assert not may_be_skipped(ROOT / file, name), f"{node} may be skipped"


def function_of(node: str) -> str:
    """The test without the values of its parameters."""
    return node.partition("[")[0]


def check_collected(nodes: set[str]) -> None:
    """pytest finds all of these among the fast tests."""
    if not nodes:
        return
    options = ["--collect-only", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *sorted(nodes)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {function_of(line) for line in done.stdout.splitlines() if "::test_" in line}
    assert found == set(map(function_of, nodes))


def may_be_skipped(file: Path, test: str) -> bool:
    """Whether a test, or its whole file, names a way to skip it."""
    text = file.read_text(encoding="utf-8")
    (function,) = (
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == test
    )
    own = "\n".join(map(ast.unparse, [*function.decorator_list, function]))
    return bool(re.search(r"^pytestmark", text, re.MULTILINE)) or "skip" in own


# ---------------------------------------------------------------- the page


def test_symbols_exist_and_name_their_equations() -> None:
    check_page(PAGE)


def test_equations_have_one_home() -> None:
    for line in PAGE.split("## ")[0].splitlines():
        if line.startswith("| ("):
            assert len(re.findall("`indel", line.split("|")[3])) == 1, line


def test_every_docstring_that_names_an_equation_is_listed() -> None:
    listed = {
        (symbol, int(row.reference.strip("()")))
        for row in rows(PAGE, FIRST) + rows(PAGE, AGAIN)
        for symbol in row.symbols
    }
    found = set()
    for path in sorted((ROOT / "src/indel").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for symbol, docstring in documented(ast.parse(path.read_text(encoding="utf-8")), module):
            found |= {(symbol, n) for n in cited(docstring)[1] if n in EQUATIONS}
    assert found == listed


def documented(node: ast.AST, name: str) -> Iterable[tuple[str, str | None]]:
    """The dotted names and docstrings of all classes and functions below a node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield f"{name}.{child.name}", ast.get_docstring(child)
            yield from documented(child, f"{name}.{child.name}")


def test_listed_tests_are_run(request: pytest.FixtureRequest) -> None:
    check_tests((node for row in every_row(PAGE) for node in row.tests), request.session.items)


# ---------------------------------------------------------------- these checks see what is wrong


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("`indel.process.jumps.Jump.loops`", "`indel.process.jumps.Jump.circles`", "circles"),
        ("`indel.process.counts.prob", "`indel.process.numbers.prob", "numbers"),
        ("`indel.process.jumps.Jump.loops`", "`indel.process.jumps.Jump.then`", r"no Eq. \(5\)"),
        ("`indel.process.steps.Step`", "`indel.process.schedules.Schedule`", "no Sec. 3.1"),
        ("| (7) |", "| (70) |", r"\(70\)"),
        ("`tests/process/test_steps.py::test_matrix_is_the_definition`", "none", "no test"),
    ],
)
def test_a_broken_page_is_seen(old: str, new: str, message: str) -> None:
    assert old in PAGE
    with pytest.raises((AssertionError, AttributeError), match=message):
        check_page(PAGE.replace(old, new))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def test_that():\n    pass\n", "not found: .*test_it"),
        ("import pytest\n@pytest.mark.slow\ndef test_it():\n    pass\n", "1 deselected"),
        ("import pytest\ndef test_it():\n    pytest.skip()\n", "test_it may be skipped"),
    ],
)
def test_a_listed_test_that_does_not_run_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "test_one.py").write_text(body)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    with pytest.raises(AssertionError, match=message):
        check_tests(["test_one.py::test_it"])


# ---------------------------------------------------------------- tests that the page lists

INSERTS_ONLY = OracleStep(0.4, 0.0, 0.5, ((0.5, 0.5), (0.25, 0.75)), (0.5, 0.5))
ALL_DELETED = OracleStep(0.2, 1.0, 1.0, ((1.0, 0.0), (0.0, 1.0)), (1.0, 0.0))
EDGE = Case((INSERTS_ONLY, ALL_DELETED, INSERTS_ONLY, INSERTS_ONLY), (), ())


@settings(deadline=None, max_examples=40)
@example(EDGE)
@given(cases(max_steps=3))
def test_homes_are_what_the_derivation_gives(case: Case) -> None:
    """Eqs. (5)–(9) one by one, where `test_jump_parameters` sees only what they add up to."""
    for t in range(1, case.t + 1):
        jump, step = case.schedule.jump(t - 1), case.schedule.step(t)
        loop = jump.insert[-1].item()
        assert jump.loops == pytest.approx(geometric_series(loop), abs=1e-9), "Eq. (5)"
        expected = paths_through_the_middle(jump, step)
        found = {("AA", "BB", None, None): jump._stopped(step)}
        moved = dense(*jump._inserts_moved(step))
        # With nothing kept and no earlier background, what is left of Q̄_t are the pairs.
        nothing = Measure.zero(jump.vocab_size)
        pairs = dense(*dataclasses.replace(jump, keep=0.0, background=nothing)._replaced(step))
        for x in range(jump.vocab_size):
            found["BB", "BB", x, None] = jump.delete_now
            found |= {("BB", "AA", x, z): weight for z, weight in pairs.items()}
        for z, weight in moved.items():
            found["AA", "AA", None, z] = (1 - step.insert) * weight
        assert found.keys() >= expected.keys()
        for arc, weight in found.items():
            assert weight == pytest.approx(expected.get(arc, 0.0), abs=1e-9), arc


def paths_through_the_middle(jump: Jump, step: Step) -> dict[Any, float]:
    """The new arcs (from, to, read, written) that stand for the middle state of Figure 6."""
    # Sums of floats may exceed 1 by rounding, which the machines refuse.
    numbers = (values.clamp_max(1.0) for values in (jump.insert, jump.delete, jump.replace))
    machine = compose(jump_transducer(*numbers), step_transducer(step.insert, step.matrix()))
    arcs = machine.marginalize(1).paths_through(("A", "B"))
    return {("".join(arc.source), "".join(arc.target), *arc.label): arc.weight for arc in arcs}


def dense(regular: Measure, del_: float) -> dict[int, float]:
    return dict(enumerate(regular.dense().tolist())) | {regular.vocab_size + 1: del_}


@settings(deadline=None, max_examples=60)
@example(EDGE)
@given(cases())
def test_silent_and_explicit_deletions(case: Case) -> None:
    size = case.steps[0].vocab_size
    tables = case.schedule.tables(torch.device("cpu")).jump
    for t in range(1, case.t + 1):
        (rho,) = prob_explicit(tables, torch.tensor([t])).tolist()
        insert, silent, replace = oracles.jump_parameters(case.steps[: t - 1], size)
        _, deleted, _ = oracles.jump_parameters(case.steps[:t], size)
        for x in range(size):
            if deleted[x] > 1e-6:
                explicit = replace[x, -1] * (1 - insert.sum()) / (1 - insert[-1])
                assert 1 - rho == pytest.approx(silent[x] / deleted[x], abs=1e-9), "Eq. (16)"
                assert rho == pytest.approx(explicit / deleted[x], abs=1e-9), "Eq. (17)"
            elif t == 1:
                assert rho == 0
