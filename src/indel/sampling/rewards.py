"""A reward that samples are steered by: any function of texts, checked when it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

import torch
from jaxtyping import Float
from torch import Tensor

Reward = Callable[[list[str]], Sequence[float]]
"""Takes texts and gives each a number: more is better, −∞ forbids the text."""

# The log-weight of a forbidden prediction before the end, where it may still change.
_FORBIDDEN = -30.0


@dataclass(frozen=True)
class Steering:
    """The tilted law p_θ(x_0) exp(strength · reward(x_0)) / Z."""

    reward: Reward
    strength: float = 1.0

    def __post_init__(self) -> None:
        if not isfinite(self.strength):
            raise ValueError(f"strength must be a finite number, got {self.strength!r}")

    def rewards(self, texts: list[str]) -> Float[Tensor, " texts"]:
        """The reward of each text in float64; an answer that is none is an error."""
        try:
            given = self.reward(list(texts))
            values = [float(value) for value in given]
        except Exception as error:  # whatever a function of the user's raises
            raise ValueError(
                f"the reward failed on {len(texts)} texts, the first of them {texts[0][:40]!r}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if len(values) != len(texts):
            raise ValueError(
                f"the reward must give one number per text, got {len(values)} for {len(texts)}"
            )
        for text, value in zip(texts, values, strict=True):
            if value != value or value == float("inf"):
                raise ValueError(
                    f"a reward must be a number below infinity, got {value} for {text[:40]!r}"
                )
        return torch.tensor(values, dtype=torch.float64)

    def log_weights(self, texts: list[str]) -> Float[Tensor, " texts"]:
        """strength · reward."""
        if self.strength == 0.0:
            return torch.zeros(len(texts), dtype=torch.float64)
        return self.strength * self.rewards(texts)

    def log_twist(self, texts: list[str], t: int, last: int) -> Float[Tensor, " texts"]:
        """What predictions of x_0 made at time t count for: less the more noise there is.

        (1 − t/T) · strength · reward(predicted x_0)

        Particles divide by it in the next step, so it changes where they look and not their law.
        """
        return (1.0 - t / last) * self.log_weights(texts).clamp_min(_FORBIDDEN)
