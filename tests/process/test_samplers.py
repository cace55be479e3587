"""Samplers draw from the enumerated laws, and the same test sees a parameter 10 % off."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
import torch

import oracles
from indel import Batch
from indel.process import (
    Schedule,
    corrupt,
    corrupt_chain,
    corrupt_step,
    sample_edits,
    summarize,
)
from oracles import OracleStep
from support.cases import library_step
from support.frequencies import Outcome, chi_square_p, count

Steps = tuple[OracleStep, ...]

STEPS: Steps = (
    OracleStep(0.3, 0.3, 0.4, ((0.9, 0.1), (0.1, 0.9)), (0.9, 0.1)),
    OracleStep(0.3, 0.2, 0.5, ((0.95, 0.05), (0.1, 0.9)), (0.8, 0.2)),
    OracleStep(0.2, 0.3, 0.4, ((0.9, 0.1), (0.2, 0.8)), (0.9, 0.1)),
)
X_0, X_PREV, X_T = (0, 1, 1), (3, 0, 2, 1), (1, 2, 0, 1)
DRAWS, LONGEST, SHORT = 200_000, 3, 2
PERTURBED: dict[str, Callable[[OracleStep], OracleStep]] = {
    "insert": lambda step: replace(step, insert=step.insert * 1.1),
    "delete": lambda step: replace(step, delete=step.delete * 1.1),
    "delete_inserted": lambda step: replace(step, delete_inserted=step.delete_inserted * 1.1),
    "transition": lambda step: replace(
        step, transition=tuple((a * 0.9, 1 - a * 0.9) for a, _ in step.transition)
    ),
    "inserted": lambda step: replace(
        step, inserted=(step.inserted[0] * 0.9, 1 - step.inserted[0] * 0.9)
    ),
}


def schedule_of(steps: Iterable[OracleStep]) -> Schedule:
    return Schedule(library_step(step) for step in steps)


def sequences(longest: int) -> list[tuple[int, ...]]:
    return [
        tokens
        for length in range(longest + 1)
        for tokens in itertools.product(range(4), repeat=length)
    ]


def repeated(tokens: tuple[int, ...]) -> Batch:
    return Batch(torch.tensor([tokens] * DRAWS), torch.full((DRAWS,), len(tokens)))


def law_of_jump(steps: Steps) -> dict[Outcome, float]:
    """q(x_t, a | x_0) of every x_t up to length 3 and its edits; longer ones are one cell."""
    return {
        (x_t, source): prob
        for x_t in sequences(LONGEST)
        for source, prob in oracles.edit_probs(steps, X_0, x_t).items()
    }


def draw_jump(schedule: Schedule, generator: torch.Generator) -> dict[Outcome, int]:
    x_t, edits = corrupt(schedule, repeated(X_0), schedule.num_steps, generator=generator)
    return count(x_t.tokens, edits.source, lengths=x_t.lengths, longest=LONGEST)


def law_of_short_jump(steps: Steps) -> dict[Outcome, float]:
    """The same given that x_t is shorter than x_0, as few are."""
    short = {key: prob for key, prob in law_of_jump(steps).items() if len(key[0]) <= SHORT}
    return {key: prob / sum(short.values()) for key, prob in short.items()}


def draw_short_jump(schedule: Schedule, generator: torch.Generator) -> dict[Outcome, int]:
    x_t, edits = corrupt(
        schedule, repeated(X_0), schedule.num_steps, generator=generator, max_length=SHORT
    )
    return count(x_t.tokens, edits.source, lengths=x_t.lengths, longest=SHORT)


def draw_chain(schedule: Schedule, generator: torch.Generator) -> dict[Outcome, int]:
    chain = corrupt_chain(schedule, repeated(X_0), generator=generator)
    source = summarize(chain, schedule.vocab_size).source
    return count(chain[-1].tokens, source, lengths=chain[-1].lengths, longest=LONGEST)


def law_of_step(steps: Steps) -> dict[Outcome, float]:
    return {(x_t,): oracles.step_prob(steps[0], X_PREV, x_t) for x_t in sequences(5)}


def draw_step(schedule: Schedule, generator: torch.Generator) -> dict[Outcome, int]:
    x_t = corrupt_step(schedule, repeated(X_PREV), 1, generator=generator)
    return count(x_t.tokens, lengths=x_t.lengths, longest=5)


def law_of_edits(steps: Steps) -> dict[Outcome, float]:
    probs = oracles.edit_probs(steps, X_0, X_T)
    return {(source,): prob / sum(probs.values()) for source, prob in probs.items()}


def draw_edits(schedule: Schedule, generator: torch.Generator) -> dict[Outcome, int]:
    x_0, x_t = repeated(X_0), repeated(X_T)
    edits = sample_edits(schedule, x_0, x_t, schedule.num_steps, generator=generator)
    return count(edits.source, lengths=x_t.lengths, longest=len(X_T))


SAMPLERS: dict[str, tuple[Callable, Callable]] = {
    "corrupt": (law_of_jump, draw_jump),
    "corrupt within a limit": (law_of_short_jump, draw_short_jump),
    "corrupt_chain": (law_of_jump, draw_chain),
    "corrupt_step": (law_of_step, draw_step),
    "sample_edits": (law_of_edits, draw_edits),
}


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sampler_draws_from_its_law(sampler: str) -> None:
    """One seed: the test below says what one sees."""
    (p,) = p_values(sampler, schedule_of(STEPS), seeds=1)
    assert p > 0.001


@pytest.mark.slow
@pytest.mark.parametrize("parameter", PERTURBED)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_same_test_sees_a_parameter_ten_per_cent_off(sampler: str, parameter: str) -> None:
    other = schedule_of(PERTURBED[parameter](step) for step in STEPS)
    assert sum(p < 0.001 for p in p_values(sampler, other, seeds=10)) >= 9


def p_values(sampler: str, schedule: Schedule, *, seeds: int) -> list[float]:
    law, draw = SAMPLERS[sampler]
    probs = law(STEPS)
    return [
        chi_square_p(draw(schedule, torch.Generator().manual_seed(seed)), probs)
        for seed in range(seeds)
    ]
