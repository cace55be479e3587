"""A limit on the length is kept by one draw from the law given that it is kept, however rare."""

import math
from collections import Counter

import pytest
import torch
from scipy import stats

from indel import Batch, RowSeeds
from indel.process import Schedule, corrupt, corrupt_chain, corrupt_step, log_prob_within
from indel.process.length_limit import draw_places, logp_within
from support.frequencies import chi_square_p

DRAWS = 60_000


@pytest.mark.parametrize("max_length", [0, 3, 127])
def test_the_chance_to_fit_is_a_sum_of_negative_binomials(max_length: int) -> None:
    more = torch.tensor([0.0, 1e-9, 0.2, 0.9], dtype=torch.float64)
    actual = logp_within(more, max_length)
    for row, insert in enumerate(more.tolist()):
        for tokens in range(max_length + 1):
            expected = stats.nbinom.logcdf(max_length - tokens, tokens + 1, 1 - insert)
            assert actual[row, tokens].item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def counted_places(
    tokens: int, emit: float, more: float, max_length: int, *, seed: int = 0
) -> Counter[tuple[tuple[int, ...], tuple[int, ...]]]:
    """How often each set of emitted tokens comes with each row of inserts."""
    emitted, inserts = draw_places(
        torch.ones(DRAWS, tokens, dtype=torch.bool),
        torch.full((DRAWS,), emit, dtype=torch.float64),
        torch.full((DRAWS,), more, dtype=torch.float64),
        max_length,
        generator=torch.Generator().manual_seed(seed),
    )
    # Inserts after a token that is not emitted mean nothing.
    counts = torch.cat([inserts[:, :1], inserts[:, 1:] * emitted - (~emitted).long()], dim=1)
    return Counter(
        (tuple(row), tuple(count))
        for row, count in zip(emitted.long().tolist(), counts.tolist(), strict=True)
    )


def law_of_places(
    tokens: int, emit: float, more: float, max_length: int
) -> dict[tuple[tuple[int, ...], tuple[int, ...]], float]:
    """By definition: every arrangement that fits, one coin after the other, renormalised."""
    law = {}

    def go_on(emitted: tuple[int, ...], counts: tuple[int, ...], prob: float) -> None:
        used = sum(emitted) + sum(count for count in counts if count > 0)
        if used > max_length:
            return
        if len(emitted) == tokens:
            law[emitted, counts] = prob
            return
        go_on((*emitted, 0), (*counts, -1), prob * (1 - emit))
        for count in range(max_length + 1):
            go_on((*emitted, 1), (*counts, count), prob * emit * more**count * (1 - more))

    for count in range(max_length + 1):
        go_on((), (count,), more**count * (1 - more))
    return {key: prob / sum(law.values()) for key, prob in law.items()}


@pytest.mark.parametrize(
    ("tokens", "emit", "more", "max_length"),
    [(3, 0.8, 0.6, 2), (2, 0.3, 0.5, 4), (3, 1.0, 0.7, 4), (0, 0.5, 0.5, 3), (2, 0.5, 0.0, 1)],
)
def test_places_are_drawn_from_the_enumerated_law(
    tokens: int, emit: float, more: float, max_length: int
) -> None:
    law = law_of_places(tokens, emit, more, max_length)
    assert chi_square_p(counted_places(tokens, emit, more, max_length), law) > 1e-3


@pytest.mark.parametrize(("emit", "more"), [(0.8 * 1.1, 0.6), (0.8, 0.6 * 1.1)])
def test_the_same_test_sees_a_chance_ten_per_cent_off(emit: float, more: float) -> None:
    law = law_of_places(3, 0.8, 0.6, 2)
    assert chi_square_p(counted_places(3, emit, more, 2), law) < 1e-3


STEEP = Schedule.paper(27, 32, 0.8)


def test_a_step_that_hardly_ever_fits_is_drawn_all_the_same() -> None:
    """126 tokens and a limit of 127: P ≈ e⁻¹⁶ at this step, and one insert at most."""
    time, limit = 30, 127
    x_prev = Batch.from_lists([[0] * 126] * 4000)
    assert log_prob_within(STEEP, x_prev, time, limit)[0].item() < -15
    noise = torch.Generator().manual_seed(1)
    x_t = corrupt_step(STEEP, x_prev, time, generator=noise, max_length=limit)
    insert = STEEP.tables(torch.device("cpu")).step.insert[time].item()
    odds = 127 * insert
    inserted = (x_t.tokens == STEEP.ins).sum(dim=1)
    assert set(inserted.tolist()) == {0, 1}
    ones = int(inserted.sum())
    assert stats.binomtest(ones, 4000, odds / (1 + odds)).pvalue > 1e-3
    # Where it stands is uniform over 127 gaps: mean 63, variance (127² − 1)/12.
    where = (x_t.tokens == STEEP.ins).long().argmax(dim=1)[inserted == 1].double()
    assert abs(where.mean().item() - 63) < 4 * math.sqrt((127**2 - 1) / 12 / ones)


def test_a_chain_that_starts_at_the_limit_reaches_the_end() -> None:
    x_0 = Batch.from_lists([[1] * 64] * 64)
    chain = corrupt_chain(STEEP, x_0, generator=torch.Generator().manual_seed(2), max_length=64)
    assert max(int(x_t.lengths.max()) for x_t in chain) == 64
    assert set(chain[-1].tokens[chain[-1].mask].tolist()) <= {STEEP.del_}


def test_a_jump_that_hardly_ever_fits() -> None:
    x_0 = Batch.from_lists([[1] * 64] * 100)
    x_t, _ = corrupt(STEEP, x_0, 2, generator=torch.Generator().manual_seed(3), max_length=20)
    assert int(x_t.lengths.max()) == 20


def test_a_row_is_drawn_alike_alone_and_in_a_batch() -> None:
    rows = [[1] * 30, [], [2] * 12, [0] * 30]
    seeds = torch.arange(10, 14)
    together = corrupt(
        STEEP, Batch.from_lists(rows), 20, generator=RowSeeds(seeds), max_length=30
    ).x_t
    for row, tokens in enumerate(rows):
        alone = corrupt(
            STEEP,
            Batch.from_lists([tokens]),
            20,
            generator=RowSeeds(seeds[row : row + 1]),
            max_length=30,
        ).x_t
        assert alone.to_lists() == [together.to_lists()[row]]
