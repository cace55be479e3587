"""A toy language of known entropy is learned, with insertions and deletions and in place."""

import math

import pytest
import torch

from indel import Batch, IntegerVocabulary
from indel.bound.likelihood import evaluate
from indel.bound.noised import Noised
from indel.bound.objective import Objective, length_term, step_terms
from indel.model import Denoiser
from indel.process import Schedule

SIZE, SHORTEST, LONGEST, FOLLOW = 4, 3, 8, 0.95
STEPS = 8


def toy_language(rows: int, generator: torch.Generator) -> Batch:
    """A Markov chain: the next number up (mod 4) with probability 0.95, otherwise another one."""
    lengths = torch.randint(SHORTEST, LONGEST + 1, (rows,), generator=generator)
    tokens = torch.randint(SIZE, (rows, LONGEST), generator=generator)
    strays = torch.rand(rows, LONGEST, generator=generator) >= FOLLOW
    jump = torch.randint(1, SIZE, (rows, LONGEST), generator=generator)
    for i in range(1, LONGEST):
        tokens[:, i] = (tokens[:, i - 1] + 1 + strays[:, i] * jump[:, i]) % SIZE
    return Batch(tokens, lengths)


def entropies() -> tuple[float, float]:
    """The true entropy in nats, and that of the best model with independent tokens."""
    lengths = LONGEST - SHORTEST + 1
    mean = (SHORTEST + LONGEST) / 2
    choice = -FOLLOW * math.log(FOLLOW) - (1 - FOLLOW) * math.log((1 - FOLLOW) / (SIZE - 1))
    true = math.log(lengths) + math.log(SIZE) + (mean - 1) * choice
    return true, math.log(lengths) + mean * math.log(SIZE)


def train(rate: float, seed: int, *, updates: int) -> Denoiser:
    schedule = Schedule.paper(SIZE, STEPS, rate)
    generator = torch.Generator().manual_seed(seed)
    denoiser = Denoiser.from_preset(
        "tiny", IntegerVocabulary(SIZE), schedule, generator=generator, max_length=32
    )
    optimizer = torch.optim.AdamW(denoiser.parameters(), lr=2e-3, weight_decay=0.0)
    decay = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=updates)
    objective = Objective(schedule, max_length=32)
    for _ in range(updates):
        x_0 = toy_language(64, generator)
        loss = objective(denoiser, denoiser.length, x_0, generator=generator).total.mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(denoiser.parameters(), 1.0)
        optimizer.step()
        decay.step()
    return denoiser.eval()


@torch.inference_mode()
def bound(denoiser: Denoiser, rows: int, seed: int) -> tuple[float, float]:
    """Mean and standard error of the closed-form bound on fresh data, all t for each sequence."""
    generator = torch.Generator().manual_seed(seed)
    schedule = denoiser.schedule
    x_0 = toy_language(rows, generator)
    total = length_term(schedule, denoiser.length, x_0.lengths).double()
    for t in range(1, STEPS + 1):
        times = torch.full((rows,), t)
        noised = Noised.draw(schedule, x_0, times, generator=generator)
        total += step_terms(schedule, denoiser(noised.seen, times), noised).total
    return total.mean().item(), total.std().item() / rows**0.5


@pytest.mark.parametrize("rate", [0.5, pytest.param(0.0, marks=pytest.mark.slow)])
def test_toy_language_is_learned(rate: float) -> None:
    true, independent = entropies()
    denoiser = train(rate, seed=0, updates=900)
    mean, error = bound(denoiser, rows=2000, seed=1)
    print(f"rate {rate}: {mean:.3f} ± {error:.3f} in {true:.3f}…{independent:.3f} nats")
    assert mean < independent - (independent - true) / 3
    assert mean > true - 3 * error
    # Sampled chains give the same bound, in another way and with other noise.
    chains = evaluate(
        denoiser,
        [toy_language(1000, torch.Generator().manual_seed(2))],
        seed=3,
        max_length=None,
        progress=False,
    ).nats_per_sequence
    print(f"  by chains: {chains.mean:.3f} ± {chains.standard_error:.3f}")
    assert abs(chains.mean - mean) < 4 * math.hypot(error, chains.standard_error)
