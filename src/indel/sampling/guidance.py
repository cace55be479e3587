"""Guidance without a classifier: how much more the model is to follow a source than it would.

A model that was trained with sources, some of them emptied (`training.drop_source`), knows
p̃(edits | x_t, source) and p̃(edits | x_t) without one. Both heads, and the numbers of DELs at T, are
drawn from

    p̃(a) ∝ p̃(a | x_t) (p̃(a | x_t, source) / p̃(a | x_t))^w,

w = 1 being the model itself and w = 0 the model without the source (Ho and Salimans 2022). Since
the second head and the start are guided too, so are the lengths.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from indel.model.denoiser import Denoiser, DenoiserOutput
from indel.sampling.conditioning import Held
from indel.sampling.generation import predict
from indel.sampling.given_tokens import start_laws, takes_as_given
from indel.sampling.patterns import Gap, Pattern

_AFTER_ONE = Pattern.of([[0], Gap()])


def check_guidance(denoiser: Denoiser, pattern: Pattern, strength: float) -> None:
    """Refuse guidance by what the model has not learned to follow and to do without."""
    if not 0.0 <= strength < float("inf"):
        raise ValueError(f"guidance must be a number ≥ 0, got {strength}")
    if strength == 1.0:
        return
    if not denoiser.config.drops_source:
        raise ValueError(
            "guidance needs a model trained with sources, some of them dropped: "
            "training.frozen = 'source' and training.drop_source"
        )
    if not takes_as_given(denoiser, pattern):
        raise ValueError(
            "guidance needs a source: what is frozen must end with the tab, with one gap behind it"
        )


def guided(
    denoiser: Denoiser, output: DenoiserOutput, seen: Held, t: int, strength: float
) -> DenoiserOutput:
    """Both heads with the source counted so much; `output` is what the network says with it."""
    if strength == 1.0:
        return output
    # The source stands first and is equally long in all rows; its last token is the separator.
    dropped = int(seen.frozen[0].sum()) - 1 if len(seen.frozen) else 0
    last = seen.frozen.cumsum(dim=1) > dropped
    rest = seen.kept(seen.x.mask & last)
    # All that follows the separator is one gap.
    free = predict(denoiser, rest.x, t, rest.frozen, rest.open_slots(_AFTER_ONE))
    return DenoiserOutput(
        *(
            torch.cat([given[:, :dropped], _mixed(given[:, dropped:], plain, strength)], dim=1)
            for given, plain in zip(output, free, strict=True)
        )
    )


def guided_start_laws(
    denoiser: Denoiser, pattern: Pattern, most: int, strength: float
) -> Float[Tensor, "places {most}+1"]:
    """`start_laws` with the source counted so much."""
    given = start_laws(denoiser, pattern, most)
    if strength == 1.0:
        return given
    without = replace(pattern, tokens=pattern.tokens[-1:], gaps=pattern.gaps[-2:])
    plain = start_laws(denoiser, without, most)[-1:]
    mixed = _mixed(given[-1:].log(), plain.log(), strength)
    return torch.cat([given[:-1], mixed.softmax(dim=-1)])


def _mixed(
    given: Float[Tensor, "*shape values"], plain: Float[Tensor, "*shape values"], strength: float
) -> Float[Tensor, "*shape values"]:
    """plain + strength · (given − plain), of logits that each are normalised."""
    given, plain = (logits.log_softmax(dim=-1) for logits in (given, plain))
    mixed = plain + strength * (given - plain)
    # What one of the two rules out is ruled out.
    return torch.where((given == -torch.inf) | (plain == -torch.inf), -torch.inf, mixed)
