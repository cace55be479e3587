"""Three words that a small network learns in seconds, for the methods of the comparison."""

from __future__ import annotations

from typing import Any

import torch

from indel.batch import Batch
from indel.model.rotary import RotaryConfig

BACKBONE = RotaryConfig(width=32, num_layers=2, num_heads=2, head_width=16, feedforward_width=64)
WORDS = [[0, 1, 2, 3], [3, 3, 0], [1, 2, 1, 2, 1]]


def words(rows: int, generator: torch.Generator) -> Batch:
    """A batch of words, each as likely as the others."""
    return Batch.from_lists(
        WORDS[number] for number in torch.randint(3, (rows,), generator=generator).tolist()
    )


def trained(build: Any, options: dict[str, Any], *, steps: int, rows: int = 64) -> Any:
    """The method after some steps of Adam."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    method = build(4, BACKBONE, 6, options)
    optimizer = torch.optim.Adam(method.parameters(), 8e-3)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, total_iters=steps)
    for _ in range(steps):
        loss = method.loss(words(rows, generator), generator=generator).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()
    return method.eval()


def untrained(build: Any, options: dict[str, Any]) -> Any:
    """The method with its first weights, larger than they start, so that nothing is near 0."""
    torch.manual_seed(2)
    method = build(4, BACKBONE, 6, options)
    with torch.no_grad():
        for parameter in method.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    return method.eval()
