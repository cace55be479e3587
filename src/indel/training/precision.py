"""Which devices are fast with sixteen bits."""

from __future__ import annotations

import torch


def has_bfloat16(device: torch.device) -> bool:
    """Whether products of bfloat16 are fast there: a processor may only imitate them."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        flags = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        return any(getattr(torch.cpu, flag, lambda: False)() for flag in flags)
    return False
