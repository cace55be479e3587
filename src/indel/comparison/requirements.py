"""What the edit models ask of their data."""

from __future__ import annotations

from jaxtyping import Int
from torch import Tensor


def refuse_longer(lengths: Int[Tensor, " batch"], max_length: int) -> None:
    """Refuse sequences that the model was not built for."""
    if len(lengths) and int(lengths.max()) > max_length:
        raise ValueError(
            f"a sequence must have at most max_length = {max_length} tokens, "
            f"got {int(lengths.max())}"
        )
