"""The passes of `edit_posterior` in C, compiled on this machine when they are first needed.

`edit_passes.c` does the same sums several times as fast as products of sparse matrices. Where
there is no C compiler, on other devices than CPUs, and with INDEL_NATIVE=0, torch does them.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from indel.atomic_files import cache_folder
from indel.model.automata import Automaton
from indel.processor import instructions

SWITCH = "INDEL_NATIVE"
_SOURCE = Path(__file__).with_name("edit_passes.c")
_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")
_SECONDS = 120
_FREE: deque[Tensor] = deque(maxlen=4)
"""Room that no call uses at the moment; deques may be shared by threads."""


class Passed(NamedTuple):
    """What the two passes find."""

    sources: Float[Tensor, "length tokens numbers batch"]
    """The next token of x_0 is v after n deletions, agreeing with all that follows."""
    same: Float[Tensor, "length batch"]
    """x_0 stays where it is."""
    at_length: Float[Tensor, "states batch"]
    """A at the end of each sequence."""


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
    return device.type == "cpu" and os.environ.get(SWITCH) != "0" and _library() is not None


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
) -> Passed:
    """Both passes; the arguments are those of the channel q(x_t | x_0)."""
    library = _library()
    assert library is not None
    length, symbols, rows = kept.shape
    states, kinds = len(model.end), remembered + 2 if deleting else 1
    lanes = library.lanes()
    blocks = -(-rows // lanes)
    given = [_in_blocks(each, lanes) for each in (kept, pair, insert, delete, stop)]
    lengths = _in_blocks(lengths.int(), lanes)
    sources = torch.empty(blocks, length, symbols - 1, kinds, lanes)
    same = torch.empty(blocks, length, lanes)
    at_length = torch.empty(blocks, states, lanes)
    needed = lanes * library.workspace(states, length, remembered)
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
        with _borrowed(needed) as room:
            into = (room, *(each[block] for each in (sources, same, at_length)))
            addresses = (ctypes.c_void_p(each.data_ptr()) for each in into)
            library.edit_passes(ctypes.byref(counts), ctypes.byref(channel), *addresses)

    # As many blocks at once as torch may use threads.
    with ThreadPoolExecutor(max(1, min(blocks, torch.get_num_threads()))) as pool:
        list(pool.map(do, range(blocks)))
    return Passed(_joined(sources, rows), _joined(same, rows), _joined(at_length, rows))


@contextmanager
def _borrowed(numbers: int) -> Iterator[Float[Tensor, " numbers"]]:
    """Room that is kept for the next call: to get it from the system takes as long as to use it."""
    try:
        room = _FREE.pop()
    except IndexError:
        room = torch.empty(0)
    if len(room) < numbers:
        room = torch.empty(numbers)
    yield room
    _FREE.append(room)


def _in_blocks(values: Tensor, lanes: int) -> Tensor:
    """(…, batch) as (blocks, …, lanes), with zeros in lanes that no row has.

    Always a copy: a part of another tensor may begin where vectors cannot be read.
    """
    padded = functional.pad(values, (0, -values.shape[-1] % lanes))
    padded = torch.unflatten(padded, -1, (-1, lanes))
    return padded.movedim(-2, 0).clone(memory_format=torch.contiguous_format)


def _joined(values: Float[Tensor, "blocks *shape lanes"], rows: int) -> Tensor:
    """The opposite of `_in_blocks`."""
    return values.movedim(0, -2).flatten(-2)[..., :rows]


def _rows_of(matrix: Tensor) -> tuple[Tensor, Tensor]:
    return matrix.crow_indices(), matrix.col_indices()


@cache
def _library() -> ctypes.CDLL | None:
    """The compiled passes, from the cache or made now; None where that cannot be."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("clang")
    if compiler is None or not _SOURCE.is_file():
        return None
    code = _SOURCE.read_bytes()
    # Code for one processor does not run on all others that see the same cache.
    made_for = "\0".join((compiler, *_FLAGS, platform.machine(), instructions())).encode()
    name = f"edit-passes-{hashlib.sha256(code + made_for).hexdigest()[:16]}.so"
    path = cache_folder() / "compiled" / name
    try:
        if not path.is_file():
            _compile(compiler, path)
        library = ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError):
        return None
    library.edit_passes.restype = None
    library.workspace.argtypes = [ctypes.c_int64] * 3
    library.workspace.restype = ctypes.c_int64
    return library


def _compile(compiler: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder, path.name)
        command = [compiler, *_FLAGS, str(_SOURCE), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
        made.replace(path)
