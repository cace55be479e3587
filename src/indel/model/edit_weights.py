"""How much q says for each kind of edit: the weights that p_θ combines the network's guess with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from indel.process.tables import JumpTables

EditWeightsName = Literal["normalized", "joint"]


@dataclass(frozen=True)
class EditWeights:
    """How much q says for each kind of edit, at index t; the one place of this choice.

    Paper: Eq. (1), the factor q(x_t, x_{t−1}, ã | x̃_0)
    """

    keep: Float[Tensor, " times"]
    """Multiplies Σ_x p̃(x) Ā_{t−1}[x, y]; 0 where q cannot have kept anything."""
    insert: Float[Tensor, " times"]
    """Multiplies p̃(ε) ᾱ_{t−1}[y]; 0 where q cannot have inserted anything."""
    log_delete: Float[Tensor, " times"]
    """Its n-fold is added to log p̃(n); −inf where q cannot have deleted anything."""

    @classmethod
    def named(cls, name: EditWeightsName, tables: JumpTables) -> EditWeights:
        """The weights that a model's config names."""
        return cls.normalized(tables) if name == "normalized" else cls.joint(tables)

    @classmethod
    def normalized(cls, tables: JumpTables) -> EditWeights:
        """Each kind of edit with its own normalised law: the network says how likely it is.

        These are the weights the authors ran.
        """
        before = _shifted(tables.inserts.mass + tables.insert_ins)
        return cls(
            keep=_shifted((tables.keep > 0).to(before.dtype)),
            insert=torch.where(before > 0, 1.0 / before, 0.0),
            log_delete=torch.where(tables.delete > 0, 0.0, -torch.inf).to(before.dtype),
        )

    @classmethod
    def joint(cls, tables: JumpTables) -> EditWeights:
        """The joint probability of the edit itself, as Eq. (1) writes it."""
        return cls(
            keep=_shifted(tables.stop * tables.keep),
            insert=_shifted((tables.inserts.mass + tables.insert_ins > 0).to(tables.stop.dtype)),
            log_delete=tables.delete.log(),
        )


def _shifted(values: Float[Tensor, " times"]) -> Float[Tensor, " times"]:
    """The value of t − 1 at index t; index 0 is never looked up."""
    return torch.cat([torch.zeros_like(values[:1]), values[:-1]])
