"""A padded batch of sequences of different lengths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

# Stored where there is no token. It is no valid index, so a forgotten mask fails loudly.
PADDING = -1


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences x of different lengths, padded on the right to one width.

    >>> batch = Batch.from_lists([[3, 1], [], [2]])
    >>> batch.lengths.tolist(), batch.to_lists()
    ([2, 0, 1], [[3, 1], [], [2]])
    """

    tokens: Int[Tensor, "batch length"]
    lengths: Int[Tensor, " batch"]

    def __post_init__(self) -> None:
        if self.tokens.dim() != 2 or self.lengths.shape != self.tokens.shape[:1]:
            raise ValueError(
                f"tokens must be (batch, length) and lengths (batch,); got "
                f"{tuple(self.tokens.shape)} and {tuple(self.lengths.shape)}"
            )
        for name, tensor in (("tokens", self.tokens), ("lengths", self.lengths)):
            if tensor.dtype != torch.int64:
                raise ValueError(f"{name} must have dtype torch.int64, got {tensor.dtype}")
        if len(self) and not bool(((self.lengths >= 0) & (self.lengths <= self.width)).all()):
            raise ValueError(
                f"lengths must lie in 0…{self.width} (the width of tokens), "
                f"got {self.lengths.tolist()}"
            )
        if bool((self.mask & (self.tokens < 0)).any()):
            row, position = (self.mask & (self.tokens < 0)).nonzero()[0].tolist()
            raise ValueError(
                f"a token must be ≥ 0, got {self.tokens[row, position].item()} at "
                f"row {row}, position {position}"
            )
        # One canonical padding, whatever the caller left behind the end of a row.
        object.__setattr__(self, "tokens", self.tokens.masked_fill(~self.mask, PADDING))

    @classmethod
    def from_lists(
        cls, rows: Iterable[Sequence[int]], *, device: torch.device | str | None = None
    ) -> Batch:
        """Pad lists of token ids to one length.

        Args:
            rows: Token ids, a list for each sequence.
            device: Where the tensors go; None: the CPU.

        Returns:
            The batch.

        >>> Batch.from_lists([[1, 2], [3]]).lengths.tolist()
        [2, 1]

        Reference: docs/process.md
        """
        lists = [list(row) for row in rows]
        for number, row in enumerate(lists):
            for position, token in enumerate(row):
                if type(token) is not int or token < 0:
                    raise ValueError(
                        f"row {number}, position {position}: "
                        f"a token must be an integer ≥ 0, got {token!r}"
                    )
        width = max(map(len, lists), default=0)
        tokens = [row + [PADDING] * (width - len(row)) for row in lists]
        return cls(
            torch.tensor(tokens, dtype=torch.int64, device=device).reshape(len(lists), width),
            torch.tensor([len(row) for row in lists], dtype=torch.int64, device=device),
        )

    def to_lists(self) -> list[list[int]]:
        """The sequences as lists of token ids, without padding."""
        rows = zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        return [row[:length] for row, length in rows]

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        return Batch(self.tokens.to(device), self.lengths.to(device))

    def __len__(self) -> int:
        return self.tokens.shape[0]

    @property
    def width(self) -> int:
        """The padded length."""
        return self.tokens.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the tokens are."""
        return self.tokens.device

    @property
    def mask(self) -> Bool[Tensor, "batch length"]:
        """True where there is a token."""
        positions = torch.arange(self.width, device=self.tokens.device)
        return positions < self.lengths[:, None]

    def equals(self, other: Batch) -> bool:
        """Whether both hold the same sequences, however wide their padding."""
        if not torch.equal(self.lengths, other.lengths):
            return False
        width = min(self.width, other.width)
        return torch.equal(self.tokens[:, :width], other.tokens[:, :width])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Batch) and self.equals(other)

    __hash__ = None  # type: ignore[assignment]

    def rows(self, index: Int[Tensor, " rows"]) -> Batch:
        """The chosen rows, at the same width."""
        return Batch(self.tokens[index], self.lengths[index])

    def widened(self, width: int) -> Batch:
        """The same sequences padded to at least this width."""
        extra = max(0, width - self.width)
        return Batch(torch.nn.functional.pad(self.tokens, (0, extra), value=PADDING), self.lengths)

    def trimmed(self) -> Batch:
        """The same sequences with no column of padding alone."""
        width = int(self.lengths.max()) if len(self) else 0
        return Batch(self.tokens[:, :width], self.lengths)

    def without(self, token: int) -> Batch:
        """The sequences with every occurrence of one token taken out."""
        kept = self.mask & (self.tokens != token)
        return Batch(pack(self.tokens, kept, fill=PADDING), kept.sum(dim=1)).trimmed()


def pack(
    values: Int[Tensor, "batch length"], kept: Bool[Tensor, "batch length"], *, fill: int
) -> Int[Tensor, "batch length"]:
    """Move the kept entries of each row to its front, in order, and fill the rest."""
    # A stable sort of "is dropped" keeps the order of what stays.
    order = torch.argsort((~kept).to(torch.uint8), dim=1, stable=True)
    packed = torch.gather(values.masked_fill(~kept, fill), 1, order)
    return packed


class Spread(NamedTuple):
    """Tokens laid out with gaps between them that are still to be filled."""

    tokens: Int[Tensor, "batch width"]
    lengths: Int[Tensor, " batch"]
    source: Int[Tensor, "batch width"]
    """For each place the position of the token that went there, −1 in the gaps."""


def spread(
    tokens: Int[Tensor, "batch length"],
    emitted: Bool[Tensor, "batch length"],
    gaps: Int[Tensor, "batch slots"],
) -> Spread:
    """Leave gaps[0] empty places, then each emitted token followed by its gap, and nothing else."""
    room = torch.where(emitted, 1 + gaps[:, 1:], 0)
    ends = gaps[:, :1] + room.cumsum(dim=1)
    lengths = torch.cat([gaps[:, :1], ends], dim=1)[:, -1]
    width = int(lengths.max()) if len(lengths) else 0
    # Tokens that leave nothing are sent to a column of their own, which is then cut off.
    target = torch.where(emitted, ends - room, width)
    positions = torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape)
    source = torch.full((len(tokens), width + 1), -1, device=tokens.device)
    source = source.scatter(1, target, positions)[:, :width]
    placed = torch.full((len(tokens), width + 1), PADDING, device=tokens.device)
    placed = placed.scatter(1, target, tokens)[:, :width]
    return Spread(placed, lengths, source)
