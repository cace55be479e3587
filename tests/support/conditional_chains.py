"""p_θ(contents of the gaps | frozen tokens) of a tiny model, by every way that leads there."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch

from indel import Batch
from indel.model import Denoiser
from indel.process import IdentityTransition, MatrixTransition, Schedule, Step
from indel.process.gaps import Gaps
from indel.sampling.patterns import Pattern
from support.cases import steps_of
from support.denoisers import Tokens, tiny_denoiser
from support.held_chains import DEL, INS, MOST_BIRTHS, SCHEDULE, earlier_contents, fit_some
from support.reverse_reference import reference

Contents = tuple[Tokens, ...]
SHORT = Schedule(
    [
        Step(0.3, 0.5, MatrixTransition([[0.6, 0.4], [0.3, 0.7]]), torch.tensor([0.6, 0.4]), 0.0),
        Step(0.0, 1.0, IdentityTransition(2)),
    ]
)
"""Of two steps, for what has too many ways with three."""


def marked_denoiser(seed: int, schedule: Schedule = SCHEDULE, *, contexts: int = 0) -> Denoiser:
    """At most one DEL of x_T in a gap, and at most one deletion in a slot: a law with an end."""
    denoiser = tiny_denoiser(
        schedule, seed=seed, max_length=40, max_deletions=2, frozen="spans", contexts=contexts
    )
    fit_some(denoiser)
    with torch.no_grad():
        denoiser.deletions_head.bias.copy_(torch.tensor([0.0, -0.5, -torch.inf]))
        denoiser.length.logits[2:] = -torch.inf
    return with_marks(denoiser, seed)


def with_marks(denoiser: Denoiser, seed: int) -> Denoiser:
    """Marks that matter: untrained ones are zero."""
    assert denoiser.marks is not None
    with torch.no_grad():
        denoiser.marks.weight.normal_(generator=torch.Generator().manual_seed(seed))
    return denoiser


def laid_out(pattern: Pattern, contents: Contents) -> tuple[list[int], list[bool], list[int]]:
    """The whole sequence, which tokens are frozen, and where the gaps begin."""
    tokens, frozen, starts, rest = list[int](), list[bool](), list[int](), iter(contents)
    for number, gap in enumerate(pattern.gaps):
        if gap is not None:
            starts.append(len(tokens))
            content = next(rest)
            tokens += content
            frozen += [False] * len(content)
        if number < len(pattern.tokens):
            tokens.append(pattern.tokens[number])
            frozen.append(True)
    return tokens, frozen, starts


def gaps_of(pattern: Pattern, rows: int = 1) -> Gaps:
    """The same as the library has it."""
    frozen = Batch.from_lists([list(pattern.tokens)] * rows)
    is_open = torch.tensor([[gap is not None for gap in pattern.gaps]] * rows)
    return Gaps(frozen, is_open)


@torch.no_grad()
def start_probs(denoiser: Denoiser, pattern: Pattern, most: int) -> list[list[float]]:
    """p_θ(n DELs of x_T) of each gap, n = 0…most: a softmax whose last entry goes on by halves."""
    frozen = torch.ones(1, len(pattern.tokens), dtype=torch.bool)
    x = Batch.from_lists([list(pattern.tokens)])
    slots = torch.tensor([[gap is not None for gap in pattern.gaps]])
    last_t = denoiser.schedule.num_steps
    head = denoiser(x, last_t, frozen, open_slots=slots, start=True).logits_deletions[0]
    found = []
    for place, gap in enumerate(pattern.gaps):
        if gap is None:
            continue
        weights = [math.exp(value) for value in head[place].tolist()]
        probs = [weight / sum(weights) for weight in weights]
        last = len(probs) - 1
        found.append(
            [probs[n] if n < last else probs[last] * 0.5 ** (n - last + 1) for n in range(most + 1)]
        )
    return found


@torch.no_grad()
def conditional_law(
    denoiser: Denoiser, pattern: Pattern, start: list[list[float]] | None = None
) -> dict[Contents, float]:
    """p_θ(contents of the gaps | frozen tokens), all of it.

    Given the law of the start, it is that of a free model whose counts are told what is frozen: in
    x_T it sees nothing but DELs.
    """
    steps, last = steps_of(denoiser.schedule), denoiser.schedule.num_steps
    told = start is not None
    start = start_probs(denoiser, pattern, 1) if start is None else start
    law: dict[Contents, float] = {
        tuple((DEL,) * n for n in counts): math.prod(
            probs[n] for probs, n in zip(start, counts, strict=True)
        )
        for counts in itertools.product(range(2), repeat=len(start))
    }
    for t in range(last, 0, -1):
        earlier: dict[Contents, float] = {}
        values, births = (range(3), MOST_BIRTHS) if t > 1 else (range(2), 0)
        for contents, prob in law.items():
            tokens, frozen, starts = laid_out(pattern, contents)
            slots = torch.zeros(1, len(tokens) + 1, dtype=torch.bool)
            for gap, begin in zip(contents, starts, strict=True):
                slots[0, begin : begin + len(gap) + 1] = True
            x_t, marks = Batch.from_lists([tokens]), torch.tensor([frozen])
            if told and t == last:
                output = denoiser(Batch.from_lists([[DEL] * len(tokens)]), t)
            else:
                output = denoiser(x_t, t, marks, open_slots=slots)
            by_gap = []
            for gap, begin in zip(contents, starts, strict=True):
                end = begin + len(gap)
                step = reference(
                    steps[:t],
                    gap,
                    output.logits_token[0, begin:end].double().numpy(),
                    output.logits_deletions[0, begin : end + 1].double().numpy(),
                    "normalized",
                )
                options = {
                    option: step.prob(option) for option in earlier_contents(gap, values, births)
                }
                merged: dict[Tokens, float] = {}
                for option, own in options.items():
                    # An INS says nothing about what was there before: such states are one.
                    seen = tuple(token for token in option if token != INS)
                    merged[seen] = merged.get(seen, 0.0) + own
                by_gap.append(merged)
            for each in itertools.product(*(options.items() for options in by_gap)):
                key = tuple(option for option, _ in each)
                arrived = prob * float(np.prod([own for _, own in each]))
                earlier[key] = earlier.get(key, 0.0) + arrived
        law = {key: value for key, value in earlier.items() if value > 1e-12}
    return law
