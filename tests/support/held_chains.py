"""Every way that a tiny reverse process can take with frozen tokens in place, one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import torch

from indel.model import Denoiser
from indel.process import IdentityTransition, MatrixTransition, Schedule, Step
from indel.sampling.patterns import Pattern
from support.denoisers import Tokens, reverse_matrix, tiny_denoiser

INS, DEL = 2, 3
MOST_BIRTHS = 1
SCHEDULE = Schedule(
    [
        Step(0.2, 0.3, MatrixTransition([[0.8, 0.2], [0.3, 0.7]]), torch.tensor([0.7, 0.3])),
        # Inserts are not deleted before x_3: so as many DELs as deletions, a number with an end.
        Step(0.3, 0.4, MatrixTransition([[0.6, 0.4], [0.1, 0.9]]), torch.tensor([0.2, 0.8]), 0.0),
        Step(0.0, 1.0, IdentityTransition(2)),
    ]
)
Gaps = tuple[Tokens, ...]
"""The contents of the gaps of a pattern."""


def held_denoiser(seed: int, *, longest: int, contexts: int = 0) -> Denoiser:
    """At most `longest` tokens in x_T, and at most one deletion in a slot."""
    denoiser = tiny_denoiser(
        SCHEDULE, seed=seed, max_length=20, max_deletions=MOST_BIRTHS, contexts=contexts
    )
    fit_some(denoiser)
    with torch.no_grad():
        denoiser.length.logits[longest + 1 :] = -torch.inf
        # From the start deletions are rare, which would hide what they do.
        denoiser.deletions_head.bias.copy_(torch.tensor([0.0, -0.5]))
    return denoiser


def fit_some(denoiser: Denoiser) -> None:
    """Counts in which what follows depends on what was before."""
    if denoiser.prior is not None:
        rows = [[0, 1, 0, 1], [0, 1], [1, 1, 0, 1], [0, 0, 1], [0, 1, 0], [1, 1]] * 20
        denoiser.prior.fit([np.array(row) for row in rows])


def sequence(pattern: Pattern, gaps: Gaps, frozen: Tokens) -> Tokens:
    """Frozen tokens with these values, and what is in the gaps between them."""
    rest = iter(gaps)
    parts = [next(rest) if gap is not None else () for gap in pattern.gaps]
    shown = [*((token,) for token in frozen), ()]
    return tuple(itertools.chain(*itertools.chain(*zip(parts, shown, strict=True))))


def earlier_contents(gap: Tokens, values: range, births: int) -> Iterator[Tokens]:
    """What may stand in a gap one step earlier: a value for each token but INS, DELs between."""
    seen = [token for token in gap if token != INS]
    for each in itertools.product(values, repeat=len(seen)):
        for counts in itertools.product(range(births + 1), repeat=len(seen) + 1):
            placed = [DEL] * counts[0]
            for value, count in zip(each, counts[1:], strict=True):
                placed += [value, *[DEL] * count]
            yield tuple(placed)


def enumerated_law(denoiser: Denoiser, pattern: Pattern) -> dict[Gaps, float]:
    """P(x_0 and the frozen tokens are in place at all times), by the contents of the gaps."""
    last, frozen = denoiser.schedule.num_steps, pattern.tokens
    law: dict[Gaps, float] = {}
    free = sum(gap is not None for gap in pattern.gaps)
    lengths = denoiser.length.log_prob(torch.arange(denoiser.config.max_length + 1)).detach().exp()
    longest = int((lengths > 1e-9).nonzero().max()) - len(frozen)
    for counts in itertools.product(range(longest + 1), repeat=free):
        prob = float(lengths[sum(counts) + len(frozen)]) if sum(counts) <= longest else 0.0
        if prob > 0:
            law[tuple((DEL,) * count for count in counts)] = prob
    for t in range(last, 0, -1):
        earlier: dict[Gaps, float] = {}
        values, births = (range(3), MOST_BIRTHS) if t > 1 else (range(2), 0)
        values_of_frozen = (DEL,) * len(frozen) if t == last else frozen
        # States with equally many tokens in each gap have the same continuations.
        sizes = {tuple(map(len, gaps)) for gaps in law}
        for size in sorted(sizes):
            alike = [gaps for gaps in law if tuple(map(len, gaps)) == size]
            each = (earlier_contents(gap, values, births) for gap in alike[0])
            options = list(itertools.product(*each))
            x_t = [sequence(pattern, gaps, values_of_frozen) for gaps in alike]
            x_prev = [sequence(pattern, option, frozen) for option in options]
            steps = reverse_matrix(denoiser, t, x_t, x_prev)
            arrived = torch.tensor([law[gaps] for gaps in alike]).double() @ steps
            for option, prob in zip(options, arrived.tolist(), strict=True):
                # An INS says nothing about what was there before: such states are one.
                seen = tuple(tuple(token for token in gap if token != INS) for gap in option)
                earlier[seen] = earlier.get(seen, 0.0) + prob
        law = earlier
    return law


def normalized(law: dict[Gaps, float]) -> dict[Gaps, float]:
    """The law given that it happens at all."""
    total = sum(law.values())
    return {key: value / total for key, value in law.items()}
