"""The forward processes that are compared, as schedules of `indel.process`.

With masks, the last regular token is MASK, which the data does not have. x_T is nothing but DELs in
each of them: it says how many tokens there are, and stands for "all are masked" or "all are noise".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from indel import checks
from indel.process import (
    AbsorbingTransition,
    GaussianTransition,
    IdentityTransition,
    Schedule,
    Step,
)


class Forward(NamedTuple):
    """A forward process over the tokens of the data, and over MASK where it has one."""

    schedule: Schedule
    mask: int | None
    """The token MASK; None: there is none."""


def in_place_uniform(size: int, steps: int, rate: float) -> Forward:
    """Multinomial diffusion: tokens are drawn anew, uniformly. The paper's in-place baseline.

    Hoogeboom et al. 2021
    """
    del rate
    return Forward(Schedule.paper(size, steps, 0.0), None)


def in_place_mask(size: int, steps: int, rate: float) -> Forward:
    """Absorbing diffusion: after step t a share t/T of the tokens is masked; x_T is all of them.

    Austin et al. 2021 (D3PM), Sahoo et al. 2024 (MDLM)
    """
    del rate
    return _masked(size, steps, deleted=0.0, length_kept=True)


def in_place_gaussian(size: int, steps: int, rate: float) -> Forward:
    """Tokens with an order move to near ones: A_t[x, y] ∝ exp(−(x − y)²/2σ_t²), σ_t ∝ t.

    The variances of steps 1…T−1 sum to K²/4, so that near the end a token says little of x_0.

    Austin et al. 2021 (D3PM), with another schedule
    """
    del rate
    weights = [t * t for t in range(1, steps)]
    sigmas = [0.5 * size * (weight / sum(weights)) ** 0.5 for weight in weights]
    noise = [Step(0.0, 0.0, GaussianTransition(size, sigma)) for sigma in sigmas]
    return Forward(Schedule([*noise, Step(0.0, 1.0, IdentityTransition(size))]), None)


def insert_delete(size: int, steps: int, rate: float) -> Forward:
    """The paper's process: a share of x_0 is deleted, as much inserted, and all is drawn anew.

    Johnson et al. 2021, App. C.2
    """
    return Forward(Schedule.paper(size, steps, rate), None)


def delete_only(size: int, steps: int, rate: float) -> Forward:
    """After step t a share t/T of the tokens is deleted; the reverse process inserts alone."""
    del rate
    most = (steps - 1) / steps
    schedule = Schedule.interpolate(
        size,
        steps,
        deleted=lambda time: most * time,
        replaced=lambda time: 0.0,
        relative_length=lambda time: 1.0 - most * time,
        transition=lambda size, keep: IdentityTransition(size),
    )
    return Forward(schedule, None)


def mask_delete_only(size: int, steps: int, rate: float) -> Forward:
    """Tokens are masked as in `in_place_mask`, and a share of them is deleted; none is inserted."""
    return _masked(size, steps, deleted=rate, length_kept=False)


def mask_insert_delete(size: int, steps: int, rate: float) -> Forward:
    """Tokens are masked, and a share of them is deleted and replaced by as many inserted MASKs."""
    return _masked(size, steps, deleted=rate, length_kept=True)


def _masked(size: int, steps: int, *, deleted: float, length_kept: bool) -> Forward:
    most, mask = (steps - 1) / steps, size
    only_mask = torch.zeros(size + 1, dtype=torch.float64)
    only_mask[mask] = 1.0
    schedule = Schedule.interpolate(
        size + 1,
        steps,
        deleted=lambda time: deleted * time,
        replaced=lambda time: most * time,
        relative_length=lambda time: 1.0 if length_kept else 1.0 - deleted * time,
        transition=partial(AbsorbingTransition, mask=mask),
        inserted=only_mask,
    )
    return Forward(schedule, mask)


FORWARD: dict[str, Callable[[int, int, float], Forward]] = {
    "in-place-uniform": in_place_uniform,
    "in-place-mask": in_place_mask,
    "in-place-gaussian": in_place_gaussian,
    "insert-delete": insert_delete,
    "delete-only": delete_only,
    "mask-delete-only": mask_delete_only,
    "mask-insert-delete": mask_insert_delete,
}
"""By the name of the process: makes it from the number of tokens, T, and the rate of deletion."""


def forward_process(name: str, size: int, *, num_steps: int, rate: float) -> Forward:
    """The forward process of a name; the rate matters for those that have one."""
    checks.choice("process", name, FORWARD)
    checks.integer("num_steps", num_steps, least=2)
    checks.number("rate", rate, least=0.0, below=1.0)
    return FORWARD[name](size, num_steps, rate)
