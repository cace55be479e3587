"""A process and a denoiser small enough to enumerate every chain."""

import itertools
from functools import cache
from typing import Any

import torch

from indel import Batch, RowSeeds
from indel.model import Denoiser
from indel.process import Schedule
from oracles import OracleStep
from support.cases import library_step
from support.denoisers import tiny_denoiser

Tokens = tuple[int, ...]

STEPS = (
    OracleStep(0.25, 0.2, 0.3, ((0.9, 0.1), (0.2, 0.8)), (0.7, 0.3)),
    OracleStep(0.3, 0.3, 0.3, ((0.8, 0.2), (0.1, 0.9)), (0.4, 0.6)),
    OracleStep(0.2, 0.4, 0.1, ((0.6, 0.4), (0.4, 0.6)), (0.5, 0.5)),
    OracleStep(0.0, 1.0, 1.0, ((1.0, 0.0), (0.0, 1.0)), (0.5, 0.5)),
)
SCHEDULE = Schedule(library_step(step) for step in STEPS)
INS, DEL = SCHEDULE.ins, SCHEDULE.del_
ROWS = 4000


@cache
def tiny() -> Denoiser:
    return make(SCHEDULE)


def make(schedule: Schedule, **settings: Any) -> Denoiser:
    return tiny_denoiser(schedule, **{"width": 16, "max_deletions": None, **settings})


def sequences(longest: int) -> list[Tokens]:
    return [
        tokens
        for length in range(longest + 1)
        for tokens in itertools.product(range(4), repeat=length)
    ]


def repeated(tokens: Tokens, rows: int = ROWS) -> Batch:
    return Batch.from_lists([tokens] * rows)


def seeds(seed: int, rows: int = ROWS) -> RowSeeds:
    return RowSeeds(torch.arange(rows) + 1_000_000 * seed)


def mean_and_error(values: torch.Tensor) -> tuple[float, float]:
    return float(values.mean()), float(values.std() / len(values) ** 0.5)


PAPER = Schedule.paper(3, 5, 0.6)
