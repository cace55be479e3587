"""A model of x_0 by counts as an automaton whose sums are products of sparse matrices.

Its states are contexts; each step reads one token of x_0, or the sequence ends.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

_STEPS = 200
"""After so many tokens the first one is forgotten, or as good as."""

LEAST_REST = 1e-15
"""No token is impossible."""
_LEAST_FOUND_REST = 1e-7
"""What a sum in float32 can tell from nothing."""


@dataclass(frozen=True, eq=False)
class Automaton:
    """p(x_0) = Π p(state after | state before) · p(end | last state), state 0 being the start.

    M = S + u ℓᵀ: S has the frequent transitions, and what they leave of a state's probability, ℓ,
    goes to the state of a single token, u. Vectors have a column for each sequence.
    """

    frequent: Tensor
    """S, sparse."""
    transposed: Tensor
    """Sᵀ, sparse."""
    rest: Float[Tensor, " states"]
    """ℓ."""
    common: Float[Tensor, " tokens"]
    """u at states 1…K, which have read one token only."""
    by_token: Tensor
    """Sparse (K, states): which states have just read which token."""
    last: Int[Tensor, " states"]
    """The token that a state has just read; K for the start."""
    end: Float[Tensor, " states"]
    """p(end | state)."""
    shorter: Int[Tensor, " states"]
    """The state that has forgotten the oldest token; itself where nothing can be forgotten."""
    stationary: Float[Tensor, " states"]
    """Where M leads in the long run, summing to 1, with all forgotten that can be."""
    survival: float
    """How much of the stationary distribution is left after one more token."""
    kept: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    """What was computed of it once and is needed for every batch."""

    @classmethod
    def of(
        cls,
        source: Int[Tensor, " transitions"],
        target: Int[Tensor, " transitions"],
        prob: Float[Tensor, " transitions"],
        end: Float[Tensor, " states"],
        last: Int[Tensor, " states"],
        common: Float[Tensor, " tokens"],
        rest: Float[Tensor, " states"] | None = None,
        shorter: Int[Tensor, " states"] | None = None,
    ) -> Automaton:
        """From the list of frequent transitions; the long run follows from it.

        So does `rest`, but for rounding: where it matters that next to nothing is left, it is told.
        Unless `shorter` says otherwise, no state can forget anything.
        """
        size, states = len(common), len(end)
        number = torch.arange(states, device=end.device)
        shorter = number if shorter is None else shorter
        # Compiled code follows both without looking.
        if bool(((shorter < 0) | (shorter > number)).any()):
            raise ValueError("counts are damaged: a shorter context must have a smaller number")
        if bool(((last < 0) | (last > size)).any()):
            raise ValueError(f"counts are damaged: last tokens must lie in 0…{size}")
        if rest is None:
            taken = torch.zeros_like(end).index_add(0, source, prob)
            # Counts in sixteen bits may add up to a little more than 1.
            rest = (1.0 - end - taken).clamp_min(_LEAST_FOUND_REST)
        read = torch.arange(1, states, device=end.device)
        by_token = _sparse(last[1:], read, torch.ones_like(end[1:]), (size, states))
        model = cls(
            frequent=_sparse(target, source, prob, (states, states)),
            transposed=_sparse(source, target, prob, (states, states)),
            rest=rest,
            common=common / common.sum(),
            by_token=by_token,
            last=last,
            end=end,
            shorter=shorter,
            stationary=end,
            survival=1.0,
        )
        return model._with_long_run()

    def onward(self, weights: Float[Tensor, "states rows"]) -> Float[Tensor, "states rows"]:
        """M · weights: one token further in x_0."""
        found = torch.zeros_like(weights)
        found[1 : 1 + len(self.common)] = self.common[:, None] * (self.rest @ weights)
        return _add_product(found, self.frequent, weights)

    def backward(self, message: Float[Tensor, "states rows"]) -> Float[Tensor, "states rows"]:
        """Mᵀ · message: what follows, seen from one token earlier."""
        alone = self.common @ message[1 : 1 + len(self.common)]
        return _add_product(self.rest[:, None] * alone, self.transposed, message)

    def lasting(self, tokens: int) -> Float[Tensor, " states"]:
        """The probability that so many more tokens follow."""
        if ("lasting", tokens) not in self.kept:
            found = torch.ones_like(self.end)[:, None]
            for _ in range(tokens):
                found = self.backward(found)
            self.kept["lasting", tokens] = found[:, 0]
        known: Tensor = self.kept["lasting", tokens]
        return known

    def _with_long_run(self) -> Automaton:
        weights, survival = torch.full_like(self.end, 1.0 / len(self.end))[:, None], 1.0
        for _ in range(_STEPS):
            weights = self.onward(weights)
            survival = float(weights.sum())
            weights = weights / survival
        # What follows is next to the same, and few states have any weight.
        state = torch.arange(states := len(weights), device=weights.device)
        while bool((self.shorter[state] != state).any()):
            state = self.shorter[state]
        usual = torch.zeros(states).to(weights).index_add(0, state, weights[:, 0])
        return replace(self, stationary=usual, survival=survival, kept={})


def _add_product(
    to: Float[Tensor, "states rows"], matrix: Tensor, values: Float[Tensor, "states rows"]
) -> Float[Tensor, "states rows"]:
    """Add matrix · values in place; one column alone has a faster product."""
    if values.shape[1] == 1:
        torch.addmv(to[:, 0], matrix, values[:, 0], out=to[:, 0])
    else:
        torch.addmm(to, matrix, values, out=to)
    return to


def _sparse(to: Tensor, source: Tensor, value: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse matrix with the given entries; several at one place are added."""
    place = torch.stack([to, source])
    with warnings.catch_warnings():
        # torch calls its compressed rows a beta feature.
        warnings.simplefilter("ignore", UserWarning)
        found = torch.sparse_coo_tensor(place, value, shape).to_sparse_csr()
        # The product takes indices of 32 bits and would convert longer ones each time.
        return torch.sparse_csr_tensor(
            found.crow_indices().int(), found.col_indices().int(), found.values(), shape
        )
