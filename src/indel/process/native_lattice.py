"""The lattice in C, for any transition: many times as fast as sums in log space."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.native import borrowed, for_each_block, in_blocks, joined, library_for
from indel.process.lattice import LogCells, Walk
from indel.process.schedules import Schedule

_SOURCE = Path(__file__).with_name("lattice.c")

Numbers = Float[Tensor, "blocks *cells 2 lanes"]
"""m and the bits of e of each number m·2^e."""


class _Moves(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("source", "length")),
        *((n, ctypes.c_void_p) for n in ("x", "z", "insert", "matching", "other", "replace")),
        *((n, ctypes.c_void_p) for n in ("stop", "erase", "source_lengths", "lengths")),
    )


class NativeLattice:
    """The weights of all moves, in blocks of as many pairs as one register holds."""

    def __init__(
        self,
        library: ctypes.CDLL,
        schedule: Schedule,
        x_0: Batch,
        x_t: Batch,
        t: Int[Tensor, " batch"],
    ) -> None:
        tables = schedule.tables(x_t.device).jump
        parts = tables.spike_and_background(t[:, None], x_t.tokens)
        given: list[Tensor | None] = [x_0.tokens, x_t.tokens]
        given.append(tables.insert_prob(t[:, None], x_t.tokens))
        if parts is not None:
            spike, other = parts
            given += [spike + other, other, None]
        else:
            pairs = x_0.tokens[:, :, None], x_t.tokens[:, None, :]
            given += [None, None, tables.replace_prob(t[:, None, None], *pairs)]
        given += [tables.stop[t], tables.delete[t], x_0.lengths, x_t.lengths]
        self._library, self.rows = library, len(t)
        self.lanes = library.lanes()
        self.source, self.length = x_0.width, x_t.width
        self.blocks = -(-self.rows // self.lanes)
        self._given = [None if each is None else self._in_blocks(each) for each in given]

    @classmethod
    def of(
        cls, schedule: Schedule, x_0: Batch, x_t: Batch, times: Int[Tensor, " batch"]
    ) -> NativeLattice | None:
        """Look the moves up; None where torch must do it."""
        library = library_for(x_t.device, _SOURCE)
        return None if library is None else cls(library, schedule, x_0, x_t, times)

    def log_prob(self) -> Float[Tensor, " batch"]:
        """log q(x_t | x_0)."""
        a, b, total = self._room(2, self.length + 1), self._room(2, self.length + 1), self._room()

        def do(block: int) -> None:
            self._call("forward", block, 2, 0, *(each[block] for each in (a, b, total)))

        for_each_block(do, self.blocks)
        return self._logs(total)

    def walk(self, draws: Float[Tensor, "batch moves"], *, only_largest: bool = False) -> Walk:
        """Back from the end; see `Lattice.walk`."""
        rows, columns = self.source + 1, self.length + 1
        source = torch.empty(self.blocks, self.length, self.lanes, dtype=torch.int64)
        total, draws = self._room(), self._in_blocks(draws)
        size = rows * columns * 2 * self.lanes * 8

        def do(block: int) -> None:
            with borrowed(2 * size) as room:
                a, b = room[:size], room[size : 2 * size]
                self._call("forward", block, rows, int(only_largest), a, b, total[block])
                self._call("walk", block, a, b, draws[block], source[block])

        for_each_block(do, self.blocks)
        return Walk(self._logs(total), joined(source, self.rows).T)

    def cells(self) -> LogCells:
        """The weights on both sides of each cell."""
        rows, columns = self.source + 1, self.length + 1
        before_a, before_b, after_a = (self._room(rows, columns) for _ in range(3))
        after_b, total = self._room(2, columns), self._room()

        def do(block: int) -> None:
            before = (each[block] for each in (before_a, before_b, total))
            self._call("forward", block, rows, 0, *before)
            self._call("backward", block, after_a[block], after_b[block])

        for_each_block(do, self.blocks)
        return LogCells(*map(self._logs, (before_a, before_b, after_a, total)))

    def _logs(self, numbers: Numbers) -> Float[Tensor, "batch *cells"]:
        """The logarithms, −inf for 0."""
        *cells, _, lanes = numbers.shape[1:]
        logs = torch.empty(self.rows, *cells, dtype=torch.float64)

        def do(block: int) -> None:
            part = logs[block * lanes : (block + 1) * lanes]
            self._run("logs", numbers[block], math.prod(cells), len(part), part)

        for_each_block(do, self.blocks)
        return logs

    def _call(self, name: str, block: int, *arguments: int | Tensor) -> None:
        """A function of the moves of a block."""
        moves = (None if each is None else each[block].data_ptr() for each in self._given)
        self._run(name, _Moves(self.source, self.length, *moves), *arguments)

    def _run(self, name: str, *arguments: int | Tensor | _Moves) -> None:
        function = getattr(self._library, name)
        function.restype = None
        function(*map(_argument, arguments))

    def _room(self, *shape: int) -> Numbers:
        return torch.empty(self.blocks, *shape, 2, self.lanes, dtype=torch.float64)

    def _in_blocks(self, values: Tensor) -> Tensor:
        """(batch, …) in blocks, with the batch last."""
        return in_blocks(values.movedim(0, -1), self.lanes)


def _argument(value: int | Tensor | _Moves) -> Any:
    """A number, or where the values lie."""
    if isinstance(value, Tensor):
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_int64(value) if isinstance(value, int) else ctypes.byref(value)
