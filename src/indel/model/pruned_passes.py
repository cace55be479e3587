"""The passes of `edit_posterior` in C, over the contexts that matter for each sequence.

Of 100,000 contexts next to all weight lies on a few hundred at each token of x_t. The others are
taken for shorter contexts, so time does not grow with the number of contexts.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.model.automata import Automaton
from indel.native import borrowed, for_each_block, library_for

_SOURCE = Path(__file__).with_name("pruned_passes.c")
LEAST = 1e-5
"""A context with a smaller share of the weight is taken for the one without its oldest token."""
MOST = 512
"""Not many more contexts are followed at each token, the likeliest ones."""
_CONTEXTS_PER_USUAL = 256
"""With fewer contexts for each state of the long run, all of them are as fast in large batches."""


class _Model(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("states", "tokens")),
        *((name, ctypes.c_void_p) for name in ("start", "transition")),
        *((name, ctypes.c_void_p) for name in ("rest", "common", "end", "lasting", "ends")),
        *((name, ctypes.c_void_p) for name in ("last", "shorter")),
        ("always", ctypes.c_void_p),
        ("usual_states", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("usual_state", "usual")),
        *((name, ctypes.c_float) for name in ("survival", "least")),
        ("most", ctypes.c_int64),
    )


class _Channel(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("length", "remembered", "deleting")),
        *((name, ctypes.c_void_p) for name in ("kept", "pair", "insert", "erased")),
        ("stop", ctypes.c_float),
    )


def worth_it(model: Automaton) -> bool:
    """Whether there are so many contexts, and so few that must be followed always, that it pays."""
    return len(model.end) >= _CONTEXTS_PER_USUAL * int((model.stationary > 0).sum())


def available(device: torch.device) -> bool:
    """Whether the compiled passes can be had for tensors on this device."""
    return _library(device) is not None


def pruned_passes(
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
    Float[Tensor, "numbers batch"],
]:
    """What both passes find; the arguments are those of the channel q(x_t | x_0)."""
    library = _library(kept.device)
    assert library is not None
    width, symbols, rows = kept.shape
    kinds = remembered + 2 if deleting else 1
    number = remembered if deleting else 0
    key = ("pruned", number, LEAST, MOST)
    if key not in model.kept:
        model.kept[key] = _model(model, lasting, symbols - 1, number)
    counts, _ = model.kept[key]
    given = [each.movedim(-1, 0).contiguous() for each in (kept, pair, insert, delete)]
    # One place more than there are tokens: what would follow the last one.
    sources = torch.zeros(rows, width + 1, symbols - 1, kinds)
    same, ended = torch.zeros(rows, width + 1), torch.zeros(rows, kinds)
    sizes, stops = lengths.tolist(), stop.tolist()

    def do(row: int) -> None:
        pointers = (each[row].data_ptr() for each in given)
        channel = _Channel(sizes[row], remembered, int(deleting), *pointers, stops[row])
        both = ctypes.byref(counts), ctypes.byref(channel)
        with borrowed(library.workspace(*both)) as room:
            into = (room, *(each[row] for each in (sources, same, ended)))
            library.pruned_passes(*both, *(ctypes.c_void_p(each.data_ptr()) for each in into))

    for_each_block(do, rows)
    return sources[:, :width].permute(1, 2, 3, 0), same[:, :width].T, ended.T


def _model(
    model: Automaton, lasting: Float[Tensor, " states"], tokens: int, remembered: int
) -> tuple[_Model, list[Tensor]]:
    """The counts as the compiled code reads them, and the memory that it points to."""
    ends = [model.end]
    for _ in range(remembered):
        ends.append(model.backward(ends[-1][:, None])[:, 0])
    usual = torch.nonzero(model.stationary)[:, 0]
    always = model.stationary > 0
    always[: tokens + 1] = True
    start, target = model.transposed.crow_indices(), model.transposed.col_indices()
    prob = model.transposed.values().view(torch.int32)
    transitions = torch.stack([target, model.last[target.long()].int(), prob], dim=1)
    first = [start, transitions, model.rest, model.common]
    first += [model.end, lasting, torch.stack(ends), model.last.int(), model.shorter.int()]
    first += [always.byte()]
    second = [usual.int(), model.stationary[usual]]
    first, second = ([each.contiguous() for each in some] for some in (first, second))
    counts = _Model(
        len(model.end),
        tokens,
        *(each.data_ptr() for each in first),
        len(usual),
        *(each.data_ptr() for each in second),
        model.survival,
        LEAST,
        MOST,
    )
    return counts, first + second


def _library(device: torch.device) -> ctypes.CDLL | None:
    library = library_for(device, _SOURCE)
    if library is not None:
        library.pruned_passes.restype = None
        library.workspace.argtypes = [ctypes.c_void_p] * 2
        library.workspace.restype = ctypes.c_int64
    return library
