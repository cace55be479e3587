"""One network for several numbers of steps: each is a model with a bound of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from indel import Batch, RowSeeds
from indel.bound.likelihood import chain_bound
from indel.model import Denoiser
from indel.model.noise_levels import KNOTS, NoiseLevelEmbedding, noise_levels
from indel.process import Schedule
from indel.sampling.generation import generate
from indel.sampling.patterns import EVERYTHING
from support.conditional_chains import SHORT
from support.denoisers import tiny_denoiser
from support.held_chains import MOST_BIRTHS, SCHEDULE, enumerated_law


def several(seed: int = 0) -> Denoiser:
    """A model of three and of two steps, each with at most one token in x_T."""
    denoiser = tiny_denoiser(
        SCHEDULE,
        seed=seed,
        max_length=20,
        max_deletions=MOST_BIRTHS,
        noise_levels=True,
        other_schedules=(SHORT,),
    )
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        denoiser.deletions_head.bias.copy_(torch.tensor([0.0, -0.5]))
        for each in (denoiser, denoiser.with_steps(2)):
            each.length.logits.normal_(generator=noise)
            each.length.logits[2:] = -torch.inf
    return denoiser


@pytest.mark.parametrize("steps", [3, 2])
def test_each_number_of_steps_has_its_own_bound(steps: int) -> None:
    """E[exp(−nats)] is the enumerated p_θ(x_0) of that process, and not of the other."""
    denoiser, rows = several(), 4000
    chosen, other = denoiser.with_steps(steps), denoiser.with_steps(5 - steps)
    law, others = enumerated_law(chosen, EVERYTHING), enumerated_law(other, EVERYTHING)
    told_apart = False
    for x in ((), (0,), (1, 0)):
        batch = Batch.from_lists([list(x)] * rows)
        noise = RowSeeds(torch.arange(rows))
        with torch.no_grad():
            weights = (-chain_bound(chosen, batch, generator=noise, max_length=None).nats).exp()
        error = weights.std().item() / rows**0.5
        assert abs(weights.mean().item() - law[(x,)]) < 4 * error + 1e-12
        told_apart |= abs(weights.mean().item() - others[(x,)]) > 6 * error
    assert told_apart


def test_levels_rise_to_one() -> None:
    for schedule in (SCHEDULE, SHORT, Schedule.paper(28, 32, 0.6), Schedule.paper(5, 8, 0.0)):
        levels = noise_levels(schedule)
        assert len(levels) == schedule.num_steps
        assert levels == sorted(levels)
        assert levels[0] > 0
        assert levels[-1] == 1.0
    coarse, fine = (noise_levels(Schedule.paper(28, steps, 0.6)) for steps in (8, 36))
    # s = 1/7 and 2/7 are t = 1, 2 of 8 and t = 5, 10 of 36.
    assert coarse[:2] == pytest.approx([fine[4], fine[9]])


def test_embeddings_lie_on_lines() -> None:
    levels = [0.0, 0.01, 0.5, 0.77, 1.0]
    embedding = NoiseLevelEmbedding(levels, 3)
    torch.nn.init.normal_(embedding.weight, generator=torch.Generator().manual_seed(0))
    found = embedding(torch.arange(5)).detach().numpy()
    knots = np.linspace(0.0, 1.0, KNOTS)
    for column, weights in enumerate(embedding.weight.detach().numpy().T):
        assert np.allclose(found[:, column], np.interp(levels, knots, weights), atol=1e-6)


def test_weights_are_shared_and_lengths_are_not(tmp_path: Path) -> None:
    denoiser = several()
    two = denoiser.with_steps(2)
    assert denoiser.with_steps(3) is denoiser
    assert (denoiser.schedule, two.schedule) == (SCHEDULE, SHORT)
    assert two.embedding is denoiser.embedding
    assert two.length is not denoiser.length
    assert denoiser.step_choices == (3, 2)
    assert two.step_choices == (2,)
    x = Batch.from_lists([[0, 1]])
    same_level = denoiser(x, 1).logits_token
    assert not torch.equal(two(x, 1).logits_token, same_level)
    with torch.no_grad():
        denoiser.embedding.weight.add_(1.0)
    assert not torch.equal(denoiser(x, 1).logits_token, same_level)
    denoiser.save_pretrained(tmp_path / "both")
    loaded = Denoiser.from_pretrained(tmp_path / "both")
    assert loaded.config == denoiser.config
    for steps in (3, 2):
        before, after = denoiser.with_steps(steps), loaded.with_steps(steps)
        assert torch.equal(before(x, 1).logits_token, after(x, 1).logits_token)
        assert torch.equal(before.length.logits, after.length.logits)
    # A model of one of them alone is a model too.
    two.save_pretrained(tmp_path / "two")
    alone = Denoiser.from_pretrained(tmp_path / "two")
    assert torch.equal(alone(x, 1).logits_token, two(x, 1).logits_token)
    assert alone.schedule == SHORT


def test_sampling_takes_the_steps_asked_for() -> None:
    denoiser = several()
    for steps in (3, 2):
        noise = RowSeeds(torch.arange(3))
        assert generate(denoiser.with_steps(steps), 3, generator=noise).network_calls == steps


def test_bad_processes_are_refused() -> None:
    with pytest.raises(ValueError, match="trained for 3 or 2 steps, got 7"):
        several().with_steps(7)
    with pytest.raises(ValueError, match="must differ in their number of steps"):
        tiny_denoiser(SCHEDULE, noise_levels=True, other_schedules=(SCHEDULE,))
    with pytest.raises(ValueError, match="must be told the noise level"):
        tiny_denoiser(SCHEDULE, other_schedules=(SHORT,))
    with pytest.raises(ValueError, match="the same number of regular tokens"):
        tiny_denoiser(SCHEDULE, noise_levels=True, other_schedules=(Schedule.paper(3, 2, 0.5),))
    with pytest.raises(ValueError, match="there is nothing to be told"):
        tiny_denoiser(SCHEDULE, noise_levels=True, time_embedding=False)
