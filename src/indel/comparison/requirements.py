"""What the edit models ask of their options and data."""

from __future__ import annotations

from jaxtyping import Int
from torch import Tensor


def probability(name: str, value: float) -> None:
    """A number between 0 and 1.

    >>> probability("blank", 1.5)
    Traceback (most recent call last):
        ...
    ValueError: blank must be a probability between 0 and 1, got 1.5
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be a probability between 0 and 1, got {value!r}")


def refuse_longer(lengths: Int[Tensor, " batch"], max_length: int) -> None:
    """Refuse sequences that the model was not built for."""
    if len(lengths) and int(lengths.max()) > max_length:
        raise ValueError(
            f"a sequence must have at most max_length = {max_length} tokens, "
            f"got {int(lengths.max())}"
        )
