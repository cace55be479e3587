"""Where compiled code is kept, so that a resumed run starts at once."""

from __future__ import annotations

import os

from indel.atomic_files import cache_folder


def keep_compiled_code() -> None:
    """Let torch.compile keep its code in indel's cache folder, unless told another place.

    A run that is resumed then takes the same code, and so gets the same bits.
    """
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_folder(None) / "compiled"))
