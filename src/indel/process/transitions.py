"""What a token becomes in one step: row-stochastic matrices A over the regular tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from indel.process import checks
from indel.process.measures import Measure


class Transition(ABC):
    """A row-stochastic matrix A, A[x, y] = P(x becomes y)."""

    vocab_size: int

    @abstractmethod
    def then(self, other: Transition) -> Transition:
        """First this, then the other: the matrix product A·B."""

    @abstractmethod
    def apply(self, prob: Float[Tensor, "*rows tokens"]) -> Float[Tensor, "*rows tokens"]:
        """The distribution after the step, pᵀA."""

    @abstractmethod
    def likelihood(self, token: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows tokens"]:
        """How likely each value makes an observed one: entry x is A[x, token]."""

    @abstractmethod
    def push(self, measure: Measure) -> Measure:
        """`apply` for weights that are kept as a mixture."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, exact; `transition_from_dict` reads it."""

    @abstractmethod
    def _build(self) -> Float[Tensor, "tokens tokens"]:
        """The dense matrix, whose size has been checked."""

    def matrix(self) -> Float[Tensor, "tokens tokens"]:
        """The dense matrix A in float64; refused for large vocabularies."""
        checks.dense_size(f"{type(self).__name__}.matrix()", self.vocab_size)
        return self._build()

    def _check_other(self, other: Transition) -> None:
        if other.vocab_size != self.vocab_size:
            raise ValueError(
                f"transitions over {self.vocab_size} and {other.vocab_size} tokens do not compose"
            )

    def _check_prob(self, prob: Tensor) -> None:
        if prob.shape[-1:] != (self.vocab_size,):
            raise ValueError(
                f"prob must have {self.vocab_size} entries on its last axis, "
                f"got shape {tuple(prob.shape)}"
            )


class MixtureTransition(Transition):
    """Keep the token, or draw a new one whatever it was: A = keep·I + 1·vᵀ.

    Products stay of this form: (k₁I + 1v₁ᵀ)(k₂I + 1v₂ᵀ) = k₁k₂I + 1(k₂v₁ + |v₁|v₂ + k₁v₂)ᵀ.
    """

    def __init__(self, prob_keep: float, drawn: Measure) -> None:
        self.prob_keep = checks.probability("prob_keep", prob_keep)
        self.drawn = drawn
        self.vocab_size = checks.vocab_size(drawn.vocab_size)
        if abs(self.prob_keep + drawn.mass - 1.0) > 1e-6:
            raise ValueError(
                f"prob_keep and the mass of drawn must sum to 1, got {self.prob_keep + drawn.mass}"
            )

    def then(self, other: Transition) -> Transition:
        self._check_other(other)
        if not isinstance(other, MixtureTransition):
            return MatrixTransition(self.matrix() @ other.matrix())
        # other.push(drawn) redraws what was drawn; kept tokens are drawn by the other alone.
        drawn = other.push(self.drawn) + other.drawn * self.prob_keep
        return MixtureTransition(self.prob_keep * other.prob_keep, drawn)

    def apply(self, prob: Float[Tensor, "*rows tokens"]) -> Float[Tensor, "*rows tokens"]:
        self._check_prob(prob)
        drawn = self.drawn.dense().to(prob)
        return self.prob_keep * prob + prob.sum(dim=-1, keepdim=True) * drawn

    def likelihood(self, token: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows tokens"]:
        checks.tokens("token", token, self.vocab_size)
        column = self.drawn.dense().to(token.device)[token]
        rows = column[..., None].expand(*column.shape, self.vocab_size).clone()
        kept = torch.full_like(rows[..., :1], self.prob_keep)
        return rows.scatter_add(-1, token[..., None], kept)

    def push(self, measure: Measure) -> Measure:
        return measure * self.prob_keep + self.drawn * measure.mass

    def to_dict(self) -> dict[str, Any]:
        return {"prob_keep": self.prob_keep, "drawn": self.drawn.to_dict()}

    def _build(self) -> Float[Tensor, "tokens tokens"]:
        kept = self.prob_keep * torch.eye(self.vocab_size, dtype=torch.float64)
        return kept + self.drawn.dense()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(vocab_size={self.vocab_size}, prob_keep={self.prob_keep})"


class IdentityTransition(MixtureTransition):
    """Every token stays: A = I."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__(1.0, Measure.zero(checks.vocab_size(vocab_size)))


class UniformTransition(MixtureTransition):
    """Multinomial diffusion: keep, or draw among all tokens alike (the same one included).

    A = keep·I + (1 − keep)·11ᵀ/K

    Args:
        vocab_size: The number K of tokens.
        prob_keep: The probability that a token is not drawn anew.

    >>> UniformTransition(2, prob_keep=0.5).matrix().tolist()
    [[0.75, 0.25], [0.25, 0.75]]

    Reference: Hoogeboom et al. 2021, multinomial diffusion
    """

    def __init__(self, vocab_size: int, prob_keep: float) -> None:
        size = checks.vocab_size(vocab_size)
        keep = checks.probability("prob_keep", prob_keep)
        super().__init__(keep, Measure.uniform(size, 1.0 - keep))


class AbsorbingTransition(MixtureTransition):
    """Masking: keep, or become the mask token.

    A = keep·I + (1 − keep)·1·e_maskᵀ

    Args:
        vocab_size: The number K of tokens.
        prob_keep: The probability that a token is not drawn anew.
        mask: The token that others become.

    >>> AbsorbingTransition(2, prob_keep=0.5, mask=1).matrix().tolist()
    [[0.5, 0.5], [0.0, 1.0]]

    Reference: Austin et al. 2021, D3PM
    """

    def __init__(self, vocab_size: int, prob_keep: float, mask: int) -> None:
        size = checks.vocab_size(vocab_size)
        keep = checks.probability("prob_keep", prob_keep)
        self.mask = checks.token("mask", mask, size)
        super().__init__(keep, Measure.point(size, mask, 1.0 - keep))


class MatrixTransition(Transition):
    """Any row-stochastic matrix.

    A[x, y] = P(x becomes y)

    Args:
        matrix: K × K probabilities; each row sums to 1.

    >>> flip = MatrixTransition(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> flip.then(flip).matrix().tolist()
    [[1.0, 0.0], [0.0, 1.0]]

    Reference: docs/process.md
    """

    def __init__(self, matrix: Float[Tensor, "tokens tokens"] | Sequence[Sequence[float]]) -> None:
        values = torch.as_tensor(matrix, dtype=torch.float64)
        if values.dim() != 2 or values.shape[0] != values.shape[1] or not len(values):
            raise ValueError(f"matrix must be square, got shape {tuple(values.shape)}")
        checks.dense_size(type(self).__name__, len(values))
        self.vocab_size = len(values)
        self._matrix = checks.distribution("matrix", values)

    def then(self, other: Transition) -> Transition:
        self._check_other(other)
        return MatrixTransition(self._matrix @ other.matrix())

    def apply(self, prob: Float[Tensor, "*rows tokens"]) -> Float[Tensor, "*rows tokens"]:
        self._check_prob(prob)
        return prob @ self._matrix.to(prob)

    def likelihood(self, token: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows tokens"]:
        checks.tokens("token", token, self.vocab_size)
        return self._matrix.T.to(token.device)[token]

    def push(self, measure: Measure) -> Measure:
        return Measure.given(measure.dense() @ self._matrix)

    def to_dict(self) -> dict[str, Any]:
        return {"matrix": self._matrix.tolist()}

    def _build(self) -> Float[Tensor, "tokens tokens"]:
        return self._matrix.clone()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(vocab_size={self.vocab_size})"


class GaussianTransition(MatrixTransition):
    """A discretised Gaussian on ordered tokens, each row normalised.

    A[x, y] ∝ exp(−(x − y)² / 2σ²), and 0 where |x − y| > band.

    Args:
        vocab_size: The number K of tokens.
        sigma: σ, in tokens.
        band: The largest distance that is possible; None: any.

    >>> GaussianTransition(2, sigma=1.0, band=0).matrix().tolist()
    [[1.0, 0.0], [0.0, 1.0]]

    Reference: Austin et al. 2021, D3PM
    """

    def __init__(self, vocab_size: int, sigma: float, band: int | None = None) -> None:
        size = checks.vocab_size(vocab_size)
        checks.dense_size("GaussianTransition", size)
        if not 0.0 < sigma < float("inf"):
            raise ValueError(f"sigma must be a positive number, got {sigma!r}")
        if band is not None and band < 0:
            raise ValueError(f"band must be at least 0, got {band!r}")
        position = torch.arange(size, dtype=torch.float64)
        distance = (position[:, None] - position).abs()
        logits = -0.5 * (distance / sigma) ** 2
        if band is not None:
            logits = logits.masked_fill(distance > band, -torch.inf)
        super().__init__(torch.softmax(logits, dim=-1))


class NeighborTransition(MatrixTransition):
    """Keep, or move to one of the token's neighbours, all alike; with none, stay.

    A[x, y] = (1 − keep) / #neighbours(x) for each neighbour y of x

    Args:
        vocab_size: The number K of tokens.
        neighbors: For each token those that it may become.
        prob_keep: The probability that a token with neighbours stays.

    >>> NeighborTransition(3, {0: [1]}, prob_keep=0.5).matrix()[0].tolist()
    [0.5, 0.5, 0.0]

    Reference: docs/process.md
    """

    def __init__(
        self, vocab_size: int, neighbors: Mapping[int, Sequence[int]], prob_keep: float
    ) -> None:
        size = checks.vocab_size(vocab_size)
        checks.dense_size("NeighborTransition", size)
        keep = checks.probability("prob_keep", prob_keep)
        matrix = torch.eye(size, dtype=torch.float64)
        for token, around in neighbors.items():
            checks.token("neighbors", token, size)
            others = sorted({checks.token(f"neighbors[{token}]", y, size) for y in around})
            if token in others:
                raise ValueError(f"neighbors[{token}] must not contain {token} itself")
            if others:
                matrix[token, token] = keep
                matrix[token, others] = (1.0 - keep) / len(others)
        super().__init__(matrix)

    @classmethod
    def qwerty(cls, characters: str, prob_keep: float) -> NeighborTransition:
        """Slips of the finger: letters next to each other on a QWERTY keyboard.

        Characters that are no letters have no neighbours and stay as they are.

        Args:
            characters: The vocabulary, a token each.
            prob_keep: The probability that a letter with neighbours stays.

        Returns:
            The transition.

        >>> NeighborTransition.qwerty("as ", prob_keep=0.5).matrix()[0].tolist()
        [0.5, 0.5, 0.0]

        Reference: docs/process.md
        """
        twice = next((c for c in characters if characters.count(c) > 1), None)
        if twice is not None:
            raise ValueError(f"characters must differ from each other, got {twice!r} twice")
        index = {character: token for token, character in enumerate(characters)}
        graph = {
            index[character]: [index[other] for other in around if other in index]
            for character, around in qwerty_neighbors().items()
            if character in index
        }
        return cls(len(characters), graph, prob_keep)


def transition_from_dict(record: Mapping[str, Any]) -> Transition:
    """The transition written by `Transition.to_dict`."""
    if "matrix" in record:
        return MatrixTransition(record["matrix"])
    return MixtureTransition(record["prob_keep"], Measure.from_dict(record["drawn"]))


def qwerty_neighbors() -> dict[str, str]:
    """For each letter those that touch its key on a QWERTY keyboard.

    Returns:
        Letters by letter.

    >>> qwerty_neighbors()["s"]
    'adewxz'

    Reference: docs/process.md
    """
    # Each row of keys is shifted right against the one above, by these parts of a key.
    rows = (("qwertyuiop", 0.0), ("asdfghjkl", 0.25), ("zxcvbnm", 0.75))
    place = {
        letter: (column + shift, row)
        for row, (letters, shift) in enumerate(rows)
        for column, letter in enumerate(letters)
    }
    return {
        letter: "".join(
            sorted(
                other
                for other, (column, row) in place.items()
                if other != letter
                and abs(row - place[letter][1]) <= 1
                # Keys are one unit wide: closer than a key means that their edges meet.
                and abs(column - place[letter][0]) <= (1.0 if row == place[letter][1] else 0.99)
            )
        )
        for letter in place
    }
