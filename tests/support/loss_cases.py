"""Small schedules, a network of random logits, and terms of the loss by enumeration."""

import itertools
from functools import lru_cache

import numpy as np
import pytest
import torch
from torch import Tensor

import oracles
from indel import Batch
from indel.bound.noised import Noised
from indel.bound.objective import StepTerms, step_terms
from indel.model import LengthTable
from indel.model.denoiser import DenoiserOutput
from indel.model.reverse import EditWeights, ReverseStep
from indel.process import (
    AbsorbingTransition,
    Edits,
    GaussianTransition,
    IdentityTransition,
    Schedule,
    Step,
    Transition,
    UniformTransition,
)
from oracles import Tokens
from support.cases import steps_of

CPU = torch.device("cpu")
WEIGHTS = {"normalised": EditWeights.normalized, "joint": EditWeights.joint}


def then_delete_all(steps: list[Step]) -> Schedule:
    return Schedule([*steps, Step(0.0, 1.0, IdentityTransition(steps[0].vocab_size))])


def alike(transition: Transition, *, insert: float, delete: float, count: int = 2) -> Schedule:
    return then_delete_all([Step(insert, delete, transition)] * count)


SCHEDULES = {
    "uniform": alike(UniformTransition(2, 0.7), insert=0.08, delete=0.2),
    "absorbing": alike(AbsorbingTransition(2, 0.6, 1), insert=0.05, delete=0.3),
    "dense": alike(GaussianTransition(2, 0.8), insert=0.08, delete=0.2),
    "one token": alike(UniformTransition(1, 0.7), insert=0.1, delete=0.2, count=3),
    "deletions alone": alike(UniformTransition(2, 0.7), insert=0.0, delete=0.4),
    "insertions alone": alike(UniformTransition(2, 0.7), insert=0.1, delete=0.0),
    "spared": then_delete_all(
        [
            Step(0.1, 0.2, UniformTransition(2, 0.8), torch.tensor([0.3, 0.7]), 0.0),
            Step(0.05, 0.4, UniformTransition(2, 0.5), torch.tensor([1.0, 0.0]), 0.0),
        ]
    ),
    "all deleted at once": then_delete_all(
        [
            Step(0.1, 1.0, UniformTransition(2, 0.9)),
            Step(0.05, 0.2, UniformTransition(2, 0.9)),
        ]
    ),
}
# Few enough insertions that all sequences up to a short length hold all of the mass but 1e−10.
RARE = {
    "one token": alike(UniformTransition(1, 0.5), insert=0.002, delete=0.25),
    "two tokens": then_delete_all(
        [
            Step(0.002, 0.3, UniformTransition(2, 0.6)),
            Step(0.002, 0.2, AbsorbingTransition(2, 0.7, 0)),
        ]
    ),
}
LONGEST = {"one token": 6, "two tokens": 5}


def sequences(size: int, longest: int, *, first: int = 0) -> list[Tokens]:
    """Everything over the regular tokens from `first` on, INS and DEL."""
    return [
        tokens
        for length in range(longest + 1)
        for tokens in itertools.product(range(first, size + 2), repeat=length)
    ]


class Network:
    """Fixed random logits that depend on t, on a token and on both of its neighbours."""

    def __init__(self, schedule: Schedule, *, most: int = 6, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        times, tokens = schedule.num_steps + 1, schedule.vocab_size + 3

        def table(values: int) -> Tensor:
            shape = (3, times, tokens, values)
            return torch.randn(shape, generator=generator, dtype=torch.float64)

        self.token, self.deletions = table(schedule.vocab_size + 1), table(most + 1)
        self.eos, self.seed = schedule.vocab_size + 2, seed

    def __call__(self, seen: Batch, t: Tensor) -> DenoiserOutput:
        pad = torch.nn.functional.pad
        closed = pad(seen.tokens, (1, 2), value=-1)
        closed = torch.where(closed < 0, self.eos, closed)
        left, own, right = closed[:, :-2], closed[:, 1:-1], closed[:, 2:]
        at = t[:, None]
        logits = [
            each[0, at, left] + each[1, at, own] + each[2, at, right]
            for each in (self.token, self.deletions)
        ]
        return DenoiserOutput(logits[0][:, :-1], logits[1])


def times_of(rows: int, t: int) -> Tensor:
    return torch.full((rows,), t)


def with_edits(
    schedule: Schedule, x_0: Tokens, every: list[Tokens], t: int
) -> tuple[list[Tokens], list[Tokens], list[float]]:
    """All (x_t, a) of positive probability: x_t, source, q(x_t, a | x_0)."""
    x_ts, sources, probs = zip(*_with_edits(steps_of(schedule)[:t], x_0, tuple(every)), strict=True)
    return list(x_ts), list(sources), list(probs)


@lru_cache(maxsize=64)
def _with_edits(
    steps: tuple[oracles.OracleStep, ...], x_0: Tokens, every: tuple[Tokens, ...]
) -> list[tuple[Tokens, Tokens, float]]:
    """Several tests ask for the same ones."""
    return [
        (x_t, source, prob)
        for x_t in every
        for source, prob in oracles.edit_probs(steps, x_0, x_t).items()
    ]


def closed_form(
    schedule: Schedule,
    network: Network,
    x_0: Tokens,
    x_ts: list[Tokens],
    sources: list[Tokens],
    t: int,
    choice: str = "normalised",
) -> StepTerms:
    first, last = Batch.from_lists([x_0] * len(x_ts)), Batch.from_lists(x_ts)
    padded = [[*source, *[-1] * (last.width - len(source))] for source in sources]
    source = torch.tensor(padded, dtype=torch.int64).reshape(last.tokens.shape)
    edits = Edits.from_source(first, last, source)
    noised = Noised.of(schedule, first, last, edits, times_of(len(x_ts), t))
    weights = WEIGHTS[choice](schedule.tables(CPU).jump)
    return step_terms(schedule, network(noised.seen, noised.t), noised, weights)


def marginal_form(
    schedule: Schedule,
    network: Network,
    x_0: Tokens,
    x_ts: list[Tokens],
    t: int,
    choice: str = "normalised",
) -> StepTerms:
    first, last = Batch.from_lists([x_0] * len(x_ts)), Batch.from_lists(x_ts)
    noised = Noised.of(schedule, first, last, None, times_of(len(x_ts), t))
    weights = WEIGHTS[choice](schedule.tables(CPU).jump)
    return step_terms(schedule, network(noised.seen, noised.t), noised, weights)


def log_reverse(
    schedule: Schedule,
    network: Network,
    x_prevs: list[Tokens],
    x_ts: list[Tokens],
    t: int,
    choice: str = "normalised",
) -> np.ndarray:
    """log p_θ(x_{t−1} | x_t) of pairs."""
    seen, times = Batch.from_lists(x_ts).without(schedule.ins), times_of(len(x_ts), t)
    weights = WEIGHTS[choice](schedule.tables(CPU).jump)
    reverse = ReverseStep.of(schedule, network(seen, times), seen, times, weights=weights)
    return reverse.log_prob(Batch.from_lists(x_prevs)).numpy()


def over_all_times(test):
    times = [(name, t) for name in SCHEDULES for t in range(1, SCHEDULES[name].num_steps + 1)]
    return pytest.mark.parametrize(("name", "t"), times)(test)


def some_lengths(max_length: int = 3, seed: int = 0) -> LengthTable:
    """A table in which next to nothing is longer than its last entry."""
    table = LengthTable(max_length).double()
    with torch.no_grad():
        table.logits.normal_(generator=torch.Generator().manual_seed(seed))
        table.logits[-1] = -30.0
    return table
