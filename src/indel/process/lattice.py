"""The lattice of all edit summaries in log space: a two-state dynamic program over (i, j).

State A may insert, state B may delete or replace; i tokens of x_0 are consumed and j of x_t
written. Cells with the same i + j do not depend on each other, so the program runs over these
anti-diagonals, and each is one vector operation over the batch and over i. `native_lattice` does
the same in C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.process.edits import INSERTED
from indel.process.schedules import Schedule

Diagonals = Float[Tensor, "batch diagonals cells"]


class Walk(NamedTuple):
    """One edit summary of each pair."""

    log_total: Float[Tensor, " batch"]
    """log q(x_t | x_0), or of its most likely edit summary; −inf: there is none."""
    source: Int[Tensor, "batch length"]
    """Which token of x_0 each of x_t comes from, or INSERTED."""


class LogCells(NamedTuple):
    """log weights by cell (i, j)."""

    before_a: Float[Tensor, "batch source+1 length+1"]
    before_b: Float[Tensor, "batch source+1 length+1"]
    after_a: Float[Tensor, "batch source+1 length+1"]
    log_total: Float[Tensor, " batch"]


@dataclass(frozen=True)
class Lattice:
    """The weights of all moves between the cells (i, j)."""

    log_insert: Float[Tensor, "batch length"]
    log_replace: Float[Tensor, "batch source length"]
    log_delete: Float[Tensor, " batch"]
    log_stop: Float[Tensor, " batch"]
    source_lengths: Int[Tensor, " batch"]
    lengths: Int[Tensor, " batch"]

    @classmethod
    def of(
        cls, schedule: Schedule, x_0: Batch, x_t: Batch, times: Int[Tensor, " batch"]
    ) -> Lattice:
        """Look the weights up; moves into padding get −inf."""
        tables = schedule.tables(x_t.device).jump
        replace = tables.replace_prob(
            times[:, None, None], x_0.tokens[:, :, None], x_t.tokens[:, None, :]
        )
        return cls(
            log_insert=tables.insert_prob(times[:, None], x_t.tokens).log(),
            log_replace=replace.log(),
            log_delete=tables.delete[times].log(),
            log_stop=tables.stop[times].log(),
            source_lengths=x_0.lengths,
            lengths=x_t.lengths,
        )

    def log_prob(self) -> Float[Tensor, " batch"]:
        """log q(x_t | x_0)."""
        return self.total(self.forward()[1])

    def walk(self, draws: Float[Tensor, "batch moves"], *, only_largest: bool = False) -> Walk:
        """Back from the end, two draws a move, in the lattice of sums or of largest weights.

        A move is made if its draw is below its share of what leads here.
        """
        forward_a, forward_b = self.forward(torch.maximum if only_largest else torch.logaddexp)
        i, j = self.source_lengths.clone(), self.lengths.clone()
        in_b = torch.ones_like(i, dtype=torch.bool)
        rows, width = torch.arange(len(i), device=i.device), self.log_replace.shape[2]
        source = torch.full((len(i), width + 1), INSERTED, device=i.device)
        # Cells (0, j) and (i, 0) cannot be reached by a replacement.
        log_replace = torch.nn.functional.pad(self.log_replace, (1, 0, 1, 0), value=-torch.inf)
        for move in range(draws.shape[1] // 2):
            i_before = (i - 1).clamp_min(0)
            logp_b = forward_b[rows, i + j, i]
            # Row −1 of the lattice is not there: nothing is consumed before the first token.
            from_b = forward_b[rows, (i + j - 1).clamp_min(0), i_before] + self.log_delete
            prob_delete = torch.where(i > 0, (from_b - logp_b).exp(), 0.0)
            deletes = in_b & (draws[:, 2 * move] < prob_delete)
            logp_a = forward_a[rows, i + j, i]
            from_b = forward_b[rows, (i + j - 2).clamp_min(0), i_before]
            prob_replace = (from_b + log_replace[rows, i, j] - logp_a).exp()
            replaces = ~deletes & (draws[:, 2 * move + 1] < prob_replace)
            inserts = ~deletes & ~replaces & (j > 0)
            # Rows that make no replacement write to a column of their own, which is then cut off.
            source[rows, torch.where(replaces, j - 1, width)] = i_before
            i = i - (deletes | replaces).long()
            j = j - (replaces | inserts).long()
            in_b = deletes | replaces
        return Walk(self.total(forward_b), source[:, :width])

    def cells(self) -> LogCells:
        """The weights on both sides of each cell."""
        in_a, in_b = self.forward()
        from_a, _ = self.backward()
        before_a, before_b, after_a = map(self.unskew, (in_a, in_b, from_a))
        return LogCells(before_a, before_b, after_a, self.total(in_b))

    def forward(
        self, combine: Callable[[Tensor, Tensor], Tensor] = torch.logaddexp
    ) -> tuple[Diagonals, Diagonals]:
        """log F_A and log F_B, the total weight of all ways to reach a cell, by i + j and i.

        With `torch.maximum` it is the largest weight instead of the total.

        F_A(i,j) = F_A(i,j−1) ᾱ[z_j] + F_B(i−1,j−1) Q̄[x_i,z_j]
        F_B(i,j) = F_A(i,j) (1−Σᾱ) + F_B(i−1,j) β̄
        """
        insert, replace = self._skewed_moves()
        in_a, in_b = self._start(), self._start()
        in_b[:, 0] = in_a[:, 0] + self.log_stop[:, None]
        for k in range(1, in_a.shape[1]):
            reached = in_a[:, k - 1] + insert[:, k]
            if k > 1:
                reached[:, 1:] = combine(reached[:, 1:], in_b[:, k - 2, :-1] + replace[:, k])
            in_a[:, k] = reached
            stopped = reached + self.log_stop[:, None]
            stopped[:, 1:] = combine(stopped[:, 1:], in_b[:, k - 1, :-1] + self.log_delete[:, None])
            in_b[:, k] = stopped
        return in_a, in_b

    def backward(self) -> tuple[Diagonals, Diagonals]:
        """log of the total weight of all ways from a cell to the end.

        B_B(i,j) = [end] + β̄ B_B(i+1,j) + Q̄[x_{i+1},z_{j+1}] B_A(i+1,j+1)
        B_A(i,j) = (1−Σᾱ) B_B(i,j) + ᾱ[z_{j+1}] B_A(i,j+1)
        """
        insert, replace = self._skewed_moves()
        from_a, from_b = self._start(), self._start()
        from_a[:, 0] = -torch.inf
        last = from_a.shape[1] - 1
        ends = self._ends()
        for k in range(last, -1, -1):
            onward = ends[:, k].clone()
            if k < last:
                onward[:, :-1] = torch.logaddexp(
                    onward[:, :-1], from_b[:, k + 1, 1:] + self.log_delete[:, None]
                )
            if k < last - 1:
                onward[:, :-1] = torch.logaddexp(
                    onward[:, :-1], from_a[:, k + 2, 1:] + replace[:, k + 2]
                )
            from_b[:, k] = onward
            stopping = onward + self.log_stop[:, None]
            if k < last:
                stopping = torch.logaddexp(stopping, from_a[:, k + 1] + insert[:, k + 1])
            from_a[:, k] = stopping
        return from_a, from_b

    def total(self, in_b: Diagonals) -> Float[Tensor, " batch"]:
        """log F_B at the end of both sequences: log q(x_t | x_0)."""
        rows = torch.arange(len(in_b), device=in_b.device)
        return in_b[rows, self.source_lengths + self.lengths, self.source_lengths]

    def unskew(self, diagonals: Diagonals) -> Float[Tensor, "batch rows columns"]:
        """From (i + j, i) to (i, j)."""
        i = torch.arange(self.log_replace.shape[1] + 1, device=diagonals.device)[:, None]
        j = torch.arange(self.log_replace.shape[2] + 1, device=diagonals.device)
        return diagonals[:, i + j, i]

    def _start(self) -> Diagonals:
        batch, sources, length = self.log_replace.shape
        cells = self.log_replace.new_full((batch, sources + length + 1, sources + 1), -torch.inf)
        cells[:, 0, 0] = 0.0
        return cells

    def _ends(self) -> Diagonals:
        cells = torch.full_like(self._start(), -torch.inf)
        rows = torch.arange(len(cells), device=cells.device)
        cells[rows, self.source_lengths + self.lengths, self.source_lengths] = 0.0
        return cells

    def _skewed_moves(self) -> tuple[Tensor, Tensor]:
        """For the cell (i, k − i): the weight of inserting z_j, and (i ≥ 1) of x_i ↦ z_j."""
        _batch, sources, length = self.log_replace.shape
        device = self.log_replace.device
        k = torch.arange(sources + length + 1, device=device)[:, None]
        j = k - torch.arange(sources + 1, device=device)
        inside = (j >= 1) & (j <= length)
        # Column 0 stands for everything outside.
        pad = torch.nn.functional.pad
        column = torch.where(inside, j, 0)
        insert = pad(self.log_insert, (1, 0), value=-torch.inf)[:, column]
        replace = pad(self.log_replace, (1, 0), value=-torch.inf)
        i = torch.arange(sources, device=device)
        return insert, replace[:, i, column[:, 1:]]
