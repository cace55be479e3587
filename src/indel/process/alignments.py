"""All edit summaries at once: a two-state dynamic program over (i, j).

State A may insert, state B may delete or replace; i tokens of x_0 are consumed and j of x_t
written. Cells with the same i + j do not depend on each other, so the program runs over these
anti-diagonals, and each is one vector operation over the batch and over i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.process.edits import INSERTED, Edits
from indel.process.probabilities import check_pair
from indel.process.scaled_lattice import Moves, scaled_total
from indel.process.schedules import Schedule
from indel.randomness import Randomness, uniform

Diagonals = Float[Tensor, "batch diagonals cells"]


def log_prob(
    schedule: Schedule, x_0: Batch, x_t: Batch, t: Int[Tensor, " batch"] | int
) -> Float[Tensor, " batch"]:
    """log q(x_t | x_0) = log Σ_a q(x_t, a | x_0), summed over all edit summaries.

    Args:
        schedule: The forward process.
        x_0: Data: regular tokens alone.
        x_t: Noisy sequences: regular tokens, INS and DEL.
        t: The time, one for all sequences or one each, 0…T.

    Returns:
        Nats for each sequence; −inf where q cannot make x_t.

    >>> from indel.process import Step, UniformTransition
    >>> schedule = Schedule([Step(0.1, 0.2, UniformTransition(2, 0.5))])
    >>> x = Batch.from_lists([[0]])
    >>> round(log_prob(schedule, x, x, 1).exp().item(), 6)
    0.486

    Paper: Fig. 5 (middle)
    """
    times = check_pair(schedule, x_0, x_t, t, first=0)
    moves = Moves.of(schedule.tables(x_t.device).jump, x_0.tokens, x_t.tokens, times)
    if moves is None:
        return _log_space_prob(schedule, x_0, x_t, times)
    fast = scaled_total(moves, x_0.lengths, x_t.lengths)
    lost = (~fast.reliable).nonzero()[:, 0]
    if not len(lost):
        return fast.log_prob
    slow = _log_space_prob(schedule, x_0.rows(lost), x_t.rows(lost), times[lost])
    return fast.log_prob.index_put((lost,), slow)


def _log_space_prob(
    schedule: Schedule, x_0: Batch, x_t: Batch, t: Int[Tensor, " batch"]
) -> Float[Tensor, " batch"]:
    """`log_prob` for any transition and numbers of any size."""
    lattice = Lattice.of(schedule, x_0, x_t, t)
    return lattice.total(lattice.forward()[1])


def sample_edits(
    schedule: Schedule,
    x_0: Batch,
    x_t: Batch,
    t: Int[Tensor, " batch"] | int,
    *,
    generator: Randomness,
) -> Edits:
    """An edit summary drawn from q(a_{0→t} | x_0, x_t).

    A walk backwards through the lattice that chooses each move in proportion to the total
    probability of what leads there.

    Args:
        schedule: The forward process.
        x_0: Data: regular tokens alone.
        x_t: Noisy sequences: regular tokens, INS and DEL.
        t: The time, one for all sequences or one each, 0…T.
        generator: A torch.Generator, or `RowSeeds` with one seed per sequence.

    Returns:
        One edit summary for each sequence.

    >>> schedule, x = Schedule.paper(3, 8, 0.6), Batch.from_lists([[0, 1]])
    >>> sample_edits(schedule, x, x, 0, generator=torch.Generator()).source.tolist()
    [[0, 1]]

    Reference: Johnson et al. 2021, Fig. 2; docs/process.md
    """
    lattice = Lattice.of(schedule, x_0, x_t, t)
    moves = 2 * (x_0.width + x_t.width)
    noise = uniform(generator, len(x_0), moves, dtype=lattice.log_delete.dtype)
    return _walked(lattice, *lattice.forward(), x_0, x_t, noise)


def most_likely_edits(
    schedule: Schedule, x_0: Batch, x_t: Batch, t: Int[Tensor, " batch"] | int
) -> Edits:
    """An edit summary of the largest probability, argmax_a q(a_{0→t} | x_0, x_t).

    The same walk through the lattice of the largest instead of the total probabilities.

    Args:
        schedule: The forward process.
        x_0: Data: regular tokens alone.
        x_t: Noisy sequences: regular tokens, INS and DEL.
        t: The time, one for all sequences or one each, 0…T.

    Returns:
        One edit summary for each sequence.

    >>> schedule = Schedule.paper(vocab_size=4, num_steps=10, rate=0.4)
    >>> x_0, x_t = Batch.from_lists([[0, 1, 2, 3]]), Batch.from_lists([[0, 2, 3]])
    >>> most_likely_edits(schedule, x_0, x_t, 3).source.tolist()
    [[0, 2, 3]]

    Reference: docs/process.md
    """
    lattice = Lattice.of(schedule, x_0, x_t, t)
    # A move is made if it leads to the largest probability: then the ratio of both is 1.
    noise = lattice.log_delete.new_full((len(x_0), 2 * (x_0.width + x_t.width)), 1.0 - 1e-6)
    return _walked(lattice, *lattice.forward(torch.maximum), x_0, x_t, noise)


def _walked(
    lattice: Lattice,
    forward_a: Diagonals,
    forward_b: Diagonals,
    x_0: Batch,
    x_t: Batch,
    noise: Float[Tensor, "batch moves"],
) -> Edits:
    """Walk back from the end; a move is made if the noise is below its share of what leads here."""
    _refuse_impossible(lattice.total(forward_b))
    i, j = x_0.lengths.clone(), x_t.lengths.clone()
    in_b = torch.ones_like(i, dtype=torch.bool)
    source = torch.full((len(x_0), x_t.width + 1), INSERTED, device=x_t.device)
    # Cells (0, j) and (i, 0) cannot be reached by a replacement.
    log_replace = torch.nn.functional.pad(lattice.log_replace, (1, 0, 1, 0), value=-torch.inf)
    rows = torch.arange(len(x_0), device=x_t.device)
    for move in range(x_0.width + x_t.width):
        i_before = (i - 1).clamp_min(0)
        logp_b = forward_b[rows, i + j, i]
        # Row −1 of the lattice is not there: nothing is consumed before the first token.
        from_b = forward_b[rows, (i + j - 1).clamp_min(0), i_before] + lattice.log_delete
        prob_delete = torch.where(i > 0, (from_b - logp_b).exp(), 0.0)
        deletes = in_b & (noise[:, 2 * move] < prob_delete)
        logp_a = forward_a[rows, i + j, i]
        from_b = forward_b[rows, (i + j - 2).clamp_min(0), i_before]
        prob_replace = (from_b + log_replace[rows, i, j] - logp_a).exp()
        replaces = ~deletes & (noise[:, 2 * move + 1] < prob_replace)
        inserts = ~deletes & ~replaces & (j > 0)
        # Rows that make no replacement write to a column of their own, which is then cut off.
        source[rows, torch.where(replaces, j - 1, x_t.width)] = i_before
        i = i - (deletes | replaces).long()
        j = j - (replaces | inserts).long()
        in_b = deletes | replaces
    return Edits.from_source(x_0, x_t, source[:, : x_t.width])


@dataclass(frozen=True)
class EditMarginals:
    """The exact law of each token's edit under q(a_{0→t} | x_0, x_t)."""

    prob_source: Float[Tensor, "batch length source"]
    """P(token j of x_t comes from token i of x_0)."""
    prob_inserted: Float[Tensor, "batch length"]
    """P(token j of x_t was inserted); no deletions stand right before it then."""
    prob_deletions_end: Float[Tensor, "batch source+1"]
    """P(n tokens were deleted at the end, right before EOS)."""
    log_enter: Float[Tensor, "batch source+1 length+1"]
    """log weight of stopping to insert with i consumed and j written."""
    log_leave: Float[Tensor, "batch source length"]
    """log weight of replacing i by j and all that follows, less log q(x_t | x_0)."""
    log_delete: Float[Tensor, " batch"]
    """log β̄_t."""

    def prob_source_deletions(self, deletions: int) -> Float[Tensor, "batch length source"]:
        """P(token j comes from i and exactly this many tokens were deleted right before it).

        Summed over all numbers of deletions it is `prob_source`.
        """
        count = self.log_leave.shape[1]
        logp = torch.full_like(self.log_leave, -torch.inf)
        if deletions < count:
            enter = self.log_enter[:, : count - deletions, :-1]
            cost = deletions * self.log_delete if deletions else torch.zeros_like(self.log_delete)
            logp[:, deletions:] = enter + self.log_leave[:, deletions:] + cost[:, None, None]
        return logp.exp().transpose(1, 2)

    def joint(self) -> Float[Tensor, "batch length source deletions"]:
        """P(source i, n deletions right before) for each token, n = 0…|x_0| − 1."""
        counts = range(self.log_leave.shape[1])
        each = [self.prob_source_deletions(n) for n in counts]
        return torch.stack(each, dim=-1) if each else self.prob_source[..., None]


def edit_marginals(
    schedule: Schedule, x_0: Batch, x_t: Batch, t: Int[Tensor, " batch"] | int
) -> EditMarginals:
    """Marginals of q(a_{0→t} | x_0, x_t) by forward–backward, exact.

    P(token j of x_t comes from token i of x_0), and P(it was inserted)

    Args:
        schedule: The forward process.
        x_0: Data: regular tokens alone.
        x_t: Noisy sequences: regular tokens, INS and DEL.
        t: The time, one for all sequences or one each, 0…T.

    Returns:
        `EditMarginals`.

    >>> schedule, x = Schedule.paper(3, 8, 0.6), Batch.from_lists([[0, 1]])
    >>> edit_marginals(schedule, x, x, 0).prob_source.tolist()
    [[[1.0, 0.0], [0.0, 1.0]]]

    Reference: docs/process.md
    """
    lattice = Lattice.of(schedule, x_0, x_t, t)
    forward_a, forward_b = lattice.forward()
    backward_a, _ = lattice.backward()
    total = lattice.total(forward_b)
    _refuse_impossible(total)
    sources, _length = x_0.width, x_t.width
    before_a, after_a = lattice.unskew(forward_a), lattice.unskew(backward_a)
    before_b = lattice.unskew(forward_b)
    leave = lattice.log_replace + after_a[:, 1:, 1:] - total[:, None, None]
    prob_source = (before_b[:, :-1, :-1] + leave).exp()
    inserted = before_a[:, :, :-1] + lattice.log_insert[:, None, :] + after_a[:, :, 1:]
    prob_inserted = (inserted - total[:, None, None]).exp().sum(dim=1)
    enter = before_a + lattice.log_stop[:, None, None]
    # At the end n tokens are deleted after the last stop at (|x_0| − n, |x_t|).
    n = torch.arange(sources + 1, device=x_t.device)
    at_end = enter.gather(2, x_t.lengths[:, None, None].expand(-1, sources + 1, 1))[..., 0]
    start = x_0.lengths[:, None] - n
    at_end = at_end.gather(1, start.clamp_min(0))
    deleted = torch.where(n > 0, n * lattice.log_delete[:, None], 0.0)
    at_end = (at_end + deleted - total[:, None]).exp().masked_fill(start < 0, 0.0)
    return EditMarginals(
        prob_source=prob_source.transpose(1, 2),
        prob_inserted=prob_inserted,
        prob_deletions_end=at_end,
        log_enter=enter,
        log_leave=leave,
        log_delete=lattice.log_delete,
    )


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
        cls, schedule: Schedule, x_0: Batch, x_t: Batch, t: Int[Tensor, " batch"] | int
    ) -> Lattice:
        """Look the weights up; moves into padding get −inf."""
        times = check_pair(schedule, x_0, x_t, t, first=0)
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


def _refuse_impossible(total: Float[Tensor, " batch"]) -> None:
    impossible = total == -torch.inf
    if bool(impossible.any()):
        row = impossible.nonzero()[0].item()
        raise ValueError(f"row {row}: q cannot produce this x_t from this x_0 at this t")
