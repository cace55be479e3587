"""C code of this package, compiled on this machine when it is first needed.

Where there is no C compiler, on other devices than CPUs, and with INDEL_NATIVE=0, torch does the
same. The code works on blocks of LANES sequences, which lie next to each other in memory.
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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.nn import functional

from indel.atomic_files import cache_folder
from indel.processor import instructions

SWITCH = "INDEL_NATIVE"
_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")
_SECONDS = 120
_FREE: deque[Tensor] = deque(maxlen=4)
"""Room that no call uses at the moment; deques may be shared by threads."""


def library_for(device: torch.device, source: Path) -> ctypes.CDLL | None:
    """The code of a source file for tensors on this device; None where torch must do."""
    if device.type != "cpu" or os.environ.get(SWITCH) == "0":
        return None
    return _library(source)


def in_blocks(values: Tensor, lanes: int) -> Tensor:
    """(…, batch) as (blocks, …, lanes), with zeros in lanes that no row has.

    Always a copy: a part of another tensor may begin where vectors cannot be read.
    """
    padded = functional.pad(values, (0, -values.shape[-1] % lanes))
    padded = torch.unflatten(padded, -1, (-1, lanes))
    return padded.movedim(-2, 0).clone(memory_format=torch.contiguous_format)


def joined(values: Tensor, rows: int) -> Tensor:
    """The opposite of `in_blocks`."""
    return values.movedim(0, -2).flatten(-2)[..., :rows]


def for_each_block(do: Callable[[int], None], blocks: int) -> None:
    """As many blocks at once as torch may use threads."""
    workers = min(blocks, torch.get_num_threads())
    if workers <= 1:
        for block in range(blocks):
            do(block)
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(do, range(blocks)))


@contextmanager
def borrowed(size: int) -> Iterator[UInt8[Tensor, " bytes"]]:
    """Room that is kept for the next call: to get it from the system takes as long as to use it."""
    try:
        room = _FREE.pop()
    except IndexError:
        room = torch.empty(0, dtype=torch.uint8)
    if len(room) < size:
        room = torch.empty(size, dtype=torch.uint8)
    yield room
    _FREE.append(room)


@cache
def _library(source: Path) -> ctypes.CDLL | None:
    """From the cache, or made now."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("clang")
    if compiler is None or not source.is_file():
        return None
    code = source.read_bytes()
    # Code for one processor does not run on all others that see the same cache.
    made_for = "\0".join((compiler, *_FLAGS, platform.machine(), instructions())).encode()
    name = f"{source.stem}-{hashlib.sha256(code + made_for).hexdigest()[:16]}.so"
    path = cache_folder() / "compiled" / name
    try:
        if not path.is_file():
            _compile(compiler, source, path)
        return ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError):
        return None


def _compile(compiler: str, source: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder, path.name)
        command = [compiler, *_FLAGS, str(source), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
        made.replace(path)
