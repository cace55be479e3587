"""The passes in C find what torch finds.

`test_edit_posterior` compares whichever of them runs with enumeration.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from indel import Batch
from indel.model import native_passes
from indel.model.automata import Automaton
from indel.model.edit_posterior import EditPosterior, HeldPlaces, edit_posterior, gap_posterior
from indel.native import SWITCH
from indel.process import Schedule

CPU = torch.device("cpu")
SIZE, STATES, ROWS = 3, 40, 37
"""More rows than one call of the compiled code takes."""

needs_compiler = pytest.mark.skipif(
    not native_passes.available(CPU), reason="there is no C compiler here"
)


def automaton() -> Automaton:
    rng = np.random.default_rng(0)
    last = np.r_[SIZE, np.arange(SIZE), rng.integers(0, SIZE, STATES - SIZE - 1)]
    source, target = np.nonzero(rng.random((STATES, STATES)) < 0.1)
    inside = target > 0
    source, target = source[inside], target[inside]
    prob = rng.random(len(source))
    prob *= 0.8 / np.bincount(source, prob, STATES)[source]
    end = rng.uniform(0.02, 0.1, STATES)
    found = [torch.from_numpy(each) for each in (source, target, prob, end, last)]
    common = torch.tensor([0.5, 0.3, 0.2])
    return Automaton.of(found[0], found[1], found[2].float(), found[3].float(), found[4], common)


def sequences() -> Batch:
    rng = np.random.default_rng(1)
    tokens = [SIZE + 1, *range(SIZE)]
    return Batch.from_lists(
        [rng.choice(tokens, size=n, p=[0.1, 0.3, 0.3, 0.3]).tolist() for n in range(ROWS)]
    )


@pytest.fixture(params=[0.0, 0.6])
def schedule(request: pytest.FixtureRequest) -> Schedule:
    return Schedule.paper(SIZE, 8, request.param)


def close(found: EditPosterior, expected: EditPosterior, rows: Batch) -> None:
    """Weights of tokens agree up to the factor that each token has."""
    weights, others = (
        torch.cat([each.kept, each.inserted[..., None]], dim=-1)[rows.mask]
        for each in (found, expected)
    )
    weights, others = (each / each.sum(dim=-1, keepdim=True) for each in (weights, others))
    torch.testing.assert_close(weights, others, atol=1e-5, rtol=1e-3)
    slots = torch.nn.functional.pad(rows.mask, (1, 0), value=True)
    torch.testing.assert_close(
        found.deletions[slots], expected.deletions[slots], atol=1e-5, rtol=1e-3
    )


@needs_compiler
@pytest.mark.parametrize("remembered", [0, 1, 2, 5])
def test_compiled_passes_agree_with_torch(
    schedule: Schedule, remembered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, model = sequences(), automaton()
    # A sequence in place has no DELs before the last step.
    if schedule.step(1).insert == 0:
        rows = Batch.from_lists([[z % SIZE for z in row] for row in rows.to_lists()])
    t = torch.arange(len(rows)) % 6 + 2
    jump = schedule.tables(CPU).jump

    def found() -> EditPosterior:
        return edit_posterior(model, jump, rows, t, counts=6, remembered=remembered)

    compiled = found()
    monkeypatch.setenv(SWITCH, "0")
    assert not native_passes.available(CPU)
    close(compiled, found(), rows)


@needs_compiler
def test_gaps_agree_with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Batch.from_lists([[z % SIZE for z in row] for row in sequences().to_lists()])
    model = automaton()
    generator = torch.Generator().manual_seed(0)
    open_slots = torch.rand(len(rows), rows.width + 1, generator=generator) < 0.3
    held = HeldPlaces(rows.mask, open_slots)

    def found() -> EditPosterior:
        return gap_posterior(model, rows, held, counts=6, remembered=1)

    compiled = found()
    monkeypatch.setenv(SWITCH, "0")
    close(compiled, found(), rows)


@needs_compiler
def test_a_row_does_not_depend_on_its_neighbors() -> None:
    rows, model = sequences(), automaton()
    jump, t = Schedule.paper(SIZE, 8, 0.6).tables(CPU).jump, torch.full((len(rows),), 5)
    together = edit_posterior(model, jump, rows, t, counts=4, remembered=1)
    some = torch.tensor([20, 3])
    alone = edit_posterior(model, jump, rows.rows(some), t[some], counts=4, remembered=1)
    for row, place in enumerate(some.tolist()):
        n = int(rows.lengths[place])
        assert torch.equal(alone.kept[row, :n], together.kept[place, :n])
        # What torch adds up after the passes it rounds by the size of the batch.
        numbers, others = alone.deletions[row, : n + 1], together.deletions[place, : n + 1]
        torch.testing.assert_close(numbers, others, atol=1e-6, rtol=1e-6)


WITHOUT_COMPILER = """
import torch
from indel.model import native_passes
print(native_passes.available(torch.device("cpu")))
"""


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false"])
def test_without_a_compiler_torch_does_it(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler)
    monkeypatch.setenv("INDEL_CACHE", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_COMPILER], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"
