"""Learning-rate schedules, as factors that are pure functions of the step."""

from __future__ import annotations

import math

from indel.training.config import OptimizerSection


def warm_up_factor(step: int, warm_up: int) -> float:
    """(n+1)/warm_up for the first steps n = 0, 1, …, then 1.

    Paper: App. C.2
    """
    return min(1.0, (step + 1) / warm_up) if warm_up else 1.0


def constant(step: int, *, warm_up: int) -> float:
    """A linear increase, then constant.

    >>> [constant(step, warm_up=4) for step in (0, 3, 1000)]
    [0.25, 1.0, 1.0]

    Paper: App. C.2
    """
    return warm_up_factor(step, warm_up)


def reciprocal_square_root(step: int, *, warm_up: int) -> float:
    """A linear increase, then √(warm_up / (n+1)), which starts at 1.

    >>> [reciprocal_square_root(step, warm_up=4) for step in (0, 3, 15)]
    [0.25, 1.0, 0.5]

    Paper: App. C.3
    """
    return min(warm_up_factor(step, warm_up), math.sqrt(max(warm_up, 1) / (step + 1)))


def cyclical_cosine(step: int, *, period: int, warm_up: int = 0) -> float:
    """½(1 + cos(π·(n mod period)/period)), from 1 to 0 and up again at once.

    The first cycle starts with a warm-up. The paper gives the period and no more.

    >>> [round(cyclical_cosine(step, period=4), 3) for step in (0, 2, 3, 4)]
    [1.0, 0.5, 0.146, 1.0]

    Paper: App. C.3
    """
    phase = (step % period) / period
    return warm_up_factor(step, warm_up) * 0.5 * (1.0 + math.cos(math.pi * phase))


def flat_steps(steps: int, cool_down: float) -> int:
    """How many of the steps have the full rate.

    >>> flat_steps(1000, 0.4)
    600
    """
    return steps - round(cool_down * steps)


def flat(step: int, *, warm_up: int, steps: int, cool_down: float) -> float:
    """A linear increase, then constant, then a linear decrease over the last share of the steps.

    Until the decrease begins the factor does not depend on the number of steps, so that one run
    can be cooled down for several budgets.

    >>> [flat(step, warm_up=2, steps=10, cool_down=0.4) for step in (0, 1, 5, 6, 8, 9)]
    [0.5, 1.0, 1.0, 1.0, 0.5, 0.25]
    """
    level = flat_steps(steps, cool_down)
    left = (steps - step) / (steps - level) if step >= level else 1.0
    return warm_up_factor(step, warm_up) * left


def flat_by_share(step: int, share: float, *, warm_up: int, cool_down: float) -> float:
    """`flat` where not the number of steps is given but a budget, of which a share is spent.

    >>> [flat_by_share(9, share, warm_up=2, cool_down=0.4) for share in (0.0, 0.6, 0.8, 1.0)]
    [1.0, 1.0, 0.5, 0.0]
    """
    left = min(1.0, (1.0 - share) / cool_down) if cool_down else 1.0
    return warm_up_factor(step, warm_up) * round(left, 12)


def rate_factor(section: OptimizerSection, step: int, *, steps: int) -> float:
    """What all learning rates are multiplied by in step n = 0, 1, … of all steps.

    Paper: App. C.3
    """
    if section.schedule == "constant":
        return constant(step, warm_up=section.warm_up)
    if section.schedule == "reciprocal-square-root":
        return reciprocal_square_root(step, warm_up=section.warm_up)
    if section.schedule == "flat":
        return flat(step, warm_up=section.warm_up, steps=steps, cool_down=section.cool_down)
    return cyclical_cosine(step, period=section.period, warm_up=section.warm_up)
