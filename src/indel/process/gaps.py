"""Sequences of which tokens are frozen: what is left are gaps, each a sequence of its own.

q that leaves the frozen tokens alone and puts nothing between neighbors is a product over the gaps,

    q(x_t | x_{t−1}, frozen) = Π_gaps q(gap of x_t | gap of x_{t−1}),

so whatever is known about q (jumps, posteriors, limits) holds for a batch with a row for each gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from indel.batch import PADDING, Batch, pack
from indel.randomness import Randomness, RowSeeds


class Joined(NamedTuple):
    """Whole sequences: the frozen tokens with the contents of the gaps between them."""

    x: Batch
    frozen: Bool[Tensor, "batch length"]
    starts: Int[Tensor, " gaps"]
    """Where the content of each gap begins in its sequence."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """The frozen tokens of each sequence, and which of the places between them are gaps.

    Place j lies right before frozen token j, the last one at the end. Each gap is a row of its
    own; the gaps of a sequence stand side by side, in order.

    >>> x = Batch.from_lists([[5, 6, 7, 8]])
    >>> gaps, contents = Gaps.split(x, torch.tensor([[True, False, False, True]]))
    >>> gaps.frozen.to_lists(), contents.to_lists()
    ([[5, 8]], [[6, 7]])
    >>> gaps.join(Batch.from_lists([[9]])).x.to_lists()
    [[5, 9, 8]]
    """

    frozen: Batch
    open: Bool[Tensor, "batch places"]

    def __post_init__(self) -> None:
        if self.open.shape != (len(self.frozen), self.frozen.width + 1):
            raise ValueError(
                f"there must be one more place than frozen tokens: open must be of shape "
                f"{(len(self.frozen), self.frozen.width + 1)}, got {tuple(self.open.shape)}"
            )
        places = torch.arange(self.open.shape[1], device=self.open.device)
        if bool((self.open & (places > self.frozen.lengths[:, None])).any()):
            raise ValueError("open must be false behind the end of a sequence")

    @classmethod
    def split(
        cls,
        x: Batch,
        frozen: Bool[Tensor, "batch length"],
        also_open: Bool[Tensor, "batch places"] | None = None,
    ) -> tuple[Gaps, Batch]:
        """The gaps of sequences and their contents; `also_open` names gaps that may be empty.

        Entry j of `also_open` is the place before frozen token j, or after the last one.
        """
        if frozen.shape != x.tokens.shape or frozen.dtype != torch.bool:
            raise ValueError(
                f"frozen must be a mask of the shape of x, {tuple(x.tokens.shape)}, got "
                f"{frozen.dtype} of shape {tuple(frozen.shape)}"
            )
        frozen = frozen & x.mask
        counts = frozen.sum(dim=1)
        tokens = Batch(pack(x.tokens, frozen, fill=PADDING), counts).trimmed()
        place = frozen.cumsum(dim=1) - frozen.long()
        free = x.mask & ~frozen
        inside = torch.zeros(len(x), tokens.width + 1, dtype=torch.int64, device=x.device)
        inside = inside.scatter_add(1, place.clamp_max(tokens.width), free.long())
        is_open = inside > 0
        if also_open is not None:
            is_open = is_open | also_open[:, : tokens.width + 1]
        lengths = inside[is_open]
        # Row by row and place by place: the free tokens are listed in the order of the gaps.
        first = lengths.cumsum(dim=0) - lengths
        listed = x.tokens[free]
        width = int(lengths.max()) if len(lengths) else 0
        at = first[:, None] + torch.arange(width, device=x.device)
        listed = torch.cat([listed, listed.new_full((1,), PADDING)])
        contents = Batch(listed[at.clamp_max(len(listed) - 1)], lengths)
        return cls(tokens, is_open), contents

    @cached_property
    def row(self) -> Int[Tensor, " gaps"]:
        """Which sequence each gap belongs to."""
        return self.open.nonzero()[:, 0]

    @cached_property
    def place(self) -> Int[Tensor, " gaps"]:
        """How many frozen tokens stand before each gap."""
        return self.open.nonzero()[:, 1]

    @property
    def is_whole(self) -> Bool[Tensor, " gaps"]:
        """Which gaps are whole sequences, of which nothing is frozen."""
        return (self.frozen.lengths == 0)[self.row]

    def join(self, contents: Batch) -> Joined:
        """The sequences with these contents in the gaps."""
        if len(contents) != len(self.row):
            raise ValueError(f"there are {len(self.row)} gaps, but {len(contents)} contents")
        counts = torch.zeros_like(self.open, dtype=torch.int64)
        counts = counts.index_put((self.row, self.place), contents.lengths)
        so_far = counts.cumsum(dim=1)
        lengths = self.frozen.lengths + counts.sum(dim=1)
        width = int(lengths.max()) if len(lengths) else 0
        starts = self.place + so_far[self.row, self.place] - contents.lengths
        tokens = torch.full((len(lengths), width), PADDING, device=lengths.device)
        marks = torch.zeros(len(lengths), width, dtype=torch.bool, device=lengths.device)
        rows, numbers = self.frozen.mask.nonzero(as_tuple=True)
        places = numbers + so_far[rows, numbers]
        tokens[rows, places] = self.frozen.tokens[rows, numbers]
        marks[rows, places] = True
        gap, inside = contents.mask.nonzero(as_tuple=True)
        tokens[self.row[gap], starts[gap] + inside] = contents.tokens[gap, inside]
        return Joined(Batch(tokens, lengths), marks, starts)

    def read(
        self, values: Shaped[Tensor, "batch length *rest"], starts: Int[Tensor, " gaps"], width: int
    ) -> Shaped[Tensor, "gaps {width} *rest"]:
        """The values at so many places of each gap from its start on; any behind the end."""
        at = starts[:, None] + torch.arange(width, device=starts.device)
        length = values.shape[1]
        flat = self.row[:, None] * length + at.clamp_max(max(length - 1, 0))
        # The gradient of index_select is a fast sum; that of a tuple of indices is not.
        found = values.flatten(0, 1).index_select(0, flat.flatten())
        return found.reshape(*flat.shape, *values.shape[2:])

    def summed(self, values: Float[Tensor, " gaps"]) -> Float[Tensor, " batch"]:
        """The sum over the gaps of each sequence."""
        return values.new_zeros(len(self.frozen)).index_add(0, self.row, values)

    def noise(self, generator: Randomness) -> Randomness:
        """The noise of each gap: with `RowSeeds` a function of its sequence's seed and place."""
        if not isinstance(generator, RowSeeds):
            return generator
        places = self.open.shape[1]
        return generator.repeated(places).rows(self.row * places + self.place)


def slots_in_gaps(
    frozen: Bool[Tensor, "batch length"], is_open: Bool[Tensor, "batch places"]
) -> Bool[Tensor, "batch length+1"]:
    """Which slots lie in a gap: the place before the next frozen token, or the end, is open.

    >>> slots_in_gaps(torch.tensor([[True, True, False]]), torch.tensor([[False, False, True]]))
    tensor([[False, False,  True,  True]])
    """
    place = torch.nn.functional.pad(frozen.cumsum(dim=1), (1, 0))
    return is_open.gather(1, place)
