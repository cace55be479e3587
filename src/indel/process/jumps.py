"""Many steps at once: the parameters ᾱ_t, β̄_t, Q̄_t of q(x_t | x_0).

Deletion is the same for all tokens, so β̄_t is a number, and Q̄_t[x, ·] splits into the part that
remembers x (never deleted, keep_t·Ā_t[x, ·]) and a `background` of deletion–insertion pairs that
does not. Both parts are kept as they are: no K×K matrix is built unless a transition is one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from indel.process import checks
from indel.process.measures import Measure
from indel.process.steps import Step
from indel.process.transitions import IdentityTransition, Transition


@dataclass(frozen=True)
class Jump:
    """The two-state transducer of q(x_t | x_0): insert, stop inserting, delete, replace.

    Paper: App. B.1 and Fig. 5 (middle)
    """

    inserts: Measure
    """ᾱ_t on the regular tokens."""
    insert_ins: float
    """ᾱ_t[INS], inserts made in step t itself."""
    insert_del: float
    """ᾱ_t[DEL], inserts that were deleted in step t itself."""
    stop: float
    """1 − Σ_y ᾱ_t[y], carried along because the subtraction would lose digits."""
    prob_delete: float
    """β̄_t: deleted before step t, and nothing inserted in its place."""
    keep: float
    """keep_t = Π (1 − d_s): never deleted."""
    kept: Transition
    """Ā_t = A_1 ⋯ A_t: what a token that was never deleted has become."""
    background: Measure
    """Q̄_t[x, ·] − keep_t·Ā_t[x, ·] on the regular tokens: deletion–insertion pairs."""
    replace_del: float
    """Q̄_t[x, DEL]: deleted in step t itself, or paired with an insert that was."""

    @classmethod
    def identity(cls, vocab_size: int) -> Jump:
        """t = 0: ᾱ_0 = 0, β̄_0 = 0, Q̄_0 = I.

        Paper: Eq. (4)
        """
        return cls(
            inserts=Measure.zero(vocab_size),
            insert_ins=0.0,
            insert_del=0.0,
            stop=1.0,
            prob_delete=0.0,
            keep=1.0,
            kept=IdentityTransition(vocab_size),
            background=Measure.zero(vocab_size),
            replace_del=0.0,
        )

    @property
    def vocab_size(self) -> int:
        """The number K of regular tokens."""
        return self.kept.vocab_size

    @property
    def loops(self) -> float:
        """Any number of inserts deleted at once, unseen: Σ_n ᾱ_t[DEL]ⁿ = 1 / (1 − ᾱ_t[DEL]).

        Paper: Eq. (5)
        """
        return 1.0 / (self.stop + self.inserts.mass + self.insert_ins)

    @property
    def delete_now(self) -> float:
        """Deleted in step t with nothing inserted after it, so gone without trace at t + 1.

        Q̄_t[x, DEL] · (1 − Σ_y ᾱ_t[y]) / (1 − ᾱ_t[DEL])

        Paper: Eq. (8)
        """
        return self.replace_del * self.stop * self.loops

    def then(self, step: Step) -> Jump:
        """The jump that goes one step further.

        Paper: App. B.2
        """
        inserts, insert_del = self._inserts_moved(step)
        background, replace_del = self._replaced(step)
        return Jump(
            inserts=inserts * (1.0 - step.insert),
            insert_ins=step.insert,
            insert_del=insert_del * (1.0 - step.insert),
            stop=self._stopped(step),
            prob_delete=self._deleted(),
            keep=self.keep * (1.0 - step.delete),
            kept=self.kept.then(step.transition),
            background=background,
            replace_del=replace_del,
        )

    def _inserts_moved(self, step: Step) -> tuple[Measure, float]:
        """ᾱ_{t−1}ᵀ Q_t / (1 − ᾱ_{t−1}[DEL]): earlier inserts, replaced once more.

        ᾱ_t = α_t δ_INS + (1 − α_t) · this

        Paper: Eqs. (6) and (10)
        """
        moved, deleted = step.push(self.inserts, self.insert_ins)
        return moved * self.loops, deleted * self.loops

    def _stopped(self, step: Step) -> float:
        """(1 − α_t) (1 − Σ_y ᾱ_{t−1}[y]) / (1 − ᾱ_{t−1}[DEL]): no more inserts in this gap.

        Paper: Eq. (7)
        """
        return (1.0 - step.insert) * self.stop * self.loops

    def _deleted(self) -> float:
        """β̄_t = β̄_{t−1} + Q̄_{t−1}[x, DEL] (1 − Σ_y ᾱ_{t−1}[y]) / (1 − ᾱ_{t−1}[DEL]).

        Paper: Eq. (11)
        """
        return self.prob_delete + self.delete_now

    def _replaced(self, step: Step) -> tuple[Measure, float]:
        """Q̄_t = Q̄_{t−1} Q_t + Q̄_{t−1}[·, DEL] ᾱ_{t−1}ᵀ Q_t / (1 − ᾱ_{t−1}[DEL]).

        The row of x is keep_t·Ā_t[x, ·] plus what is returned here: the background and DEL.

        Paper: Eqs. (9) and (12)
        """
        moved, deleted = step.push(self.background, 0.0)
        paired, paired_deleted = self._inserts_moved(step)
        return (
            moved + paired * self.replace_del,
            deleted + self.keep * step.delete + paired_deleted * self.replace_del,
        )

    @property
    def insert(self) -> Float[Tensor, " augmented"]:
        """ᾱ_t of shape (K+2,) in float64; order: regular tokens, INS, DEL."""
        markers = torch.tensor([self.insert_ins, self.insert_del], dtype=torch.float64)
        return torch.cat([self.inserts.dense(), markers])

    @property
    def delete(self) -> Float[Tensor, " tokens"]:
        """β̄_t of shape (K,) in float64."""
        return torch.full((self.vocab_size,), self.prob_delete, dtype=torch.float64)

    @property
    def replace(self) -> Float[Tensor, "tokens augmented"]:
        """Q̄_t of shape (K, K+2) in float64, built on request; refused for large vocabularies."""
        checks.dense_size("Jump.replace", self.vocab_size)
        regular = self.keep * self.kept.matrix() + self.background.dense()
        markers = torch.tensor([0.0, self.replace_del], dtype=torch.float64)
        return torch.cat([regular, markers.expand(self.vocab_size, 2)], dim=1)
