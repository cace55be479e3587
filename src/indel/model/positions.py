"""Relative position biases: what each attention head thinks of a distance before any training."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from indel import checks

PositionInit = Literal["local", "zeros"]
POSITION_INITS: tuple[str, ...] = get_args(PositionInit)

# The biases of the local heads. Untrained queries and keys give scores of variance 1, so 8
# leaves a head that looks at one neighbour 96 % of its weight there among 128 tokens.
NEIGHBOR_BIAS = 8.0
SHORT_RANGE_SLOPE = 0.5
LONG_RANGE_SLOPE = 0.05

LONGEST = 1_000_000
"""Longer sequences are refused: attention could not be computed over them."""


def check_buckets(num_buckets: int, max_distance: int) -> None:
    """Buckets of relative positions, half of them for each direction."""
    checks.integer("num_buckets", num_buckets, least=4, most=LONGEST)
    if num_buckets % 2:
        raise ValueError(f"num_buckets must be even, got {num_buckets}")
    # Below a quarter of the buckets each distance has its own.
    checks.integer("max_distance", max_distance, least=num_buckets // 4 + 1, most=LONGEST)


class RelativePositions(nn.Module):
    """One learned bias for each head and bucket of key position − query position.

    score[h, i, j] = q_i·k_j + table[bucket(j − i), h], the same in all layers.
    Short distances have a bucket each, longer ones share logarithmically growing ones.

    Paper: App. C.1 (T5)
    """

    table: nn.Parameter
    bucket_of_distance: Tensor

    def __init__(
        self, num_heads: int, num_buckets: int, max_distance: int, init: PositionInit
    ) -> None:
        super().__init__()
        buckets = distance_buckets(num_buckets // 2, max_distance)
        self.max_distance = max_distance
        # Worked out once and on the CPU: rounding of a logarithm must not depend on the device.
        self.register_buffer("bucket_of_distance", buckets, persistent=False)
        if init == "local":
            table = local_biases(buckets, num_buckets // 2, num_heads)
        else:
            table = torch.zeros(num_buckets, num_heads)
        self.table = nn.Parameter(table)

    def forward(self, length: int) -> Float[Tensor, "heads {length} {length}"]:
        """The biases of all pairs of `length` positions: queries are rows, keys columns."""
        offsets = torch.arange(1 - length, length, device=self.table.device)
        buckets = self.bucket_of_distance[offsets.abs().clamp_max(self.max_distance)]
        buckets = buckets + (offsets > 0) * (len(self.table) // 2)
        by_offset = nn.functional.embedding(buckets, self.table).T
        # Window w holds the offsets w + 1 − length …, which is the row of query length − 1 − w.
        return by_offset.unfold(1, length, 1).flip(1)


def distance_buckets(num_buckets: int, max_distance: int) -> Int[Tensor, " distances"]:
    """T5's bucket for each distance 0…max_distance in one direction.

    bucket(d) = d below half = num_buckets/2, otherwise
    half + ⌊(num_buckets − half) · log(d/half) / log(max_distance/half)⌋, the last one at most.

    >>> distance_buckets(16, 128)[[0, 7, 8, 15, 16, 127, 128]].tolist()
    [0, 7, 8, 9, 10, 15, 15]
    """
    half = num_buckets // 2
    distances = torch.arange(max_distance + 1)
    # In float32, like T5: in another type some distances would change their bucket.
    growth = torch.log(distances.clamp_min(half).float() / half) / math.log(max_distance / half)
    shared = half + (growth * (num_buckets - half)).long()
    return torch.where(distances < half, distances, shared.clamp_max(num_buckets - 1))


def local_biases(
    buckets: Int[Tensor, " distances"], num_buckets: int, num_heads: int
) -> Float[Tensor, "buckets heads"]:
    """A table to start from: heads for the previous and the next token, for near and for far.

    previous: 8·[offset = −1]; next: 8·[offset = 1]; near: −|offset|/2; far: −|offset|/20; further
    heads look 2, 3, … tokens back and ahead, as far as one distance has a bucket of its own, and
    then all comes again. A bucket counts with its shortest distance.
    """
    distances = torch.arange(len(buckets))
    shortest = torch.full((num_buckets,), len(buckets) - 1)
    shortest = shortest.scatter_reduce(0, buckets, distances, reduce="amin")
    offsets = torch.cat([-shortest, shortest]).float()
    patterns = [
        NEIGHBOR_BIAS * (offsets == -1),
        NEIGHBOR_BIAS * (offsets == 1),
        -SHORT_RANGE_SLOPE * offsets.abs(),
        -LONG_RANGE_SLOPE * offsets.abs(),
    ]
    alone = shortest[torch.bincount(buckets, minlength=num_buckets) == 1]
    for distance in alone[alone > 1].tolist():
        patterns += [NEIGHBOR_BIAS * (offsets == sign * distance) for sign in (-1, 1)]
    return torch.stack([patterns[head % len(patterns)] for head in range(num_heads)], dim=1)
