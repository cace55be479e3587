"""What calls with bad input need: valid sequences around it, and how messages are compared."""

from collections.abc import Callable

import pytest
import torch

from indel import Batch
from indel.process import (
    Edits,
    Schedule,
    UniformTransition,
)

# K = 3: INS = 3, DEL = 4, EOS = 5.
SCHEDULE = Schedule.paper(3, 4, 0.5)
X_0 = Batch.from_lists([[0, 1, 2], [1]])
X_T = Batch.from_lists([[0, 4, 3], [2]])
MARKED = Batch.from_lists([[0], [1, 4]])
INSERTING = Batch.from_lists([[0, 3], [1]])
ENDED = Batch.from_lists([[0, 5], [1]])
HALF = UniformTransition(3, 0.5)
EDITS = Edits.from_source(X_0, X_T, torch.tensor([[0, 1, -1], [0, -1, -1]]))
Case = tuple[str, Callable[[], object], list[str]]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def int64(values: list) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def source(values: list) -> Edits:
    return Edits.from_source(X_0, X_T, int64(values))


def named(cases: list[Case]) -> list:
    return [pytest.param(*case, id=case[0]) for case in cases]


def assert_says(message: str, fragments: list[str]) -> None:
    for fragment in fragments:
        assert fragment in message, f"{message!r} does not say {fragment!r}"
