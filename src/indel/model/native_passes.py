"""The passes of `edit_posterior` in C: several times as fast as products of sparse matrices."""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.model.automata import Automaton
from indel.native import borrowed, for_each_block, in_blocks, joined, library_for

_SOURCE = Path(__file__).with_name("edit_passes.c")


class _Model(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("states", "tokens")),
        *((n, ctypes.c_void_p) for n in ("in_start", "in_source", "out_start", "out_target")),
        *((name, ctypes.c_void_p) for name in ("in_prob", "out_prob")),
        *((n, ctypes.c_void_p) for n in ("rest", "common", "end", "stationary", "lasting", "last")),
        ("survival", ctypes.c_float),
    )


class _Channel(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("length", "remembered", "deleting")),
        *((n, ctypes.c_void_p) for n in ("kept", "pair", "insert", "erased", "stop", "lengths")),
    )


def available(device: torch.device) -> bool:
    """Whether the compiled passes can be had for tensors on this device."""
    return _library(device) is not None


def native_passes(
    model: Automaton,
    lasting: Float[Tensor, " states"],
    *,
    kept: Float[Tensor, "length symbols batch"],
    pair: Float[Tensor, "length batch"],
    insert: Float[Tensor, "length batch"],
    delete: Float[Tensor, "length+1 batch"],
    stop: Float[Tensor, " batch"],
    lengths: Int[Tensor, " batch"],
    remembered: int,
    deleting: bool,
) -> tuple[
    Float[Tensor, "length tokens numbers batch"],
    Float[Tensor, "length batch"],
    Float[Tensor, "states batch"],
]:
    """The sources, x_0 staying where it is, and A at the end of each sequence.

    The arguments are those of the channel q(x_t | x_0).
    """
    library = _library(kept.device)
    assert library is not None
    length, symbols, rows = kept.shape
    states, kinds = len(model.end), remembered + 2 if deleting else 1
    lanes = library.lanes()
    blocks = -(-rows // lanes)
    given = [in_blocks(each, lanes) for each in (kept, pair, insert, delete, stop)]
    lengths = in_blocks(lengths.int(), lanes)
    sources = torch.empty(blocks, length, symbols - 1, kinds, lanes)
    same = torch.empty(blocks, length, lanes)
    at_length = torch.empty(blocks, states, lanes)
    needed = 4 * lanes * library.workspace(states, length, remembered)
    arrays = [*_rows_of(model.frequent), *_rows_of(model.transposed)]
    arrays += [model.frequent.values(), model.transposed.values(), model.rest, model.common]
    arrays += [model.end, model.stationary, lasting, model.last.int()]
    whole = [each.contiguous() for each in arrays]
    counts = _Model(
        states, symbols - 1, *(each.data_ptr() for each in whole), ctypes.c_float(model.survival)
    )

    def do(block: int) -> None:
        pointers = (each[block].data_ptr() for each in (*given, lengths))
        channel = _Channel(length, remembered, int(deleting), *pointers)
        with borrowed(needed) as room:
            into = (room, *(each[block] for each in (sources, same, at_length)))
            addresses = (ctypes.c_void_p(each.data_ptr()) for each in into)
            library.edit_passes(ctypes.byref(counts), ctypes.byref(channel), *addresses)

    for_each_block(do, blocks)
    return joined(sources, rows), joined(same, rows), joined(at_length, rows)


def _rows_of(matrix: Tensor) -> tuple[Tensor, Tensor]:
    return matrix.crow_indices(), matrix.col_indices()


def _library(device: torch.device) -> ctypes.CDLL | None:
    library = library_for(device, _SOURCE)
    if library is not None:
        library.edit_passes.restype = None
        library.workspace.argtypes = [ctypes.c_int64] * 3
        library.workspace.restype = ctypes.c_int64
    return library
