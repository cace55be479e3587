"""What the processor can do, and what it only says that it can."""

from __future__ import annotations

import os
import platform
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_TILE_SHAPES = 0x1D
"""The leaf of CPUID that describes the tiles of AMX."""
_LIMIT = "ONEDNN_MAX_CPU_ISA"
_WITHOUT_TILES = "AVX512_CORE_BF16"
_ENOUGH = 1 << 16


@cache
def cpu_info() -> dict[str, str]:
    """What Linux says of the first processor; nothing elsewhere."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(_ENOUGH).partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def instructions() -> str:
    """What tells processors with other instructions apart."""
    info = cpu_info()
    return info.get("flags") or info.get("Features") or platform.processor()


def avoid_hidden_tiles(info: dict[str, str] | None = None) -> None:
    """Keep oneDNN from AMX on virtual machines that announce it but hide the shapes of its tiles.

    torch would die of an illegal instruction at the first product of bfloat16 there. It reads the
    limit when it computes its first product; one that is set already stays.
    """
    if _hides_tiles(cpu_info() if info is None else info):
        os.environ.setdefault(_LIMIT, _WITHOUT_TILES)


def has_bfloat16(device: torch.device) -> bool:
    """Whether products of bfloat16 are fast there: a processor may only imitate them."""
    import torch

    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu" and not _hides_tiles(cpu_info()):
        flags = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        return any(getattr(torch.cpu, flag, lambda: False)() for flag in flags)
    return False


def _hides_tiles(info: dict[str, str]) -> bool:
    level = info.get("cpuid level", "")
    announced = "amx_tile" in info.get("flags", "").split()
    return announced and level.isdigit() and int(level) < _TILE_SHAPES
