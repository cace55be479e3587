"""One step of the forward process, q(x_t | x_{t−1})."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from indel.process import checks
from indel.process.measures import Measure
from indel.process.transitions import Transition, transition_from_dict


class Step:
    """Remove every DEL, replace each token through Q_t, insert Geom(1 − α_t) INS in each gap.

    Q_t[x, y]   = (1 − d_t) A_t[x, y]     Q_t[x, DEL]   = d_t
    Q_t[INS, y] = (1 − d′_t) π_t[y]       Q_t[INS, DEL] = d′_t

    Args:
        insert: α_t, the probability of one more INS in a gap; below 1.
        delete: d_t.
        transition: A_t.
        inserted: π_t, what an INS of the step before becomes; None: uniform.
        delete_inserted: d′_t; None: d_t.

    >>> from indel.process import IdentityTransition
    >>> Step(insert=0.1, delete=0.25, transition=IdentityTransition(2)).matrix()[0].tolist()
    [0.75, 0.0, 0.0, 0.25]

    Paper: Sec. 3.1
    """

    def __init__(
        self,
        insert: float,
        delete: float,
        transition: Transition,
        inserted: Float[Tensor, " tokens"] | Measure | None = None,
        delete_inserted: float | None = None,
    ) -> None:
        self.insert = checks.probability("insert", insert, below_one=True)
        self.delete = checks.probability("delete", delete)
        self.transition = transition
        self.inserted = inserted_law(inserted, transition.vocab_size)
        self.delete_inserted = checks.probability(
            "delete_inserted", delete if delete_inserted is None else delete_inserted
        )

    @property
    def vocab_size(self) -> int:
        """The number K of regular tokens."""
        return self.transition.vocab_size

    def push(self, regular: Measure, ins: float) -> tuple[Measure, float]:
        """The row vector (regular, INS)·Q_t, as its regular part and its entry at DEL."""
        moved = self.transition.push(regular) * (1.0 - self.delete)
        became = self.inserted * (ins * (1.0 - self.delete_inserted))
        return moved + became, self.delete * regular.mass + self.delete_inserted * ins

    def matrix(self) -> Float[Tensor, "augmented augmented"]:
        """Dense Q_t of shape (K+2, K+2) in float64; order: regular tokens, INS, DEL."""
        checks.dense_size("Step.matrix()", self.vocab_size)
        size, ins, del_ = self.vocab_size, self.vocab_size, self.vocab_size + 1
        matrix = torch.zeros(size + 2, size + 2, dtype=torch.float64)
        matrix[:size, :size] = (1.0 - self.delete) * self.transition.matrix()
        matrix[:size, del_] = self.delete
        matrix[ins, :size] = (1.0 - self.delete_inserted) * self.inserted.dense()
        matrix[ins, del_] = self.delete_inserted
        return matrix

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, exact."""
        return {
            "insert": self.insert,
            "delete": self.delete,
            "delete_inserted": self.delete_inserted,
            "transition": self.transition.to_dict(),
            "inserted": self.inserted.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Step:
        """The step written by `to_dict`."""
        return cls(
            record["insert"],
            record["delete"],
            transition_from_dict(record["transition"]),
            Measure.from_dict(record["inserted"]),
            record["delete_inserted"],
        )

    def __repr__(self) -> str:
        return (
            f"Step(insert={self.insert}, delete={self.delete}, transition={self.transition}, "
            f"delete_inserted={self.delete_inserted})"
        )


def inserted_law(inserted: Float[Tensor, " tokens"] | Measure | None, size: int) -> Measure:
    """π_t, what an INS becomes: uniform if nothing is given."""
    if inserted is None:
        return Measure.uniform(size)
    if isinstance(inserted, Measure):
        if inserted.vocab_size != size:
            raise ValueError(
                f"inserted must be over the transition's {size} tokens, got {inserted.vocab_size}"
            )
        return inserted
    prob = torch.as_tensor(inserted, dtype=torch.float64)
    if prob.shape != (size,):
        raise ValueError(
            f"inserted must have one probability for each of the {size} tokens, "
            f"got shape {tuple(prob.shape)}"
        )
    return Measure.given(checks.distribution("inserted", prob))
