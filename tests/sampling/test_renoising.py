"""Noise in the gaps alone, mutations within their distance, and correction."""

from __future__ import annotations

import pytest
import torch

import indel
from indel import Batch, Gap, Pattern, RowSeeds, Schedule
from indel.levenshtein import edit_distance
from indel.process import log_prob
from indel.sampling import renoising
from indel.sampling.conditioning import Held
from indel.sampling.patterns import EVERYTHING
from indel.sampling.renoising import corrected, keeping, mutate, noised_gaps
from support.denoisers import tiny_denoiser
from support.frequencies import chi_square_p

SCHEDULE = Schedule.paper(4, 6, 0.5)
TEXT = [0, 1, 2, 3, 3, 2, 1, 0, 0, 1]


def levenshtein(first: list[int], second: list[int]) -> int:
    """By its definition."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        above, row[0] = row[0], i
        for j, b in enumerate(second, start=1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (a != b))
    return row[-1]


@pytest.mark.parametrize("keep", [[(0, 3)], [(2, 5), (7, 10)], []])
def test_noise_leaves_the_frozen_tokens_alone(keep: list[tuple[int, int]]) -> None:
    denoiser = tiny_denoiser(SCHEDULE, max_length=16)
    pattern, original = keeping(TEXT, keep)
    copies = original.rows(torch.zeros(200, dtype=torch.int64))
    x_t = noised_gaps(denoiser, pattern, copies, 3, generator=RowSeeds(torch.arange(200)))
    kept = tuple(token for start, end in keep for token in TEXT[start:end])
    for row, marks in zip(x_t.x.to_lists(), x_t.frozen.tolist(), strict=True):
        held = [token for token, mark in zip(row, marks, strict=False) if mark]
        assert tuple(held) == pattern.tokens == kept
        assert len(row) <= 16
    assert len(set(map(tuple, x_t.x.to_lists()))) > 100


def test_a_gap_gets_the_noise_of_a_sequence_by_itself() -> None:
    denoiser = tiny_denoiser(SCHEDULE, max_length=100)
    pattern, original = keeping([3, 0, 3], [(0, 1), (2, 3)])
    rows = torch.zeros(4000, dtype=torch.int64)
    noise = torch.Generator().manual_seed(0)
    x_t = noised_gaps(denoiser, pattern, original.rows(rows), 4, generator=noise)
    found: dict[tuple[tuple[int, ...], ...], int] = {}
    for row in x_t.x.to_lists():
        key = (tuple(row[1:-1]),)
        found[key] = found.get(key, 0) + 1
    for t, expected in ((4, True), (5, False)):
        x_0, seen = Batch.from_lists([[0]] * len(found)), Batch.from_lists([k[0] for k in found])
        probs = dict(zip(found, log_prob(SCHEDULE, x_0, seen, t).exp().tolist(), strict=True))
        assert (chi_square_p(found, probs) > 0.01) is expected


@pytest.mark.parametrize("edits", [(1, 2), (3, 6), (0, 0)])
def test_mutations_are_as_far_away_as_asked_for(edits: tuple[int, int]) -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=2, max_length=20)
    found = mutate(
        denoiser, TEXT, 12, edits=edits, keep=[(2, 5)], generator=RowSeeds(torch.arange(12))
    )
    for row, distance in zip(found.samples.x.to_lists(), found.edits.tolist(), strict=True):
        assert distance == levenshtein(TEXT, row) == edit_distance(TEXT, row)
        assert edits[0] <= distance <= edits[1]
        assert any(row[i : i + 3] == TEXT[2:5] for i in range(len(row)))
    assert int(found.attempts.min()) >= 1


def test_an_empty_sequence_can_be_mutated() -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=2, max_length=20)
    found = mutate(denoiser, [], 3, edits=(1, 5), generator=RowSeeds(torch.arange(3)))
    assert found.samples.x.lengths.tolist() == found.edits.tolist()


def test_a_mutation_depends_on_its_own_seed_alone() -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=2, max_length=20)

    def texts(*seeds: int) -> list[list[int]]:
        noise = RowSeeds(torch.tensor(seeds))
        drawn = mutate(denoiser, TEXT, len(seeds), edits=(2, 4), generator=noise)
        return drawn.samples.x.to_lists()

    together = texts(0, 1, 2, 3, 4)
    assert [texts(seed)[0] for seed in (0, 3)] == [together[0], together[3]]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"edits": (6, 3)}, "least first, got 6-3"),
        ({"edits": (1, 2), "keep": [(8, 11)]}, "0 ≤ start < end ≤ 10: got 8-11"),
        ({"edits": (1, 2), "keep": [(4, 4)]}, "got 4-4"),
        ({"edits": (1, 2), "keep": [(0, 10)]}, "cover the whole text"),
        ({"edits": (40, 50)}, "none of 3 draws was 40 to 50 edits away"),
    ],
)
def test_a_mistake_is_named(
    settings: dict[str, object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renoising, "ATTEMPTS", 3)
    denoiser = tiny_denoiser(SCHEDULE, max_length=12)
    with pytest.raises(ValueError, match=says):
        mutate(denoiser, TEXT, 1, generator=RowSeeds(torch.arange(1)), **settings)  # type: ignore[arg-type]


def test_correction_keeps_what_is_frozen_and_changes_the_rest() -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=3, max_length=20)
    pattern = Pattern.of([[1, 2], Gap(2, 5), [3]])
    samples = indel.infill(denoiser, pattern, 20)
    again = indel.infill(denoiser, pattern, 20, correct=2)
    assert again.texts != samples.texts
    for row, gaps in zip(again.x.to_lists(), again.gaps, strict=True):
        assert row[:2] == [1, 2]
        assert row[-1] == 3
        assert 2 <= len(gaps[0].split()) <= 5


def test_no_correction_changes_nothing() -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=3, max_length=20)
    assert indel.generate(denoiser, 5, correct=0).texts == indel.generate(denoiser, 5).texts
    assert indel.generate(denoiser, 5, correct=1).texts != indel.generate(denoiser, 5).texts
    assert (
        indel.generate(denoiser, 5, correct=1, batch_size=2).texts
        == indel.generate(denoiser, 5, correct=1).texts
    )
    x_0 = Held(Batch.from_lists([[0, 1]]), torch.zeros(1, 2, dtype=torch.bool))
    for rounds, depth in ((-1, 2), (1, 6), (1, 0)):
        with pytest.raises(ValueError, match="must"):
            corrected(
                denoiser,
                EVERYTHING,
                x_0,
                rounds,
                depth=depth,
                generator=RowSeeds(torch.arange(1)),
            )
