"""What tells the network which tokens are frozen, and that there is no x_T yet."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

_FROZEN, _START = 0, 1


class FrozenMarks(nn.Module):
    """One embedding that is added to frozen tokens, and one for the question of the lengths at T.

    They start at zero: a network that takes over other weights starts out as it was.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, width))

    def forward(
        self, frozen: Bool[Tensor, "batch length"], *, start: bool
    ) -> Float[Tensor, "batch length+1 width"]:
        """What is added to the tokens and to EOS, which is never frozen."""
        marked = torch.nn.functional.pad(frozen, (0, 1))[..., None] * self.weight[_FROZEN]
        return marked + self.weight[_START] if start else marked
