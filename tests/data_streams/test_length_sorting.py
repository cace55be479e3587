"""Batches of similar lengths: a new order of the same examples."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indel.data import ArithmeticData, LengthSorted


@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_each_pool_holds_the_examples_of_the_stream(size: int, pool: int, number: int) -> None:
    stream = ArithmeticData(seed=1)
    ordered = LengthSorted(stream, batch_size=size, pool=pool)
    start, count = number * size * pool, size * pool
    assert sorted(ordered.examples(start, count).to_lists()) == sorted(
        stream.examples(start, count).to_lists()
    )


def test_batches_of_a_pool_do_not_overlap_in_length() -> None:
    ordered = LengthSorted(ArithmeticData(seed=1), batch_size=32, pool=8)
    for split in ("train", "valid"):
        batches = [ordered.batch(number, 32, split) for number in range(8, 16)]  # type: ignore[arg-type]
        ranges = [(int(b.lengths.min()), int(b.lengths.max())) for b in batches]
        ascending = sorted(ranges)
        assert ranges != ascending  # or every pool would begin with its shortest examples
        assert all(a[1] <= b[0] for a, b in pairwise(ascending))
        assert all(batch.width == high for batch, (_, high) in zip(batches, ranges, strict=True))


def test_it_saves_padding() -> None:
    stream = ArithmeticData(seed=1)
    ordered = LengthSorted(stream, batch_size=32)

    def padding(source: ArithmeticData | LengthSorted) -> float:
        batches = [source.batch(number, 32) for number in range(16)]
        cells = sum(batch.tokens.numel() for batch in batches)
        return 1 - sum(int(batch.lengths.sum()) for batch in batches) / cells

    assert padding(stream) > 0.2
    assert padding(ordered) < 0.03


def test_order_of_batches_changes_from_pool_to_pool() -> None:
    ordered = LengthSorted(ArithmeticData(seed=1), batch_size=16, pool=8)
    orders = {
        tuple(
            sorted(
                range(8),
                key=[
                    float(ordered.batch(8 * pool + number, 16).lengths.double().mean())
                    for number in range(8)
                ].__getitem__,
            )
        )
        for pool in range(5)
    }
    assert len(orders) == 5


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"batch_size": 8, "pool": 0}])
def test_wrong_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be an integer ≥ 1, got 0"):
        LengthSorted(ArithmeticData(), **options)
