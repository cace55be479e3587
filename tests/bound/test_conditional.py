"""The bound on p_θ(free | frozen), against an enumerated conditional model."""

from __future__ import annotations

import copy
import math
from functools import cache

import pytest
import torch

from indel import Batch, RowSeeds
from indel.bound.conditional import conditional_bound, conditional_loss, evaluate_conditional
from indel.bound.likelihood import chain_bound
from indel.bound.objective import Objective
from indel.model import Denoiser
from indel.process import IdentityTransition, MatrixTransition, Schedule, Step
from indel.process.freezing import Divided, Freezing
from indel.sampling.patterns import Gap, Pattern
from support.conditional_chains import (
    SHORT,
    Contents,
    conditional_law,
    gaps_of,
    laid_out,
    marked_denoiser,
    start_probs,
    with_marks,
)
from support.denoisers import tiny_denoiser
from support.held_chains import SCHEDULE

MIDDLE = Pattern.of([[0], Gap(), [1]])
PROMPT = Pattern.of([[1, 1, 0], Gap()])
TWO = Pattern.of([Gap(), [1], Gap()])


def divided(pattern: Pattern, contents: Contents, rows: int = 1) -> Divided:
    """So many copies of a sequence, with these contents of its gaps."""
    return Divided(gaps_of(pattern, rows), Batch.from_lists([list(gap) for gap in contents] * rows))


def nats(denoiser: Denoiser, pattern: Pattern, contents: Contents, rows: int) -> torch.Tensor:
    noise = RowSeeds(torch.arange(rows))
    with torch.no_grad():
        return conditional_bound(
            denoiser, divided(pattern, contents, rows), generator=noise, max_length=None
        ).nats


@cache
def enumerated(pattern: Pattern) -> tuple[Denoiser, dict[Contents, float]]:
    """A model, and its law of the gaps of a pattern; two gaps have too many ways with T = 3."""
    denoiser = marked_denoiser(int(pattern != MIDDLE), SHORT if pattern == TWO else SCHEDULE)
    return denoiser, conditional_law(denoiser, pattern)


@pytest.mark.parametrize("pattern", [MIDDLE, PROMPT, TWO], ids=["middle", "prompt", "two"])
def test_the_conditional_model_is_normalized(pattern: Pattern) -> None:
    assert sum(enumerated(pattern)[1].values()) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("pattern", [MIDDLE, PROMPT, TWO], ids=["middle", "prompt", "two"])
def test_chains_weigh_as_much_as_the_enumerated_probability(pattern: Pattern) -> None:
    """E[exp(−nats)] = p_θ(free | frozen): so the mean of the nats is a bound on −log of it."""
    denoiser, law = enumerated(pattern)
    rows = 3000
    one: list[Contents] = [((),), ((0,),), ((1, 0),)]
    two: list[Contents] = [((), ()), ((0,), (1,)), ((1, 0), ())]
    for contents in two if pattern is TWO else one:
        weights = (-nats(denoiser, pattern, contents, rows)).exp()
        error = weights.std().item() / rows**0.5
        assert error < 0.1 * law[contents]
        assert abs(weights.mean().item() - law[contents]) < 4 * error + 1e-12


def test_another_model_is_told_apart() -> None:
    """What the marks say matters: without them the same test fails."""
    denoiser, law = enumerated(MIDDLE)
    other = copy.deepcopy(denoiser)
    assert other.marks is not None
    with torch.no_grad():
        other.marks.weight.zero_()
    weights = (-nats(other, MIDDLE, ((0,),), 3000)).exp()
    error = weights.std().item() / 3000**0.5
    assert abs(weights.mean().item() - law[((0,),)]) > 6 * error


@pytest.mark.parametrize(
    ("pattern", "contents"),
    [
        (MIDDLE, ((),)),
        (MIDDLE, ((1, 0, 0, 1, 1),)),
        (TWO, ((0, 1), ())),
        (TWO, ((), (1, 0, 0))),
        (Pattern.of([Gap(), [0], Gap(), [1, 0], Gap()]), ((1,), (0, 0), (1, 1))),
    ],
)
def test_one_step_is_exact(pattern: Pattern, contents: Contents) -> None:
    """With T = 1 x_1 is as many DELs as tokens: −log p is a sum that can be written down."""
    schedule = Schedule([Step(0.0, 1.0, IdentityTransition(2))])
    denoiser = tiny_denoiser(schedule, seed=3, max_length=12, max_deletions=2, frozen="spans")
    with_marks(denoiser, 4)
    x_1 = tuple((schedule.del_,) * len(gap) for gap in contents)
    tokens, frozen, starts = laid_out(pattern, x_1)
    with torch.no_grad():
        output = denoiser(Batch.from_lists([tokens]), 1, torch.tensor([frozen]))
    starting = start_probs(denoiser, pattern, 5)
    expected = 0.0
    for gap, begin, lengths in zip(contents, starts, starting, strict=True):
        expected -= math.log(lengths[len(gap)])
        for place, token in enumerate(gap):
            logits = output.logits_token[0, begin + place, :2]
            expected -= torch.log_softmax(logits, dim=0)[token].item()
    found = nats(denoiser, pattern, contents, 1)[0].item()
    assert found == pytest.approx(expected, rel=1e-5)


def test_lengths_at_the_start_sum_to_one() -> None:
    denoiser = marked_denoiser(2)
    with torch.no_grad():
        denoiser.deletions_head.bias.zero_()
    for probs in start_probs(denoiser, TWO, 60):
        assert sum(probs) == pytest.approx(1.0, abs=1e-12)


# ---------------------------------------------------------------- the loss


def small_model(**settings: object) -> Denoiser:
    schedule = Schedule(
        [
            Step(0.2, 0.3, MatrixTransition([[0.8, 0.2], [0.3, 0.7]]), torch.tensor([0.7, 0.3])),
            Step(0.3, 0.4, MatrixTransition([[0.6, 0.4], [0.1, 0.9]]), torch.tensor([0.2, 0.8])),
            Step(0.0, 1.0, IdentityTransition(2)),
        ]
    )
    denoiser = tiny_denoiser(
        schedule, seed=1, max_length=12, max_deletions=6, frozen="spans", **settings
    )
    return with_marks(denoiser, 1)


@pytest.mark.parametrize("marginalize", [False, True])
@pytest.mark.parametrize("mixture", [False, True])
def test_the_loss_has_the_mean_of_the_bound(marginalize: bool, mixture: bool) -> None:
    """Jumps and closed forms gap by gap, in the fast and in the dense way, and chains agree."""
    denoiser = small_model()
    if mixture:
        schedule = Schedule.paper(2, 3, 0.6)
        denoiser = with_marks(
            tiny_denoiser(schedule, seed=1, max_length=12, max_deletions=6, frozen="spans"), 1
        )
    contents, rows = ((0, 1), (1,)), 2500
    each = divided(TWO, contents, rows)
    t = 1 + torch.arange(rows) % 3
    with torch.no_grad():
        loss = conditional_loss(
            Objective(denoiser.schedule, marginalize=marginalize),
            denoiser,
            denoiser.length,
            each,
            generator=RowSeeds(torch.arange(rows)),
            t=t,
            weight=torch.full((rows,), 3.0),
        ).total.double()
    chains = nats(denoiser, TWO, contents, rows)
    error = math.hypot(loss.std().item(), chains.std().item()) / rows**0.5
    assert error < 0.6
    assert abs(loss.mean().item() - chains.mean().item()) < 4 * error
    # A gap fewer is seen.
    fewer = nats(denoiser, PROMPT, ((0, 1),), rows)
    assert abs(loss.mean().item() - fewer.mean().item()) > 6 * error


def test_frozen_tokens_have_no_part_in_the_loss() -> None:
    """The loss is zero where all is frozen, and has a gradient for the marks where some is."""
    denoiser = small_model()
    all_frozen = divided(Pattern((0, 1), (None, None, None)), ())
    settings = {"t": torch.tensor([2]), "weight": torch.tensor([3.0])}
    objective = Objective(denoiser.schedule)
    noise = RowSeeds(torch.arange(1))
    nothing = conditional_loss(
        objective, denoiser, denoiser.length, all_frozen, generator=noise, **settings
    )
    assert nothing.total.tolist() == [0.0]
    loss = conditional_loss(
        objective,
        denoiser,
        denoiser.length,
        divided(MIDDLE, ((0, 1),)),
        generator=noise,
        **settings,
    )
    loss.total.sum().backward()
    assert denoiser.marks is not None
    assert denoiser.marks.weight.grad is not None
    assert bool((denoiser.marks.weight.grad != 0).any(dim=1).all())


# ---------------------------------------------------------------- data sets


def test_nothing_frozen_is_the_usual_bound() -> None:
    denoiser = small_model()
    rows = 2000
    x_0 = Batch.from_lists([[0, 1, 1]] * rows)
    free = Freezing("spans", 0.0)(x_0, generator=RowSeeds(torch.arange(rows)))
    with torch.no_grad():
        whole = conditional_bound(denoiser, free, generator=RowSeeds(torch.arange(rows))).nats
        usual = chain_bound(denoiser, x_0, generator=RowSeeds(torch.arange(rows))).nats
    error = math.hypot(whole.std().item(), usual.std().item()) / rows**0.5
    assert error < 0.2
    assert abs(whole.mean().item() - usual.mean().item()) < 4 * error


def test_a_sequence_has_its_own_noise() -> None:
    denoiser = small_model()
    x_0 = Batch.from_lists([[0, 1, 1, 0], [1], [0, 0, 1, 1, 0, 1, 0], [], [1, 0]])
    settings = {"seed": 3, "num_times": 2}
    together = evaluate_conditional(denoiser, [x_0], Freezing("spans"), **settings)
    parts = [x_0.rows(torch.tensor(rows)).trimmed() for rows in ([0, 1, 2], [3], [4])]
    apart = evaluate_conditional(denoiser, parts, Freezing("spans"), **settings)
    assert torch.allclose(together.nats, apart.nats, atol=1e-5)
    assert torch.equal(together.lengths, apart.lengths)
    tighter = evaluate_conditional(denoiser, [x_0], Freezing("spans"), seed=3, num_chains=3)
    assert bool((tighter.part_moments.total[-1] <= 0).all())


def test_bad_requests_are_refused() -> None:
    plain = tiny_denoiser(Schedule.paper(2, 3, 0.6))
    x_0 = Batch.from_lists([[0, 1]])
    with pytest.raises(ValueError, match="was not trained with frozen tokens"):
        evaluate_conditional(plain, [x_0], Freezing("spans"), seed=0)
    with pytest.raises(ValueError, match="was not trained with frozen tokens"):
        plain(x_0, 1, torch.tensor([[True, False]]))
    with pytest.raises(ValueError, match="a gap must not be longer than max_length"):
        conditional_bound(
            small_model(), divided(MIDDLE, ((0,) * 13,)), generator=RowSeeds(torch.arange(1))
        )
    with pytest.raises(ValueError, match="importance weights need every t"):
        evaluate_conditional(
            small_model(), [x_0], Freezing("spans"), seed=0, num_times=1, num_chains=2
        )
