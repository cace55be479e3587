"""Calls with values of a wrong type; as a program, what they raise without type checks."""

import json
from collections.abc import Callable

import torch

from indel import Batch, RowSeeds
from indel.process import (
    Edits,
    IdentityTransition,
    MatrixTransition,
    Schedule,
    Step,
    corrupt,
)
from support.bad_inputs import HALF, SCHEDULE, X_0, X_T, Case, generator, int64

WRONG_TYPES: list[Case] = [
    ("a float as token", lambda: Batch.from_lists([[1, 1.0]]), ["row 0, position 1", "1.0", "≥ 0"]),
    (
        "rows and lengths",
        lambda: Batch(torch.zeros(2, 3, dtype=torch.int64), int64([1])),
        ["tokens", "lengths", "(2, 3)", "(1,)"],
    ),
    (
        "one row",
        lambda: Batch(int64([1, 2]), int64([2])),
        ["tokens", "(batch, length)", "(2,)"],
    ),
    (
        "lengths as floats",
        lambda: Batch(int64([[1, 2]]), torch.tensor([2.0])),
        ["lengths", "torch.int64", "torch.float32"],
    ),
    (
        "seeds as floats",
        lambda: RowSeeds(torch.tensor([1.0])),
        ["seeds", "int64", "torch.float32"],
    ),
    ("a table of seeds", lambda: RowSeeds(int64([[1]])), ["seeds", "one entry a row", "(1, 1)"]),
    (
        "t as floats",
        lambda: corrupt(SCHEDULE, X_0, torch.tensor([1.0, 2.0]), generator=generator()),
        ["t ", "int64", "torch.float32"],
    ),
    (
        "a table of t",
        lambda: corrupt(SCHEDULE, X_0, int64([[1], [2]]), generator=generator()),
        ["t ", "one entry for each of the 2 sequences", "(2, 1)"],
    ),
    (
        "t without an axis",
        lambda: corrupt(SCHEDULE, X_0, torch.tensor(1), generator=generator()),
        ["t ", "one entry for each of the 2 sequences", "()"],
    ),
    (
        "sources as floats",
        lambda: Edits.from_source(X_0, X_T, torch.zeros(2, 3)),
        ["source", "int64", "torch.float32"],
    ),
    (
        "a row of sources",
        lambda: Edits.from_source(X_0, X_T, int64([0, -1, -1])),
        ["source", "(2, 3)", "(3,)"],
    ),
    ("a vector as matrix", lambda: MatrixTransition([1.0]), ["matrix", "square", "(1,)"]),
    ("no matrix", lambda: MatrixTransition([]), ["matrix", "square", "(0,)"]),
    ("a cube", lambda: MatrixTransition([[[1.0]]]), ["matrix", "square", "(1, 1, 1)"]),
    (
        "a table of inserted",
        lambda: Step(0.1, 0.1, HALF, torch.ones(1, 3) / 3),
        ["inserted", "3 tokens", "(1, 3)"],
    ),
    ("a float as size", lambda: IdentityTransition(3.0), ["vocab_size", "3.0", "integer"]),
    ("half a step", lambda: Schedule.paper(3, 2.5, 0.5), ["num_steps", "2.5", "integer"]),
    ("no record", lambda: Schedule.from_dict([1]), ["no record of a schedule"]),
    ("steps of no record", lambda: Schedule.from_dict({"steps": [1]}), ["no record of a schedule"]),
]


def what_happens(call: Callable[[], object]) -> list[str]:
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]


if __name__ == "__main__":
    print(json.dumps({name: what_happens(call) for name, call, _ in WRONG_TYPES}))
