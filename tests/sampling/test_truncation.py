"""Temperature and top-p change what they should and never leave nothing to sample from."""

import pytest
import torch

from indel import Batch
from indel.model import DenoiserOutput
from indel.model.reverse import EditWeights, ReverseStep
from indel.process import AbsorbingTransition, IdentityTransition, Schedule, Step
from indel.sampling.truncation import OFF, Sharpening, sharpened

LOGITS = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]).log()


def test_temperature_divides_the_logits() -> None:
    sharp = Sharpening(temperature=0.5)(LOGITS).softmax(dim=-1)
    squares = LOGITS.exp().square()
    torch.testing.assert_close(sharp, squares / squares.sum(dim=-1, keepdim=True))


def test_low_temperatures_lead_to_the_likeliest() -> None:
    best = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for temperature in (0.0, 1e-30, 1e-3):
        assert torch.equal(Sharpening(temperature)(LOGITS).softmax(dim=-1), best)


@pytest.mark.parametrize(
    ("top_p", "expected"),
    [
        (0.999, [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]),
        (0.7, [[0.625, 0.375, 0.0], [0.25, 0.0, 0.75]]),
        (1e-9, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    ],
)
def test_top_p_keeps_the_smallest_set_of_that_share(
    top_p: float, expected: list[list[float]]
) -> None:
    kept = Sharpening(top_p=top_p)(LOGITS).softmax(dim=-1)
    torch.testing.assert_close(kept, torch.tensor(expected))


def test_temperature_comes_before_top_p() -> None:
    # At temperature ½ the first value alone has 0.25/0.38 of the probability.
    kept = Sharpening(temperature=0.5, top_p=0.6)(LOGITS[:1])
    assert (kept > -torch.inf).tolist() == [[True, False, False]]


@pytest.mark.parametrize("bad", [{"temperature": -1.0}, {"top_p": 0.0}, {"top_p": 1.5}])
def test_bad_settings_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must"):
        Sharpening(**bad)


def test_not_a_number_is_refused() -> None:
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="temperature must"):
            Sharpening(temperature=bad)


# ---------------------------------------------------------------- with q

# Masking with deletions; at step 2 something was inserted before and may be deleted.
SCHEDULE = Schedule(
    [
        Step(0.2, 0.0, AbsorbingTransition(3, 0.5, mask=2)),
        Step(0.2, 0.3, AbsorbingTransition(3, 0.5, mask=2), torch.tensor([0.0, 0.5, 0.5])),
        Step(0.0, 1.0, IdentityTransition(3)),
    ]
)
DEL = 4


def outputs(seen: Batch, favourite: int) -> DenoiserOutput:
    """All weight on one edit, and on as many deletions."""
    tokens = torch.zeros(*seen.tokens.shape, 4)
    tokens[..., favourite] = 20.0
    deletions = torch.zeros(len(seen), seen.width + 1, 4)
    deletions[..., favourite] = 20.0
    return DenoiserOutput(tokens, deletions)


@pytest.mark.parametrize("sharpening", [Sharpening(0.0), Sharpening(0.01), Sharpening(top_p=0.5)])
@pytest.mark.parametrize("favourite", range(4))
@pytest.mark.parametrize("t", [1, 2, 3])
def test_a_bold_guess_at_an_impossible_edit(t: int, favourite: int, sharpening: Sharpening) -> None:
    rows = [[0, 2, 1], [2], []] if t == 1 else [[0, 2, DEL], [DEL], [1]] if t == 2 else [[DEL], []]
    seen = Batch.from_lists(rows)
    times, tables = torch.full((len(rows),), t), SCHEDULE.tables(torch.device("cpu"))
    weights = EditWeights.normalized(tables.jump)
    output = sharpened(
        outputs(seen, favourite),
        seen,
        times,
        tables,
        weights,
        tokens=sharpening,
        deletions=sharpening,
    )
    step = ReverseStep.of(SCHEDULE, output, seen, times)
    total = step.logp_previous.exp().sum(dim=-1)
    torch.testing.assert_close(total[seen.mask], torch.ones_like(total[seen.mask]))
    assert bool(torch.isfinite(step.logp_deleted.exp()).all())
    x_prev = step.sample(generator=torch.Generator().manual_seed(0))
    assert bool((step.log_prob(x_prev) > -torch.inf).all())


def test_barring_the_impossible_does_not_change_the_law() -> None:
    seen = Batch.from_lists([[0, 2, DEL, 1], [2]])
    times, tables = torch.tensor([2, 1]), SCHEDULE.tables(torch.device("cpu"))
    weights = EditWeights.normalized(tables.jump)
    generator = torch.Generator().manual_seed(1)
    output = DenoiserOutput(
        torch.randn(2, 4, 4, generator=generator), torch.randn(2, 5, 4, generator=generator)
    )
    # As good as off, but not skipped.
    nearly = Sharpening(temperature=1.0, top_p=1.0 - 1e-12)
    barred = sharpened(output, seen, times, tables, weights, tokens=nearly, deletions=nearly)
    assert bool((barred.logits_token == -torch.inf).any())
    plain = ReverseStep.of(SCHEDULE, output, seen, times)
    step = ReverseStep.of(SCHEDULE, barred, seen, times)
    torch.testing.assert_close(step.logp_previous[seen.mask], plain.logp_previous[seen.mask])
    torch.testing.assert_close(step.logp_deleted, plain.logp_deleted)


def test_off_returns_the_logits_themselves() -> None:
    seen = Batch.from_lists([[0]])
    output, tables = outputs(seen, 0), SCHEDULE.tables(torch.device("cpu"))
    weights = EditWeights.normalized(tables.jump)
    same = sharpened(output, seen, torch.tensor([1]), tables, weights, tokens=OFF, deletions=OFF)
    assert same.logits_token is output.logits_token
    assert same.logits_deletions is output.logits_deletions
