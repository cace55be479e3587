"""Random small processes, as the oracle and as the library see them."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from hypothesis import strategies as st

from indel import Batch
from indel.process import MatrixTransition, Schedule, Step
from oracles import OracleStep, Tokens


@dataclass(frozen=True)
class Case:
    """A schedule of t steps and a pair of sequences."""

    steps: tuple[OracleStep, ...]
    x_0: tuple[int, ...]
    x_t: tuple[int, ...]

    @property
    def schedule(self) -> Schedule:
        return Schedule(library_step(step) for step in self.steps)

    @property
    def t(self) -> int:
        return len(self.steps)

    def batches(self) -> tuple[Batch, Batch]:
        return Batch.from_lists([self.x_0]), Batch.from_lists([self.x_t])


def library_step(step: OracleStep) -> Step:
    return Step(
        step.insert,
        step.delete,
        MatrixTransition(step.transition),
        torch.tensor(step.inserted, dtype=torch.float64),
        step.delete_inserted,
    )


def steps_of(schedule: Schedule) -> tuple[OracleStep, ...]:
    """The steps of a schedule as the oracle sees them."""
    return tuple(
        OracleStep(
            step.insert,
            step.delete,
            step.delete_inserted,
            tuple(map(tuple, step.transition.matrix().tolist())),
            tuple(step.inserted.dense().tolist()),
        )
        for step in map(schedule.step, range(1, schedule.num_steps + 1))
    )


def every_previous(length: int, size: int, *, dels: int) -> Iterator[Tokens]:
    """Every x_{t−1} with `length` tokens other than DEL and `dels` DELs."""
    for places in itertools.combinations(range(dels + length), length):
        for tokens in itertools.product(range(size + 1), repeat=length):
            x_prev = [size + 1] * (dels + length)
            for place, token in zip(places, tokens, strict=True):
                x_prev[place] = token
            yield tuple(x_prev)


def probabilities(most: float, *, edges: tuple[float, ...]) -> st.SearchStrategy[float]:
    return st.one_of(st.sampled_from(edges), st.floats(0.01, most))


@st.composite
def rows(draw: st.DrawFn, size: int) -> tuple[float, ...]:
    weights = draw(
        st.lists(
            st.one_of(st.just(0.0), st.floats(0.05, 1.0)), min_size=size, max_size=size
        ).filter(lambda values: sum(values) > 0)
    )
    return tuple(weight / sum(weights) for weight in weights)


@st.composite
def oracle_steps(draw: st.DrawFn, size: int) -> OracleStep:
    delete = draw(probabilities(0.5, edges=(0.0, 1.0)))
    return OracleStep(
        insert=draw(probabilities(0.4, edges=(0.0,))),
        delete=delete,
        delete_inserted=draw(st.one_of(st.just(delete), probabilities(0.5, edges=(0.0, 1.0)))),
        transition=tuple(draw(rows(size)) for _ in range(size)),
        inserted=draw(rows(size)),
    )


@st.composite
def cases(draw: st.DrawFn, *, max_steps: int = 4) -> Case:
    """Vocabularies of 1–3, up to 4 steps, sequences that may be empty, only DEL or only INS."""
    size = draw(st.integers(1, 3))
    steps = tuple(draw(st.lists(oracle_steps(size), min_size=1, max_size=max_steps)))
    x_0 = tuple(draw(st.lists(st.integers(0, size - 1), max_size=3)))
    tokens = st.one_of(
        st.lists(st.integers(0, size + 1), max_size=4),
        st.lists(st.just(size), max_size=3),
        st.lists(st.just(size + 1), max_size=3),
    )
    return Case(steps, x_0, tuple(draw(tokens)))
