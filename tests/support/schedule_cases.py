"""The paper's noise, transitions that tell old tokens from new ones, and expected counts."""

from fractions import Fraction
from functools import cache

import pytest
import torch

from indel import Batch
from indel.process import (
    AbsorbingTransition,
    MatrixTransition,
    Schedule,
)

EXACT = 1e-12


def noise(t: int, num_steps: int) -> float:
    """u_t of Appendix C.2, in exact arithmetic."""
    time = Fraction(t, num_steps - 1)
    return float(Fraction(1, 10) * time + Fraction(9, 10) * time**2)


def close(value: float) -> object:
    return pytest.approx(value, abs=EXACT, rel=0)


FRESH = torch.tensor([0.0, 0.0, 0.25, 0.75], dtype=torch.float64)


def blocks(size: int, prob_keep: float) -> MatrixTransition:
    """Drawn anew, but old tokens become old ones and new tokens new ones."""
    drawn = torch.block_diag(torch.full((2, 2), 0.5), torch.full((2, 2), 0.5)).double()
    return MatrixTransition(
        prob_keep * torch.eye(size, dtype=torch.float64) + (1 - prob_keep) * drawn
    )


def expected_counts(schedule: Schedule, x_0: list[int], t: int) -> dict[str, float]:
    """From the parameters ᾱ, β̄, Q̄ of the jump alone.

    Each token of x_0 is emitted with 1 − β̄, and each emitted token and the start of the sequence
    are followed by Geom inserts, Σᾱ/(1 − Σᾱ) on average, of which ᾱ[y]/Σᾱ are y.
    """
    jump = schedule.jump(t)
    emitted = len(x_0) * (1 - jump.delete[0].item())
    each = (emitted + 1) / (1 - jump.insert.sum().item()) * jump.insert
    values = jump.replace[torch.tensor(x_0, dtype=torch.int64)].sum(dim=0) + each
    counts = {f"token {y}": value for y, value in enumerate(values.tolist())}
    return counts | {
        "emitted": emitted,
        "inserted": each.sum().item(),
        "inserted INS": each[schedule.ins].item(),
        "inserted DEL": each[schedule.del_].item(),
        "length": emitted + each.sum().item(),
    }


def repeated(row: list[int], count: int) -> Batch:
    return Batch(torch.tensor([row] * count), torch.full((count,), len(row)))


@cache
def absorbing(delete_inserted: float | None) -> Schedule:
    def masking(size: int, prob_keep: float) -> AbsorbingTransition:
        return AbsorbingTransition(size, prob_keep, mask=3)

    return Schedule.paper(
        4, 8, 0.7, transition=masking, inserted=FRESH, delete_inserted=delete_inserted
    )
