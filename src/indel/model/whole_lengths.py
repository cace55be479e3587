"""How long gaps are, from how long whole sequences of the data are.

Counts of contexts see the end of a sequence come with the same probability everywhere. What they
lack is w(n) = p(|x_0| = n in the data) / p(|x_0| = n by the counts), and a gap of g tokens beside F
frozen ones and s tokens in the other gaps has

    p(g | frozen) ∝ p_counts(g | frozen) Σ_s p_counts(s in the others | frozen) w(F + g + s),

the numbers in the gaps being taken as independent given the counts: with one gap this is exact.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from indel.model.automata import Automaton
from indel.process.counts import sum_distribution

_OTHERWISE = 1e-3
"""The share of sequences that may have any length: a frozen part may be longer than all data."""


def length_weights(
    seen: Float[Tensor, " lengths"], automaton: Automaton
) -> Float[Tensor, " lengths"]:
    """w(n) up to a factor, n = 0…; `seen` says how often each length stands in the data."""
    known = (seen / seen.sum()).double()
    known = (1.0 - _OTHERWISE) * known + _OTHERWISE / len(known)
    by_counts = torch.empty_like(known)
    state = torch.zeros_like(automaton.end)[:, None]
    state[0] = 1.0
    for n in range(len(known)):
        by_counts[n] = automaton.end @ state[:, 0]
        state = automaton.onward(state)
    # Where the counts allow no end at all the data has no say either.
    weights = torch.where(by_counts > 0, known / by_counts, 0.0)
    return weights / weights.max()


def weighed_gaps(
    law: Float[Tensor, "batch slots counts"],
    is_gap: Bool[Tensor, "batch slots"],
    frozen: Int[Tensor, " batch"],
    weights: Float[Tensor, " lengths"],
) -> Float[Tensor, "batch slots counts"]:
    """p(g | frozen) of each gap, g = 0…, from that of the counts; other slots stay as they are.

    Args:
        law: Of the number of tokens in each slot, by the counts.
        is_gap: Which slots are gaps.
        frozen: The number F of frozen tokens of each sequence.
        weights: w(n).

    Returns:
        The law of each gap, summing to 1 where any length is possible.
    """
    gaps = is_gap.sum(dim=1)
    # The gaps of each row, in order; a row with fewer than others has some that hold nothing.
    places = torch.argsort(is_gap.byte(), dim=1, descending=True, stable=True)[:, : gaps.max()]
    there = torch.arange(places.shape[1], device=law.device) < gaps[:, None]
    index = places[..., None].expand(-1, -1, law.shape[2])
    before = law.gather(1, index)
    nothing = torch.zeros_like(weights)
    nothing[0] = 1.0
    each = functional.pad(before.double(), (0, max(0, len(weights) - before.shape[2])))
    each = torch.where(there[..., None], each[..., : len(weights)], nothing)
    of_rest = _of_rest(weights, frozen)
    found = before.clone()
    for k in range(each.shape[1]):
        others = nothing.expand(len(law), -1)
        for j in range(each.shape[1]):
            others = others if j == k else sum_distribution(others, each[:, j])
        weighed = each[:, k] * (of_rest @ others[..., None])[..., 0]
        total = weighed.sum(dim=1, keepdim=True)
        weighed = functional.pad(weighed / total, (0, max(0, law.shape[2] - len(weights))))
        possible = there[:, k, None] & (total > 0)
        found[:, k] = torch.where(possible, weighed[:, : law.shape[2]].to(law), before[:, k])
    return law.scatter(1, index, found)


def _of_rest(
    weights: Float[Tensor, " lengths"], frozen: Int[Tensor, " batch"]
) -> Float[Tensor, "batch lengths lengths"]:
    """w(F + g + s) at [g, s]; what is longer than all lengths that have a weight has none."""
    numbers = torch.arange(len(weights), device=frozen.device)
    whole = frozen[:, None, None] + numbers[:, None] + numbers
    padded = functional.pad(weights, (0, 1))
    found: Tensor = padded[whole.clamp_max(len(weights))]
    return found
