"""Bad input gets an error that names the argument, the value and what is allowed."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.batch import Batch
from indel.checks import integer
from indel.checks import probability as probability

# A K×K matrix of float64 with more rows than this is refused: 4096² · 8 bytes = 128 MB.
MAX_DENSE = 4096
# What rows of float32 probabilities may miss 1 by; they are normalised in float64.
_SUM_TOLERANCE = 1e-6


def distribution(name: str, values: Float[Tensor, "*rows tokens"]) -> Float[Tensor, "*rows tokens"]:
    """Float64 probabilities whose last axis sums to 1."""
    prob = torch.as_tensor(values, dtype=torch.float64, device="cpu")
    allowed = torch.isfinite(prob) & (prob >= 0)
    if not bool(allowed.all()):
        where = (~allowed).nonzero()[0].tolist()
        raise ValueError(f"{name}{where} must be a probability, got {prob[tuple(where)].item()}")
    sums = prob.sum(dim=-1)
    wrong = (sums - 1.0).abs() > _SUM_TOLERANCE
    if bool(wrong.any()):
        where = wrong.nonzero()[0].tolist()
        raise ValueError(f"{name}{where or ''} must sum to 1, got {sums[tuple(where)].item()}")
    # What is exact in float64 stays as it is, to the last digit.
    rounded = (sums - 1.0).abs() > 1e-12
    return torch.where(rounded[..., None], prob / sums[..., None], prob)


def vocab_size(value: int) -> int:
    """A number of regular tokens K ≥ 1."""
    return integer("vocab_size", value, least=1)


def dense_size(what: str, size: int) -> None:
    """Refuse a K×K matrix that would not fit."""
    if size > MAX_DENSE:
        raise ValueError(
            f"{what} would be a dense {size}×{size} matrix; dense matrices are limited to "
            f"{MAX_DENSE} tokens. Identity, uniform and absorbing transitions need none"
        )


def token(name: str, value: int, size: int) -> int:
    """A regular token."""
    if not 0 <= value < size:
        raise ValueError(f"{name} must be a token in 0…{size - 1}, got {value}")
    return value


def tokens(name: str, values: Int[Tensor, "*shape"], size: int) -> None:
    """Regular tokens."""
    wrong = (values < 0) | (values >= size)
    if bool(wrong.any()):
        raise ValueError(f"{name} must be a token in 0…{size - 1}, got {values[wrong][0].item()}")


def times(t: Int[Tensor, " batch"] | int, batch: Batch, *, first: int, last: int) -> Tensor:
    """One time a sequence; a single number serves for all."""
    if isinstance(t, int):
        t = torch.full((len(batch),), t, dtype=torch.int64, device=batch.device)
    if t.shape != (len(batch),) or t.dtype != torch.int64:
        raise ValueError(
            f"t must be an int64 tensor with one entry for each of the {len(batch)} sequences, "
            f"got {t.dtype} of shape {tuple(t.shape)}"
        )
    wrong = (t < first) | (t > last)
    if bool(wrong.any()):
        raise ValueError(f"t must lie in {first}…{last}, got {t[wrong][0].item()}")
    return t.to(batch.device)


def data(name: str, batch: Batch, size: int) -> None:
    """Sequences of regular tokens: x_0 holds no INS and no DEL."""
    _tokens(name, batch, size, f"0…{size - 1} (regular tokens; INS and DEL cannot be in the data)")


def noisy(name: str, batch: Batch, size: int) -> None:
    """Sequences of regular tokens, INS and DEL."""
    _tokens(name, batch, size + 2, f"0…{size - 1}, INS = {size} or DEL = {size + 1}")


def same_rows(**batches: Batch) -> None:
    """Batches that describe the same sequences."""
    counts = {name: len(batch) for name, batch in batches.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"these must hold equally many sequences, got {counts}")


def _tokens(name: str, batch: Batch, limit: int, allowed: str) -> None:
    wrong = batch.mask & ((batch.tokens < 0) | (batch.tokens >= limit))
    if bool(wrong.any()):
        row, position = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"{name}: token {batch.tokens[row, position].item()} at row {row}, "
            f"position {position} must be {allowed}"
        )
