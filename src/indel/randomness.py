"""Where samplers take their noise from: a generator for the batch, or one seed per row."""

from __future__ import annotations

import hashlib

import torch
from jaxtyping import Float, Int
from torch import Tensor

# SplitMix64 (Steele, Lea, Flood 2014), as signed 64-bit integers: torch has no unsigned shifts.
_INCREMENT = 0x9E3779B97F4A7C15 - (1 << 64)
_FACTOR_1 = 0xBF58476D1CE4E5B9 - (1 << 64)
_FACTOR_2 = 0x94D049BB133111EB - (1 << 64)


class RowSeeds:
    """Noise that belongs to a row: entry k of call c is a pure function of (seed, c, k).

    So a sequence gets the same noise alone, in any batch, and with any padding.

    >>> alone, together = RowSeeds(torch.tensor([7])), RowSeeds(torch.tensor([5, 7]))
    >>> bool((alone.uniform(3) == together.uniform(9)[1:, :3]).all())
    True
    """

    def __init__(self, seeds: Int[Tensor, " batch"], *, calls: int = 0) -> None:
        if seeds.dim() != 1 or seeds.dtype != torch.int64:
            raise ValueError(
                f"seeds must be an int64 tensor with one entry a row, "
                f"got {seeds.dtype} of shape {tuple(seeds.shape)}"
            )
        self.seeds = seeds
        self._calls = calls

    def __len__(self) -> int:
        return len(self.seeds)

    def rows(self, index: Int[Tensor, " rows"]) -> RowSeeds:
        """The stream of the chosen rows, at the same point."""
        return RowSeeds(self.seeds[index], calls=self._calls)

    def repeated(self, copies: int) -> RowSeeds:
        """Fresh streams for several copies of each row, the copies of a row side by side.

        Copy i of a row does not depend on how many there are.
        """
        numbers = torch.arange(copies, device=self.seeds.device)
        return RowSeeds((_mix(self._next_keys())[:, None] + numbers).flatten())

    def split(self) -> RowSeeds:
        """A fresh stream for one operation, so that it may draw as often as it needs."""
        return RowSeeds(_mix(self._next_keys()))

    def uniform(
        self, width: int, dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "batch {width}"]:
        """Numbers in [0, 1)."""
        if dtype not in (torch.float32, torch.float64):
            raise ValueError(f"noise must be float32 or float64, got {dtype}")
        counters = torch.arange(1, width + 1, device=self.seeds.device) * _INCREMENT
        bits = _mix(_mix(self._next_keys())[:, None] + counters)
        # As many leading bits as the type holds exactly, so that 1 is never reached.
        digits = 53 if dtype == torch.float64 else 24
        return _shift_right(bits, 64 - digits).to(dtype) * 2.0**-digits

    def _next_keys(self) -> Int[Tensor, " batch"]:
        self._calls += 1
        return _mix(self.seeds) + torch.tensor(self._calls, device=self.seeds.device) * _INCREMENT


def seeds_for(seed: int, purpose: str, start: int, count: int) -> Int[Tensor, " {count}"]:
    """Seeds of rows start … start+count−1 for `RowSeeds`, which scrambles them.

    Consecutive numbers from an origin that a hash spreads over all 64 bits: for other seeds and
    purposes the ranges are disjoint, but for a chance of about 2⁻⁶⁴ times their length.
    """
    digest = hashlib.sha256(f"indel.data {seed} {purpose}".encode()).digest()
    origin = int.from_bytes(digest[:8], "little", signed=True)
    return torch.arange(start, start + count) + origin  # wraps around


Randomness = torch.Generator | RowSeeds


def uniform(
    generator: Randomness, rows: int, width: int, *, dtype: torch.dtype
) -> Float[Tensor, "{rows} {width}"]:
    """Numbers in [0, 1) for each row, on the generator's device."""
    if isinstance(generator, RowSeeds):
        if len(generator) != rows:
            raise ValueError(f"generator has {len(generator)} row seeds for {rows} sequences")
        return generator.uniform(width, dtype)
    return torch.rand(rows, width, generator=generator, device=generator.device, dtype=dtype)


def split(generator: Randomness) -> Randomness:
    """The stream for one operation that draws an unknown number of times."""
    return generator.split() if isinstance(generator, RowSeeds) else generator


def select(generator: Randomness, index: Int[Tensor, " rows"]) -> Randomness:
    """The stream for some of the rows."""
    return generator.rows(index) if isinstance(generator, RowSeeds) else generator


def index_at(
    cumulative: Float[Tensor, "*rows entries"], noise: Float[Tensor, "*shape"]
) -> Int[Tensor, "*shape"]:
    """The entry at which a running sum of weights passes noise · total; never one of weight 0.

    Rows broadcast against the noise.
    """
    total = cumulative[..., -1]
    # Rounding may lift the product to the total itself, past the last entry that has weight.
    target = torch.minimum(noise * total, torch.nextafter(total, torch.zeros_like(total)))
    if cumulative.dim() == 1:
        # One row for all noise: a copy of it for each number would take |noise| · K.
        return torch.searchsorted(cumulative, target, right=True).clamp_max(len(cumulative) - 1)
    shape = (*target.shape, cumulative.shape[-1])
    found = torch.searchsorted(
        cumulative.expand(shape).contiguous(), target[..., None].contiguous(), right=True
    )
    return found[..., 0].clamp_max(cumulative.shape[-1] - 1)


def _mix(values: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    values = (values ^ _shift_right(values, 30)) * _FACTOR_1
    values = (values ^ _shift_right(values, 27)) * _FACTOR_2
    return values ^ _shift_right(values, 31)


def _shift_right(values: Int[Tensor, "*shape"], bits: int) -> Int[Tensor, "*shape"]:
    """Logical shift: torch's own keeps the sign."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)
