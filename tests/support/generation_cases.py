"""A process whose samples are enumerated, and what is counted in them."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from indel import Batch, RowSeeds
from indel.model import Denoiser, DenoiserOutput
from indel.model.reverse import ReverseStep
from indel.process import IdentityTransition, MatrixTransition, Schedule, Step, corrupt
from indel.sampling.generation import Samples
from support.denoisers import Tokens, reverse_matrix, sequences
from support.frequencies import Outcome, count

INS, DEL = 2, 3
SCHEDULE = Schedule(
    [
        Step(0.2, 0.3, MatrixTransition([[0.8, 0.2], [0.3, 0.7]]), torch.tensor([0.7, 0.3])),
        Step(0.3, 0.4, MatrixTransition([[0.6, 0.4], [0.1, 0.9]]), torch.tensor([0.2, 0.8]), 0.5),
        Step(0.0, 1.0, IdentityTransition(2)),
    ]
)
LONGEST = 3
EVERY = sequences(range(4), LONGEST)
DATA = sequences(range(2), LONGEST)
DRAWS = 30_000


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def seeds(*values: int) -> RowSeeds:
    return RowSeeds(torch.tensor(values))


def repeated(tokens: Tokens, rows: int = DRAWS) -> Batch:
    return Batch.from_lists([tokens] * rows)


class Longest:
    """A callback that keeps the length of the longest sequence on each row's way."""

    def __init__(self) -> None:
        self.lengths: Tensor | None = None

    def __call__(self, t: int, x_t: Batch) -> None:
        before = x_t.lengths if self.lengths is None else self.lengths
        self.lengths = torch.maximum(before, x_t.lengths)


def counted(samples: Samples, longest: Longest) -> dict[Outcome, int]:
    """How often each x_0 was sampled; ways that left the enumerated lengths are one outcome."""
    assert longest.lengths is not None
    tokens = samples.x.widened(LONGEST).tokens
    inside = longest.lengths <= LONGEST
    found = count(tokens[inside], lengths=samples.x.lengths[inside], longest=LONGEST)
    return {**found, (): int((~inside).sum())}


def enumerated(denoiser: Denoiser, start: Tensor, t: int) -> dict[Outcome, float]:
    """P(x_0 and no x_s over the longest length) from a law of x_t on EVERY: exact, nothing lost."""
    law = start.double()
    for time in range(t, 0, -1):
        reached = law.nonzero()[:, 0]
        states = [EVERY[number] for number in reached.tolist()]
        earlier = EVERY if time > 1 else DATA
        law = law[reached] @ reverse_matrix(denoiser, time, states, earlier)
    return {(tokens,): prob for tokens, prob in zip(DATA, law.tolist(), strict=True)}


def law_of(*rows: Tokens) -> Tensor:
    return torch.tensor([tokens in rows for tokens in EVERY]).double() / len(rows)


def law_of_start(denoiser: Denoiser) -> Tensor:
    lengths = denoiser.length.log_prob(torch.arange(LONGEST + 1)).exp()
    marks = [tokens == (DEL,) * len(tokens) for tokens in EVERY]
    sizes = torch.tensor([len(tokens) for tokens in EVERY])
    return lengths.detach()[sizes] * torch.tensor(marks)


def perturbed(denoiser: Denoiser, head: str) -> Denoiser:
    """One head a little off: at the value 0 of the first, or at no deletions of the second."""
    other = copy.deepcopy(denoiser)
    with torch.no_grad():
        other.get_parameter(head)[0] += 0.3
    return other


def step_of(denoiser: Denoiser, tokens: Tokens, t: int, rows: int) -> ReverseStep:
    """p_θ(x_{t−1} | x_t) for many rows of one x_t, with one call of the network."""
    seen = Batch.from_lists([tokens]).without(INS)
    with torch.no_grad():
        output = denoiser(seen, t)
    output = DenoiserOutput(*(each.expand(rows, -1, -1) for each in output))
    wide = seen.rows(torch.zeros(rows, dtype=torch.int64))
    return ReverseStep.of(denoiser.schedule, output, wide, torch.full((rows,), t))


def some_start() -> tuple[Batch, Tensor]:
    """Sixteen different sequences, one of them empty, and times for them."""
    x_0 = Batch.from_lists([list(range(2)) * (n % 5) + [n % 2] * (n % 3) for n in range(16)])
    t = torch.arange(16) % 3 + 1
    return corrupt(SCHEDULE, x_0, t, generator=generator(5)).x_t, t


def prolific(denoiser: Denoiser) -> Denoiser:
    """A denoiser that takes every slot for the place of many deletions."""
    with torch.no_grad():
        denoiser.deletions_head.bias.copy_(torch.tensor([0.0, 1.0, 2.0]))
    return denoiser
