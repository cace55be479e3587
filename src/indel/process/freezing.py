"""Which tokens of the data are frozen: random spans, or all of a pair up to its separator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from indel import checks
from indel.batch import PADDING, Batch, pack
from indel.process.gaps import Gaps
from indel.randomness import Randomness, uniform
from indel.vocabularies import Vocabulary

FrozenKind = Literal["spans", "source"]
SEPARATOR = "\t"
"""What stands between source and target of a pair, and belongs to the source."""
MOST_CUTS = 4


class Divided(NamedTuple):
    """Gaps, and what the data has in them."""

    gaps: Gaps
    contents: Batch


@dataclass(frozen=True)
class Freezing:
    """A random choice of what is frozen, of some of the sequences.

    `spans`: one to four cuts, each anywhere in the sequence; the parts between them are frozen and
    free in turn, which is first by a coin. Free parts are gaps, empty ones too. So a prompt, a
    suffix and several gaps all occur. `source`: everything up to the first separator is frozen.
    """

    kind: FrozenKind
    share: float = 1.0
    """Of the sequences; of the others nothing is frozen."""
    separator: int | None = None
    """The token that ends a source."""
    drop: float = 0.0
    """The share of the sources that are emptied: only the separator is left of them."""

    def __post_init__(self) -> None:
        for name in ("share", "drop"):
            if getattr(self, name) != 1.0:
                checks.number(name, getattr(self, name), least=0.0, below=1.0)
        if (self.kind == "source") != (self.separator is not None):
            raise ValueError(
                f"a separator belongs to 'source' alone: got {self.separator} with {self.kind!r}"
            )

    @classmethod
    def of(
        cls, kind: FrozenKind, vocabulary: Vocabulary, *, share: float = 1.0, drop: float = 0.0
    ) -> Freezing:
        """For the sequences of a vocabulary, whose tab is the separator."""
        if kind == "spans":
            return cls(kind, share, None, drop)
        try:
            (separator,) = vocabulary.encode(SEPARATOR)
        except (ValueError, TypeError):
            raise ValueError(
                "frozen = 'source' needs a vocabulary in which the tab, which stands between "
                f"source and target, is one token; got {vocabulary!r:.80}"
            ) from None
        return cls(kind, share, separator, drop)

    def __call__(self, x_0: Batch, *, generator: Randomness) -> Divided:
        """Draw what is frozen; a row's draw is a function of its own noise and tokens."""
        noise = uniform(generator, len(x_0), 3 + MOST_CUTS, dtype=torch.float32)
        chosen = noise[:, 0] < self.share
        if self.separator is None:
            frozen, also_open = _spans(x_0, noise[:, 1:])
        else:
            dropped = chosen & (noise[:, 1] < self.drop)
            x_0, frozen, also_open = _sources(x_0, self.separator, dropped)
        frozen, also_open = frozen & chosen[:, None], also_open & chosen[:, None]
        # Of what is not frozen at all the whole is a gap.
        also_open[:, 0] |= ~frozen.any(dim=1)
        return Divided(*Gaps.split(x_0, frozen, also_open))


def _spans(
    x_0: Batch, noise: Float[Tensor, "batch numbers"]
) -> tuple[Bool[Tensor, "batch length"], Bool[Tensor, "batch length+1"]]:
    """Which tokens are frozen, and before how many frozen ones each free part lies."""
    lengths = x_0.lengths[:, None]
    number = 1 + (noise[:, :1] * MOST_CUTS).long()
    frozen_first = noise[:, 1:2] < 0.5
    # In float32 the product may round up to one more than the length.
    cuts = torch.minimum((noise[:, 2:] * (lengths + 1)).long(), lengths)
    # A cut that is not made lies behind the end.
    made = torch.arange(MOST_CUTS, device=x_0.device) < number
    cuts = cuts.masked_fill(~made, x_0.width + 1).sort(dim=1).values
    positions = torch.arange(x_0.width, device=x_0.device)
    part = (cuts[:, None, :] <= positions[:, None]).sum(dim=2)
    frozen = x_0.mask & ((part % 2 == 0) == frozen_first)
    before = torch.nn.functional.pad(frozen.cumsum(dim=1), (1, 0))
    starts = torch.nn.functional.pad(cuts, (1, 0))
    parts = torch.arange(MOST_CUTS + 1, device=x_0.device)
    free = ((parts % 2 == 0) != frozen_first) & (starts <= x_0.width)
    places = before.gather(1, starts.clamp_max(x_0.width))
    also_open = torch.zeros_like(before, dtype=torch.int64).scatter_add(1, places, free.long()) > 0
    return frozen, also_open


def _sources(
    x_0: Batch, separator: int, dropped: Bool[Tensor, " batch"]
) -> tuple[Batch, Bool[Tensor, "batch length"], Bool[Tensor, "batch length+1"]]:
    """Pairs, some with an empty source; all up to the separator is frozen, a gap comes after it."""
    ends = (x_0.tokens == separator).cumsum(dim=1)
    missing = ends.sum(dim=1) == 0
    if bool(missing.any()):
        row = int(missing.nonzero()[0])
        raise ValueError(
            f"row {row} has no separator (token {separator}) between source and target"
        )
    source = ends == 0
    frozen = x_0.mask & (source | ((ends == 1) & (x_0.tokens == separator)))
    kept = x_0.mask & ~(dropped[:, None] & source)
    x = Batch(pack(x_0.tokens, kept, fill=PADDING), kept.sum(dim=1))
    frozen = pack(frozen.long(), kept, fill=0).bool()
    places = torch.arange(x.width + 1, device=x.device)
    return x, frozen, places == frozen.sum(dim=1)[:, None]
