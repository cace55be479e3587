"""The padded batch, against plain lists."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from indel import Batch
from indel.batch import PADDING, pack

LISTS = st.lists(st.lists(st.integers(0, 4), max_size=5), max_size=5)
FEW = settings(deadline=None, max_examples=60)


def padded(rows: list[list[int]], extra: int, fill: int) -> Batch:
    """The batch of these lists with `extra` more columns, and `fill` behind the end of each row."""
    width = max(map(len, rows), default=0) + extra
    tokens = [row + [fill] * (width - len(row)) for row in rows]
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    return Batch(torch.tensor(tokens, dtype=torch.int64).reshape(len(rows), width), lengths)


@FEW
@given(LISTS)
def test_lists_come_back_as_they_went_in(rows: list[list[int]]) -> None:
    batch = Batch.from_lists(rows)
    assert batch.to_lists() == rows
    assert batch.lengths.tolist() == [len(row) for row in rows]
    assert len(batch) == len(rows)
    assert batch.width == max(map(len, rows), default=0)
    assert batch.tokens.shape == batch.mask.shape == (len(rows), batch.width)
    assert batch.mask.sum(dim=1).tolist() == batch.lengths.tolist()
    assert batch.tokens.dtype == batch.lengths.dtype == torch.int64


@FEW
@given(LISTS, st.integers(0, 3), st.integers(-3, 9))
def test_whatever_stands_behind_the_end_is_not_seen(rows, extra: int, fill: int) -> None:
    batch = padded(rows, extra, fill)
    assert batch.to_lists() == rows
    assert (batch.tokens[~batch.mask] == PADDING).all()
    assert batch.equals(Batch.from_lists(rows))
    assert batch.without(fill).to_lists() == [[x for x in row if x != fill] for row in rows]


def test_padding_is_no_valid_token() -> None:
    assert PADDING == -1
    batch = padded([[3], []], 2, 7)
    assert batch.tokens.tolist() == [[3, -1, -1], [-1, -1, -1]]


@FEW
@given(LISTS, st.integers(0, 3), st.integers(0, 5))
def test_without_takes_one_token_out(rows: list[list[int]], extra: int, token: int) -> None:
    left = padded(rows, extra, token).without(token)
    expected = [[x for x in row if x != token] for row in rows]
    assert left.to_lists() == expected
    assert left.width == max(map(len, expected), default=0)


@FEW
@given(LISTS.filter(len), st.data())
def test_rows_are_chosen_in_any_order_and_at_the_same_width(rows, data: st.DataObject) -> None:
    index = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6))
    chosen = Batch.from_lists(rows).rows(torch.tensor(index, dtype=torch.int64))
    assert chosen.to_lists() == [rows[number] for number in index]
    assert chosen.width == max(map(len, rows))


@FEW
@given(LISTS, st.integers(0, 9))
def test_widened_and_trimmed_change_nothing_but_the_padding(rows, width: int) -> None:
    batch = Batch.from_lists(rows)
    wide = batch.widened(width)
    assert wide.to_lists() == rows
    assert wide.width == max(width, batch.width)
    assert wide.equals(batch)
    assert batch.equals(wide)
    assert torch.equal(wide.trimmed().tokens, batch.tokens)


@FEW
@given(LISTS, LISTS)
def test_equals_compares_the_sequences(first: list[list[int]], second: list[list[int]]) -> None:
    a, b = padded(first, 1, 0), padded(second, 3, 1)
    assert a.equals(b) == (first == second)
    assert b.equals(a) == (first == second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([[1, 2]], [[1, 3]]),
        ([[1, 2]], [[1]]),
        ([[1]], [[1], [1]]),
        ([[]], []),
        ([[1], []], [[], [1]]),
        ([[0]], [[]]),
    ],
)
def test_different_sequences_are_not_equal(first, second) -> None:
    assert not Batch.from_lists(first).equals(Batch.from_lists(second))


@FEW
@given(LISTS, st.data())
def test_pack_moves_what_is_kept_to_the_front(rows, data: st.DataObject) -> None:
    batch = Batch.from_lists(rows)
    size = batch.tokens.numel()
    flags = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    kept = torch.tensor(flags, dtype=torch.bool).reshape(batch.tokens.shape)
    for values, mask, packed in zip(
        batch.tokens.tolist(),
        kept.tolist(),
        pack(batch.tokens, kept, fill=-7).tolist(),
        strict=True,
    ):
        front = [value for value, keep in zip(values, mask, strict=True) if keep]
        assert packed == front + [-7] * (len(values) - len(front))


@pytest.mark.parametrize("rows", [[], [[]], [[], [], []]])
def test_no_sequences_and_empty_sequences(rows: list[list[int]]) -> None:
    batch = Batch.from_lists(rows)
    assert batch.tokens.shape == (len(rows), 0)
    for same in (batch, batch.trimmed(), batch.without(0), batch.widened(3), batch.to("cpu")):
        assert same.to_lists() == rows
        assert same.equals(batch)
    assert batch.rows(torch.zeros(0, dtype=torch.int64)).to_lists() == []


def test_a_batch_does_not_change_with_the_tensor_it_was_made_from() -> None:
    tokens = torch.tensor([[1, 2]])
    batch = Batch(tokens, torch.tensor([2]))
    tokens[0, 0] = 5
    assert batch.to_lists() == [[1, 2]]


def test_moving_keeps_the_sequences() -> None:
    batch = Batch.from_lists([[1, 2], []], device="cpu")
    moved = batch.to(torch.device("cpu"))
    assert moved.equals(batch)
    assert moved.device == batch.device == torch.device("cpu")


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        (lambda: Batch.from_lists([[1], [0, -1]]), ["row 1", "position 1", "≥ 0", "-1"]),
        (lambda: Batch.from_lists([[True]]), ["integer", "True"]),
        (
            lambda: Batch(torch.zeros(1, 3, dtype=torch.int32), torch.tensor([1])),
            ["tokens", "torch.int64", "torch.int32"],
        ),
        (
            lambda: Batch(torch.zeros(1, 3, dtype=torch.int64), torch.tensor([4])),
            ["lengths", "0…3", "4"],
        ),
        (
            lambda: Batch(torch.zeros(2, 3, dtype=torch.int64), torch.tensor([1, -1])),
            ["lengths", "0…3", "-1"],
        ),
        pytest.param(
            lambda: Batch(torch.tensor([[2, 1], [-1, 0]]), torch.tensor([2, 2])),
            ["row 1", "position 0", "-1", "≥ 0"],
        ),
    ],
)
def test_bad_input_is_refused_with_the_reason(call, fragments: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        call()
    for fragment in fragments:
        assert fragment in str(error.value)


def test_double_equals_can_be_asked() -> None:
    first, second = Batch.from_lists([[1, 2]]), Batch.from_lists([[1, 2]])
    assert first == second
    assert first == second.widened(5)
    assert first != Batch.from_lists([[1, 3]])
    assert first != [[1, 2]]
