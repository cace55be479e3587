"""Scores of edits: the difference of two bounds, with less noise than either."""

import math

import pytest

import indel
from indel.bound.edit_scores import align, edit_scores
from indel.bound.likelihood import evaluate
from support.denoisers import tiny_denoiser

SCHEDULE = indel.Schedule.paper(4, 6, 0.5)
REFERENCE = [0, 1, 2, 3, 0, 1, 2, 3]
CHANGED = [0, 1, 2, 3, 0, 1, 1, 3]


def test_the_difference_is_that_of_the_bounds() -> None:
    denoiser = tiny_denoiser(SCHEDULE, max_length=20, max_deletions=20)
    (score,) = edit_scores(denoiser, [CHANGED], [REFERENCE], chains=400)
    means = [
        evaluate(denoiser, [indel.Batch.from_lists([x] * 400)], seed=5).nats_per_sequence
        for x in (CHANGED, REFERENCE)
    ]
    error = math.hypot(*(mean.standard_error for mean in means), score.difference.standard_error)
    assert abs(score.difference.mean - (means[0].mean - means[1].mean)) < 4 * error
    assert score.difference.mean == pytest.approx(score.nats.mean - score.reference_nats.mean)
    # Without common noise the errors would add up.
    apart = math.hypot(score.nats.standard_error, score.reference_nats.standard_error)
    assert score.difference.standard_error < 0.8 * apart


def test_nothing_changed_is_no_difference() -> None:
    denoiser = tiny_denoiser(SCHEDULE, max_length=20, max_deletions=20)
    (score,) = edit_scores(denoiser, [REFERENCE], [REFERENCE], chains=3)
    assert score.difference == (0.0, 0.0)
    assert score.alignment.t == 0
    assert score.alignment.prob == pytest.approx(1.0)
    assert score.alignment.source == tuple(range(8))


def test_an_alignment_names_the_edits() -> None:
    found = align(SCHEDULE, REFERENCE, [0, 1, 3, 0, 1, 2, 2, 3])
    assert found.source[:2] == (0, 1)
    assert found.deleted == (2,)
    assert found.source.count(-1) == 1
    assert 0.1 < found.prob <= 1.0
    impossible = align(indel.Schedule.paper(4, 6, 0.0), [0, 1], [0])
    assert impossible.log_likelihood == -math.inf
    assert math.isnan(impossible.prob)


def test_mistakes_are_named() -> None:
    denoiser = tiny_denoiser(SCHEDULE, max_length=20)
    with pytest.raises(ValueError, match="got 0 for 1"):
        edit_scores(denoiser, [REFERENCE], [])
    with pytest.raises(ValueError, match="chains must be at least 2"):
        edit_scores(denoiser, [REFERENCE], [REFERENCE], chains=1)
    with pytest.raises(ValueError, match="text 0: integer 9"):
        indel.score_edits(denoiser, [[9]], [[1]])
