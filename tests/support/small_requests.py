"""Requests whose training runs take a second."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from indel.experiments import Request, arithmetic_table, text8_table
from indel.experiments.records import FinalMeasure

SMALL_RUNS: dict[str, Any] = {
    "model.width": 16,
    "model.num_layers": 1,
    "model.num_heads": 2,
    "model.head_width": 8,
    "model.feedforward_width": 32,
    "optimizer.warm_up": 4,
    "optimizer.period": 40,
    "training.steps": 20,
    "training.batch_size": 8,
    "training.save_every": 5,
    "validation.every": 2,
    "validation.examples": 8,
    "validation.samples": 4,
}


@contextmanager
def small_measures() -> Iterator[None]:
    """The final measure of a run takes a moment, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(arithmetic_table.FINAL, "tiny", FinalMeasure(16, split="test", samples=16))
        patch.setitem(text8_table.FINAL, "tiny", FinalMeasure(16, split="valid"))
        yield


def small_request(out: Path, *, overrides: dict[str, Any] | None = None, **rest: Any) -> Request:
    """Scale tiny, and smaller still."""
    settings = {**SMALL_RUNS, **(overrides or {})}
    console = Console(file=io.StringIO(), width=200)
    return Request(scale="tiny", out=out, overrides=settings, console=console, **rest)


def said(request: Request) -> str:
    """All that the request has told its user."""
    assert isinstance(request.console.file, io.StringIO)
    return request.console.file.getvalue()
