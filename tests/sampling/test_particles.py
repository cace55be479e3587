"""Particles converge to the enumerated conditional and tilted laws; one alone does not."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from indel import RowSeeds
from indel.model import Denoiser
from indel.sampling.particles import HeldSamples, sample_held
from indel.sampling.patterns import EVERYTHING, Gap, Pattern
from indel.sampling.rewards import Steering
from support.frequencies import Outcome, chi_square_p
from support.held_chains import Gaps, enumerated_law, held_denoiser, normalized, sequence

MIDDLE = Pattern.of([[0], Gap(), [1]])
BOUNDED = Pattern.of([[0], Gap(1, 2), [1]])
TWO = Pattern.of([Gap(), [1], Gap()])
STRENGTH = 0.5


def reward(texts: list[str]) -> list[float]:
    """How many ones there are, less the zeros: texts are integers with spaces between them."""
    return [text.count("1") - 0.5 * text.count("0") for text in texts]


def drawn(
    denoiser: Denoiser,
    pattern: Pattern,
    rows: int,
    particles: int,
    steering: Steering | None = None,
) -> HeldSamples:
    seeds = RowSeeds(torch.arange(rows))
    return sample_held(
        denoiser, pattern, rows, generator=seeds, particles=particles, steering=steering
    )


def counted(samples: HeldSamples) -> dict[Outcome, int]:
    """How often each content of the gaps occurs."""
    found: dict[Outcome, int] = {}
    for gaps in samples.gaps:
        key = tuple(tuple(map(int, gap.split())) for gap in gaps)
        found[key] = found.get(key, 0) + 1
    return found


def allowed(pattern: Pattern, law: dict[Gaps, float]) -> dict[Gaps, float]:
    return {gaps: prob for gaps, prob in law.items() if pattern.fits(list(map(len, gaps)))}


def tilted(
    law: dict[Gaps, float], pattern: Pattern, strength: float = STRENGTH
) -> dict[Gaps, float]:
    texts = [" ".join(map(str, sequence(pattern, gaps, pattern.tokens))) for gaps in law]
    factors = [math.exp(strength * value) for value in reward(texts)]
    return {key: law[key] * factor for key, factor in zip(law, factors, strict=True)}


def perturbed(denoiser: Denoiser) -> Denoiser:
    other = copy.deepcopy(denoiser)
    with torch.no_grad():
        other.embedding.weight[0] += 0.4
    return other


@pytest.mark.parametrize(
    ("pattern", "longest"), [(MIDDLE, 3), (BOUNDED, 3), (TWO, 1)], ids=["one", "bounded", "two"]
)
def test_the_normalizer_is_unbiased(pattern: Pattern, longest: int) -> None:
    """With any number of particles its mean is the probability of the condition."""
    denoiser = held_denoiser(1, longest=longest)
    exact = sum(allowed(pattern, enumerated_law(denoiser, pattern)).values())
    for particles in (1, 4):
        estimates = drawn(denoiser, pattern, 1500, particles).log_normalizer.exp()
        error = estimates.std().item() / 1500**0.5
        assert error < 0.05 * exact
        assert abs(estimates.mean().item() - exact) < 4 * error + 1e-12


def test_weighted_samples_have_the_tilted_law() -> None:
    """With any number of particles E[normalizer · 1[the sample is x]] is the weight of x."""
    denoiser, rows = held_denoiser(2, longest=1), 2000
    law = tilted(enumerated_law(denoiser, TWO), TWO, 1.5)
    samples = drawn(denoiser, TWO, rows, 4, Steering(reward, 1.5))
    assert bool(samples.resampled.any())
    weights = samples.log_normalizer.exp()
    keys = [tuple(tuple(map(int, gap.split())) for gap in gaps) for gaps in samples.gaps]
    likely = [key for key, weight in law.items() if weight > 0.02 * sum(law.values())]
    assert len(likely) > 5
    for key in likely:
        each = weights * torch.tensor([other == key for other in keys])
        error = each.std().item() / rows**0.5
        assert abs(each.mean().item() - law[key]) < 4.5 * error
    error = weights.std().item() / rows**0.5
    assert error < 0.05 * sum(law.values())
    assert abs(weights.mean().item() - sum(law.values())) < 4 * error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "longest"), [(MIDDLE, 3), (BOUNDED, 3), (TWO, 1)], ids=["one", "bounded", "two"]
)
def test_particles_converge_to_the_conditional_law(pattern: Pattern, longest: int) -> None:
    denoiser = held_denoiser(1, longest=longest)
    exact = normalized(allowed(pattern, enumerated_law(denoiser, pattern)))
    found = counted(drawn(denoiser, pattern, 3000, 32))
    assert chi_square_p(found, exact) > 0.01
    other = normalized(allowed(pattern, enumerated_law(perturbed(denoiser), pattern)))
    assert chi_square_p(found, other) < 1e-4


@pytest.mark.slow
def test_one_particle_lacks_the_look_ahead() -> None:
    denoiser = held_denoiser(1, longest=3)
    exact = normalized(enumerated_law(denoiser, MIDDLE))
    assert chi_square_p(counted(drawn(denoiser, MIDDLE, 3000, 1)), exact) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [EVERYTHING, TWO], ids=["free", "frozen"])
def test_particles_converge_to_the_tilted_law(pattern: Pattern) -> None:
    denoiser = held_denoiser(2, longest=1)
    law = enumerated_law(denoiser, pattern)
    found = counted(drawn(denoiser, pattern, 2000, 32, Steering(reward, STRENGTH)))
    assert chi_square_p(found, normalized(tilted(law, pattern))) > 0.01
    # The law without the reward, and that of another model, are seen to be others.
    assert chi_square_p(found, normalized(law)) < 1e-4
    other = enumerated_law(perturbed(denoiser), pattern)
    assert chi_square_p(found, normalized(tilted(other, pattern))) < 1e-4


def test_nothing_is_weighed_where_nothing_is_asked() -> None:
    """One free gap is the free process: all particles are equal, and none is resampled."""
    samples = drawn(held_denoiser(0, longest=3), EVERYTHING, 20, 5)
    assert torch.allclose(samples.effective, torch.full((4, 20), 5.0, dtype=torch.float64))
    assert not bool(samples.resampled.any())
    assert torch.allclose(samples.log_normalizer.exp(), torch.ones(20, dtype=torch.float64))


def test_effective_numbers_lie_between_one_and_all() -> None:
    samples = drawn(held_denoiser(2, longest=2), TWO, 50, 8, Steering(reward, 3.0))
    assert samples.effective.shape == samples.resampled.shape == (4, 50)
    assert bool(((samples.effective >= 1 - 1e-9) & (samples.effective <= 8 + 1e-9)).all())
    assert bool(samples.resampled.any())
    assert bool((samples.resampled == (samples.effective < 4))[:-1].all())


def test_a_forbidden_text_never_comes_out() -> None:
    def short(texts: list[str]) -> list[float]:
        return [0.0 if len(text.split()) <= 2 else -math.inf for text in texts]

    samples = drawn(held_denoiser(2, longest=2), TWO, 100, 32, Steering(short))
    assert int(samples.x.lengths.max()) <= 2


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda texts: [math.nan] * len(texts), "got nan"),
        (lambda texts: [math.inf] * len(texts), "got inf"),
        (lambda texts: [0.0], "one number per text"),
        (lambda texts: [1 / 0], "ZeroDivisionError"),
        (lambda texts: None, "TypeError"),
        (lambda texts: ["x"] * len(texts), "ValueError"),
    ],
)
def test_a_bad_reward_is_named(answer, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        drawn(held_denoiser(2, longest=2), TWO, 2, 3, Steering(answer))


def test_bad_settings_are_named() -> None:
    denoiser = held_denoiser(2, longest=2)
    with pytest.raises(ValueError, match=r"particles must lie in .* got 0"):
        drawn(denoiser, TWO, 1, 0)
    with pytest.raises(ValueError, match="at least 2, got 1"):
        drawn(denoiser, TWO, 1, 1, Steering(reward))
    with pytest.raises(ValueError, match="at least 23 tokens"):
        drawn(denoiser, Pattern.of([[0], Gap(22)]), 1, 1)
    with pytest.raises(ValueError, match="no gap"):
        drawn(denoiser, Pattern.of([[0]]), 1, 1)
    with pytest.raises(ValueError, match="leave no room"):
        drawn(denoiser, Pattern.of([[0, 1, 1], Gap()]), 1, 1)
    with pytest.raises(ValueError, match="strength must be a finite number, got nan"):
        Steering(reward, math.nan)
