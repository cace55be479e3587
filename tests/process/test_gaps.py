"""Gaps taken apart and put together again, and what the data is frozen by."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from indel import Batch, CharacterVocabulary, IntegerVocabulary, RowSeeds
from indel.process.freezing import Freezing
from indel.process.gaps import Gaps

ROWS = st.lists(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=6), min_size=1, max_size=4
)


def parts_of(row: list[tuple[int, bool]]) -> list[list[int]]:
    """The free tokens before each frozen one and after the last."""
    parts: list[list[int]] = [[]]
    for token, frozen in row:
        if frozen:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def taken_apart(rows: list[list[tuple[int, bool]]]) -> tuple[Batch, torch.Tensor]:
    x = Batch.from_lists([[token for token, _ in row] for row in rows])
    marks = [[mark for _, mark in row] + [False] * (x.width - len(row)) for row in rows]
    return x, torch.tensor(marks, dtype=torch.bool).reshape(len(rows), x.width)


@given(ROWS)
def test_gaps_are_what_lies_between_frozen_tokens(rows: list[list[tuple[int, bool]]]) -> None:
    x, frozen = taken_apart(rows)
    gaps, contents = Gaps.split(x, frozen)
    expected = [part for row in rows for part in parts_of(row) if part]
    assert contents.to_lists() == expected
    assert gaps.frozen.to_lists() == [[token for token, mark in row if mark] for row in rows]
    joined = gaps.join(contents)
    assert joined.x == x
    assert torch.equal(joined.frozen[:, : x.width], frozen[:, : joined.x.width])
    for gap, (row, start) in enumerate(zip(gaps.row.tolist(), joined.starts.tolist(), strict=True)):
        length = len(expected[gap])
        assert x.to_lists()[row][start : start + length] == expected[gap]
    # What is read at a gap is what stands there.
    read = gaps.read(joined.x.tokens, joined.starts, contents.width)
    assert torch.equal(read[contents.mask], contents.tokens[contents.mask])
    assert gaps.summed(contents.lengths.double()).tolist() == [
        sum(not mark for _, mark in row) for row in rows
    ]


@given(ROWS)
def test_empty_gaps_may_be_open(rows: list[list[tuple[int, bool]]]) -> None:
    x, frozen = taken_apart(rows)
    is_open = torch.arange(x.width + 1) <= frozen.sum(dim=1)[:, None]
    gaps, contents = Gaps.split(x, frozen, is_open)
    assert contents.to_lists() == [part for row in rows for part in parts_of(row)]
    assert gaps.join(contents).x == x


def test_a_gap_may_get_another_length() -> None:
    x, frozen = taken_apart([[(1, False), (2, True), (3, False)], [(4, True)]])
    gaps, _ = Gaps.split(
        x, frozen, torch.tensor([[False, False, False], [True, False, False]])[:, :2]
    )
    joined = gaps.join(Batch.from_lists([[], [5, 6, 7], [8, 9]]))
    assert joined.x.to_lists() == [[2, 5, 6, 7], [8, 9, 4]]
    assert joined.frozen.tolist() == [[True, False, False, False], [False, False, True, False]]


def test_noise_belongs_to_a_sequence_and_a_place() -> None:
    x = Batch.from_lists([[1, 2, 3], [4, 5, 6]])
    gaps, _ = Gaps.split(x, torch.tensor([[False, True, False], [True, True, False]]))
    noise = gaps.noise(RowSeeds(torch.tensor([7, 8])))
    alone, _ = Gaps.split(x.rows(torch.tensor([1])), torch.tensor([[True, True, False]]))
    own = alone.noise(RowSeeds(torch.tensor([8])))
    assert isinstance(noise, RowSeeds)
    assert isinstance(own, RowSeeds)
    assert own.seeds.tolist() == noise.seeds.tolist()[2:]
    assert len(set(noise.seeds.tolist())) == 3


def test_bad_gaps_are_refused() -> None:
    x = Batch.from_lists([[1, 2]])
    with pytest.raises(ValueError, match="frozen must be a mask of the shape of x"):
        Gaps.split(x, torch.tensor([[True]]))
    with pytest.raises(ValueError, match="one more place than frozen tokens"):
        Gaps(x, torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(ValueError, match="behind the end"):
        Gaps(Batch.from_lists([[1], []]), torch.tensor([[True, True], [True, True]]))
    gaps, _ = Gaps.split(x, torch.tensor([[True, False]]))
    with pytest.raises(ValueError, match="1 gaps, but 2 contents"):
        gaps.join(Batch.from_lists([[], []]))


# ---------------------------------------------------------------- what is frozen


def test_spans_are_parts_in_turn() -> None:
    """Everything that a prompt or a pattern can be occurs, and the data stays as it was."""
    rows, length = 4000, 5
    x = Batch.from_lists([list(range(length))] * rows)
    gaps, contents = Freezing("spans")(x, generator=RowSeeds(torch.arange(rows)))
    assert gaps.join(contents).x == x
    by_row: list[list[tuple[int, int]]] = [[] for _ in range(rows)]
    for row, place, size in zip(
        gaps.row.tolist(), gaps.place.tolist(), contents.lengths.tolist(), strict=True
    ):
        by_row[row].append((place, size))
    seen = {
        (tuple(row), tuple(places))
        for row, places in zip(gaps.frozen.to_lists(), by_row, strict=True)
    }
    # A prompt, a suffix, one gap, an empty gap, two gaps, and nothing frozen.
    assert ((0, 1), ((2, 3),)) in seen
    assert ((3, 4), ((0, 3),)) in seen
    assert ((0, 4), ((1, 3),)) in seen
    assert ((0, 1, 2, 3, 4), ((2, 0),)) in seen
    assert ((0, 2, 4), ((1, 1), (2, 1))) in seen
    assert ((), ((0, 5),)) in seen
    assert all(places for _, places in seen)
    # A single cut at c, frozen first: (1/4)(1/2)(1/6) for each c, and more ways with more cuts.
    share = sum(row == [0, 1, 2, 3, 4] for row in gaps.frozen.to_lists()) / rows
    assert 0.02 < share < 0.15


def test_a_share_is_left_free() -> None:
    x = Batch.from_lists([[0, 1, 2]] * 2000)
    noise = RowSeeds(torch.arange(2000))
    frozen = Freezing("spans", 0.5)(x, generator=noise).gaps.frozen.lengths > 0
    always = Freezing("spans")(x, generator=RowSeeds(torch.arange(2000))).gaps.frozen.lengths > 0
    assert abs(frozen.double().mean() / always.double().mean() - 0.5) < 0.05
    none = Freezing("spans", 0.0)(x, generator=RowSeeds(torch.arange(2000)))
    assert bool(none.gaps.is_whole.all())
    assert none.contents == x


def test_what_is_frozen_depends_on_the_row_alone() -> None:
    x = Batch.from_lists([[0, 1, 2, 3], [4], [5, 6, 7, 8, 9, 9]])
    together = Freezing("spans")(x, generator=RowSeeds(torch.tensor([1, 2, 3])))
    alone = Freezing("spans")(
        x.rows(torch.tensor([0])).trimmed(), generator=RowSeeds(torch.tensor([1]))
    )
    assert together.gaps.frozen.to_lists()[0] == alone.gaps.frozen.to_lists()[0]
    own = (together.gaps.row == 0).nonzero()[:, 0]
    assert together.contents.rows(own).to_lists() == alone.contents.to_lists()


def test_sources_end_at_the_first_tab() -> None:
    letters = CharacterVocabulary("ab\t")
    x = Batch.from_lists([letters.encode(text) for text in ("ab\tba", "\ta", "b\t", "a\tb\tb")])
    gaps, contents = Freezing.of("source", letters)(x, generator=RowSeeds(torch.arange(4)))
    assert [letters.text(row) for row in gaps.frozen.to_lists()] == ["ab\t", "\t", "b\t", "a\t"]
    assert [letters.text(row) for row in contents.to_lists()] == ["ba", "a", "", "b\tb"]
    dropped = Freezing.of("source", letters, drop=1.0)(x, generator=RowSeeds(torch.arange(4)))
    assert [letters.text(row) for row in dropped.gaps.frozen.to_lists()] == ["\t"] * 4
    assert dropped.contents == contents


def test_bad_freezing_is_refused() -> None:
    letters = CharacterVocabulary("ab\t")
    with pytest.raises(ValueError, match="row 1 has no separator"):
        Freezing.of("source", letters)(
            Batch.from_lists([[2, 0], [0, 1]]), generator=RowSeeds(torch.arange(2))
        )
    for vocabulary in (CharacterVocabulary("ab"), IntegerVocabulary(5)):
        with pytest.raises(ValueError, match="in which the tab"):
            Freezing.of("source", vocabulary)
    with pytest.raises(ValueError, match="share must"):
        Freezing("spans", 1.5)
    with pytest.raises(ValueError, match="a separator belongs to"):
        Freezing("source")
