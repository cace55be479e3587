"""A model that takes frozen tokens as given is sampled by its own conditional law."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
import torch

from indel import Batch, CharacterVocabulary, RowSeeds
from indel.model import Denoiser
from indel.model.gap_network import UnmarkedNetwork
from indel.process import AbsorbingTransition, Schedule
from indel.process.gaps import Gaps
from indel.sampling.gap_chains import fill_gaps
from indel.sampling.generation import SamplingOptions
from indel.sampling.given_tokens import start_laws, takes_as_given
from indel.sampling.particles import HeldSamples, sample_held
from indel.sampling.patterns import EVERYTHING, Gap, Pattern
from indel.sampling.renoising import mutate
from indel.sampling.rewards import Steering
from indel.sampling.truncation import Sharpening
from support.conditional_chains import (
    SHORT,
    Contents,
    conditional_law,
    marked_denoiser,
    start_probs,
    with_marks,
)
from support.denoisers import tiny_denoiser
from support.frequencies import Outcome, chi_square_p
from support.held_chains import fit_some, held_denoiser

MIDDLE = Pattern.of([[0], Gap(), [1]])
TWO = Pattern.of([Gap(), [1, 0], Gap()])


def drawn(denoiser: Denoiser, pattern: Pattern, rows: int, particles: int = 1) -> HeldSamples:
    return sample_held(
        denoiser, pattern, rows, generator=RowSeeds(torch.arange(rows)), particles=particles
    )


def counted(samples: HeldSamples) -> dict[Outcome, int]:
    found: dict[Outcome, int] = {}
    for gaps in samples.gaps:
        key = tuple(tuple(map(int, gap.split())) for gap in gaps)
        found[key] = found.get(key, 0) + 1
    return found


@pytest.fixture(scope="module")
def model() -> tuple[Denoiser, dict[Contents, float]]:
    denoiser = marked_denoiser(0)
    return denoiser, conditional_law(denoiser, MIDDLE)


def test_samples_have_the_conditional_law(model: tuple[Denoiser, dict[Contents, float]]) -> None:
    denoiser, law = model
    samples = drawn(denoiser, MIDDLE, 4000)
    assert chi_square_p(counted(samples), law) > 0.01
    # The frozen tokens are not drawn: they have no weight.
    assert bool((samples.log_normalizer.abs() < 1e-6).all())


def test_counts_know_what_is_frozen() -> None:
    """A model trained with frozen tokens that has counts, enumerated with a gap and without."""
    denoiser = marked_denoiser(3, SHORT, contexts=12)
    law = conditional_law(denoiser, TWO)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-6)
    assert chi_square_p(counted(drawn(denoiser, TWO, 2000)), law) > 0.01
    # Counts of other data are told apart.
    other = copy.deepcopy(denoiser)
    assert other.prior is not None
    other.prior.fit([np.array([1, 1, 1, 0])] * 20)
    assert chi_square_p(counted(drawn(other, TWO, 2000)), law) < 1e-3


@cache
def free_law() -> tuple[Denoiser, dict[Contents, float]]:
    """A free model whose counts are told what is frozen, and the law of what it writes."""
    denoiser = held_denoiser(1, longest=3, contexts=12)
    lengths = denoiser.length.log_prob(torch.tensor([2, 3])).detach().exp()
    return denoiser, conditional_law(denoiser, MIDDLE, [(lengths / lengths.sum()).tolist()])


def test_counts_of_a_free_model_look_ahead() -> None:
    """Its counts are told: the law is a product of normalized steps, and nothing is weighed."""
    denoiser, law = free_law()
    samples = drawn(denoiser, MIDDLE, 3000)
    assert chi_square_p(counted(samples), law) > 0.01
    conditioned = sample_held(
        denoiser,
        MIDDLE,
        3000,
        generator=RowSeeds(torch.arange(3000)),
        options=SamplingOptions(look_ahead=False),
    )
    assert chi_square_p(counted(conditioned), law) < 1e-4
    assert float(conditioned.log_normalizer.max()) < float(samples.log_normalizer.min())


def test_gaps_of_different_sequences_are_filled_side_by_side() -> None:
    denoiser, law = free_law()
    rows = 2000
    frozen = Batch.from_lists([[0, 1], [1]] * rows)
    gaps = Gaps(frozen, torch.tensor([[False, True, False], [True, False, False]] * rows))
    generator = RowSeeds(torch.arange(2 * rows))
    lengths = denoiser.length.log_prob(torch.tensor([2, 3])).detach().exp()
    one = torch.rand(2 * rows, generator=torch.Generator().manual_seed(0)) < (
        lengths[1] / lengths.sum()
    )
    weights = denoiser.edit_weights(denoiser.schedule.tables(denoiser.device).jump)

    def filled(gaps: Gaps, counts: torch.Tensor, noise: RowSeeds) -> Batch:
        network = UnmarkedNetwork(denoiser)
        return fill_gaps(network, denoiser.schedule, weights, gaps, counts, generator=noise)

    found = filled(gaps, one.long(), generator).to_lists()
    shares: dict[Outcome, int] = {}
    for row in found[::2]:
        shares[(tuple(row),)] = shares.get((tuple(row),), 0) + 1
    assert chi_square_p(shares, law) > 0.01
    # A row of its own, with one seed, draws the same.
    some = torch.tensor([4])
    alone = Gaps(frozen.rows(some), gaps.open[some])
    again = filled(alone, one.long()[some], RowSeeds(torch.tensor([4])))
    assert again.to_lists() == [found[4]]


def test_gaps_are_drawn_together() -> None:
    """What is in one gap says something about the other: the network sees both."""
    denoiser = marked_denoiser(2, SHORT)
    law = conditional_law(denoiser, TWO)
    assert chi_square_p(counted(drawn(denoiser, TWO, 4000)), law) > 0.01


def test_another_model_is_told_apart(model: tuple[Denoiser, dict[Contents, float]]) -> None:
    denoiser, law = model
    other = copy.deepcopy(denoiser)
    assert other.marks is not None
    with torch.no_grad():
        other.marks.weight.mul_(0.5)
    assert chi_square_p(counted(drawn(other, MIDDLE, 4000)), law) < 1e-3


def test_bounded_gaps_have_the_law_given_their_length(
    model: tuple[Denoiser, dict[Contents, float]],
) -> None:
    denoiser, law = model
    pattern = Pattern.of([[0], Gap(1, 2), [1]])
    allowed = {key: prob for key, prob in law.items() if 1 <= len(key[0]) <= 2}
    total = sum(allowed.values())
    samples = drawn(denoiser, pattern, 2000, particles=24)
    assert chi_square_p(counted(samples), {k: v / total for k, v in allowed.items()}) > 0.01
    one = drawn(denoiser, pattern, 2000)
    weights = one.log_normalizer.exp()
    assert abs(weights.mean().item() - total) < 4 * weights.std().item() / 2000**0.5


def test_the_start_is_that_of_the_bound(model: tuple[Denoiser, dict[Contents, float]]) -> None:
    denoiser, _ = model
    with torch.no_grad():
        laws = start_laws(denoiser, TWO, 4)
    expected = torch.zeros(3, 5)
    expected[:, 0] = 1.0
    first, last = start_probs(denoiser, TWO, 4)
    expected[0], expected[2] = torch.tensor(first), torch.tensor(last)
    assert torch.allclose(laws, expected, atol=1e-6)


@pytest.mark.parametrize(("limit", "contexts"), [(None, 0), (6, 0), (9, 0), (9, 12)])
@pytest.mark.parametrize("in_place", [False, True])
def test_frozen_tokens_come_out_unchanged(limit: int | None, contexts: int, in_place: bool) -> None:
    """Thousands of samples: also where q could not have made the frozen tokens at all."""
    schedule = Schedule.paper(2, 4, 0.6)
    if in_place:
        schedule = Schedule.paper(
            2, 4, 0.0, transition=lambda size, keep: AbsorbingTransition(size, keep, 1)
        )
    denoiser = tiny_denoiser(schedule, seed=5, max_length=12, frozen="spans", contexts=contexts)
    fit_some(denoiser)
    with_marks(denoiser, 5)
    with torch.no_grad():
        denoiser.deletions_head.bias.copy_(torch.tensor([0.0, 1.0, 2.0]))
    patterns = (MIDDLE, TWO, Pattern.of([[0, 0, 0], Gap()]), Pattern.of([Gap(1, 2), [0, 1]]))
    for number, pattern in enumerate(patterns):
        steering = Steering(lambda texts: [-text.count("0") for text in texts], 3.0)
        samples = sample_held(
            denoiser,
            pattern,
            200,
            generator=RowSeeds(torch.arange(200) + 1000 * number),
            particles=1 + number % 2,
            steering=steering if number % 2 else None,
            options=SamplingOptions(max_length=limit, tokens=Sharpening(0.7, 0.9)),
        )
        for row, marks in zip(samples.x.to_lists(), samples.frozen.tolist(), strict=True):
            kept = [token for token, mark in zip(row, marks, strict=False) if mark]
            assert tuple(kept) == pattern.tokens
            assert len(row) <= (limit or 12)


def test_a_row_depends_on_its_own_seed_alone() -> None:
    denoiser = with_marks(
        tiny_denoiser(Schedule.paper(2, 4, 0.6), max_length=20, frozen="spans"), 1
    )
    together = drawn(denoiser, TWO, 12)
    for row in (3, 11):
        own = RowSeeds(torch.tensor([row]))
        alone = sample_held(denoiser, TWO, 1, generator=own)
        assert alone.x.to_lists() == [together.x.to_lists()[row]]


def test_mutations_keep_what_is_given() -> None:
    denoiser = with_marks(
        tiny_denoiser(Schedule.paper(2, 6, 0.6), max_length=20, max_deletions=8, frozen="spans"), 1
    )
    tokens = [0, 1, 1, 0, 1, 0]
    noise = RowSeeds(torch.arange(20))
    near = mutate(denoiser, tokens, 20, edits=(1, 4), keep=[(1, 4)], generator=noise)
    for row, marks in zip(near.samples.x.to_lists(), near.samples.frozen.tolist(), strict=True):
        assert [token for token, mark in zip(row, marks, strict=False) if mark] == [1, 1, 0]


def test_which_patterns_a_model_takes_as_given() -> None:
    letters = CharacterVocabulary("ab\t")
    schedule = Schedule.paper(3, 4, 0.6)
    free, spans, source = (
        tiny_denoiser(schedule, letters, frozen=kind) for kind in ("nothing", "spans", "source")
    )
    pair, suffix = Pattern.parse("ab\t{}", letters), Pattern.parse("{}ab\t", letters)
    later, twice = Pattern.parse("ab\ta{}", letters), Pattern.parse("a\t\t{}", letters)
    assert not takes_as_given(free, pair)
    assert takes_as_given(spans, suffix)
    assert not takes_as_given(spans, EVERYTHING)
    assert takes_as_given(source, pair)
    for pattern in (suffix, later, twice, EVERYTHING):
        assert not takes_as_given(source, pattern)
        # Conditioned step by step, it works all the same.
        samples = sample_held(
            source,
            pattern,
            5,
            generator=RowSeeds(torch.arange(5)),
            options=SamplingOptions(max_length=8),
        )
        assert len(samples.texts) == 5
