"""Embeddings of a token together with its neighbors."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

# Odd and far from powers of two: codes that share a row have little in common.
_SPREAD = 1_000_003


class TrigramEmbedding(nn.Module):
    """E[(x_{i−1}, x_i, x_{i+1})], learned from zero; outside of the sequence stands EOS.

    A small network spends its first layers on which letters stand beside each other. A table says
    it at once, and costs no product of matrices. Where there are more groups of three than rows,
    several groups share a row.

    >>> table = TrigramEmbedding(vocab_size=5, eos=4, rows=125, width=2)
    >>> table.row(torch.tensor([[0, 1, 4]])).tolist()
    [[101, 9, 49]]
    """

    def __init__(self, vocab_size: int, eos: int, rows: int, width: int) -> None:
        super().__init__()
        self.vocab_size, self.eos = vocab_size, eos
        self.table = nn.Embedding(rows, width)
        nn.init.zeros_(self.table.weight)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length width"]:
        embedded: Tensor = self.table(self.row(tokens))
        return embedded

    def row(self, tokens: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
        """Where the embedding of each token between its neighbors stands."""
        size, rows = self.vocab_size, self.table.num_embeddings
        padded = functional.pad(tokens, (1, 1), value=self.eos)
        before, after = padded[:, :-2], padded[:, 2:]
        code = (before * size + tokens) * size + after
        return code if size**3 <= rows else torch.remainder(code * _SPREAD, rows)
