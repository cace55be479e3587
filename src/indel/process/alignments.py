"""All edit summaries of x_0 and x_t at once: their sum, a draw, the likeliest, the marginals."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.process.edits import Edits
from indel.process.lattice import Lattice, Walk
from indel.process.native_lattice import NativeLattice
from indel.process.probabilities import check_pair
from indel.process.schedules import Schedule
from indel.randomness import Randomness, uniform


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
    return _lattice(schedule, x_0, x_t, t).log_prob()


def _lattice(
    schedule: Schedule, x_0: Batch, x_t: Batch, t: Int[Tensor, " batch"] | int
) -> Lattice | NativeLattice:
    """In C where that can be."""
    times = check_pair(schedule, x_0, x_t, t, first=0)
    native = NativeLattice.of(schedule, x_0, x_t, times)
    return Lattice.of(schedule, x_0, x_t, times) if native is None else native


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
    lattice = _lattice(schedule, x_0, x_t, t)
    draws = uniform(generator, len(x_0), _draws(x_0, x_t), dtype=schedule.tables(x_t.device).dtype)
    return _edits(lattice.walk(draws), x_0, x_t)


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
    lattice = _lattice(schedule, x_0, x_t, t)
    # A move is made if it leads to the largest probability: then its share is 1.
    draws = schedule.tables(x_t.device).jump.stop.new_full((len(x_0), _draws(x_0, x_t)), 1.0 - 1e-6)
    return _edits(lattice.walk(draws, only_largest=True), x_0, x_t)


def _draws(x_0: Batch, x_t: Batch) -> int:
    """Two for each move of the longest walk."""
    return 2 * (x_0.width + x_t.width)


def _edits(walk: Walk, x_0: Batch, x_t: Batch) -> Edits:
    _refuse_impossible(walk.log_total)
    return Edits.from_source(x_0, x_t, walk.source)


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
    times = check_pair(schedule, x_0, x_t, t, first=0)
    lattice = Lattice.of(schedule, x_0, x_t, times)
    native = NativeLattice.of(schedule, x_0, x_t, times)
    before_a, before_b, after_a, total = (lattice if native is None else native).cells()
    _refuse_impossible(total)
    sources = x_0.width
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


def _refuse_impossible(total: Float[Tensor, " batch"]) -> None:
    impossible = total == -torch.inf
    if bool(impossible.any()):
        row = impossible.nonzero()[0].item()
        raise ValueError(f"row {row}: q cannot produce this x_t from this x_0 at this t")
