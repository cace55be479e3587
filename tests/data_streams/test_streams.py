"""What all streams have in common: any example, by number, in any order and in any company."""

import inspect
import itertools
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from indel.batch import Batch
from indel.data import (
    SPLITS,
    ArithmeticData,
    BatchStream,
    HuggingFaceText,
    LengthSorted,
    Text8Sample,
    TextFiles,
)
from indel.randomness import RowSeeds, seeds_for
from indel.vocabularies import ByteVocabulary

Maker = Callable[[int], BatchStream]


def text_files(folder: Path) -> Maker:
    path = folder / "numbers.txt"
    path.write_text(" ".join(map(str, range(3000))))
    return lambda seed: TextFiles(path, ByteVocabulary(), 40, seed=seed, cache=folder / "cache")


def hugging_face(folder: Path) -> Maker:
    path = folder / "numbers.jsonl"
    lines = [json.dumps({"text": "x" * (number % 7) + str(number)}) for number in range(500)]
    path.write_text("\n".join(lines))
    return lambda seed: HuggingFaceText(path, ByteVocabulary(), 8, seed=seed, block=32)


@pytest.fixture(params=["arithmetic", "sample", "sorted", "files", "hugging face"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
    makers: dict[str, Callable[[], Maker]] = {
        "arithmetic": lambda: lambda seed: ArithmeticData(seed=seed),
        "sample": lambda: lambda seed: Text8Sample(seed=seed),
        "sorted": lambda: (
            lambda seed: LengthSorted(ArithmeticData(seed=seed), batch_size=8, pool=3)
        ),
        "files": lambda: text_files(tmp_path),
        "hugging face": lambda: hugging_face(tmp_path),
    }
    return makers[request.param]()


def test_batches_in_any_order_are_the_same(make: Maker) -> None:
    forwards, backwards = make(0), make(0)
    first = [forwards.batch(number, 8) for number in range(6)]
    second = [backwards.batch(number, 8) for number in reversed(range(6))][::-1]
    assert all(a.equals(b) for a, b in zip(first, second, strict=True))
    endless = itertools.islice(make(0).batches(8, first=2), 4)
    assert all(a.equals(b) for a, b in zip(first[2:], endless, strict=True))


@pytest.mark.parametrize("split", SPLITS)
def test_sizes_tile_one_stream(make: Maker, split: str) -> None:
    stream = make(0)
    rows = stream.examples(0, 120, split).to_lists()
    for size in (1, 7, 40, 64):
        tiled = [
            row
            for number in range(-(-120 // size))
            for row in stream.batch(number, size, split).to_lists()
        ]
        assert tiled[:120] == rows
    # Two processes, each with its half of batch 2 of 24.
    halves = [make(0).examples(2 * 24 + rank * 12, 12, split).to_lists() for rank in (0, 1)]
    assert halves[0] + halves[1] == stream.batch(2, 24, split).to_lists()


def test_resumed_far_on_it_gives_what_a_run_would_have_reached(make: Maker) -> None:
    run = make(3)
    reached = [run.batch(number, 100) for number in range(16)][-1]  # past the end of short data
    assert make(3).batch(15, 100).equals(reached)


def test_seeds_and_splits_give_other_examples(make: Maker) -> None:
    draws = [make(seed).examples(0, 20, split).to_lists() for seed in (0, 1) for split in SPLITS]
    assert all(a != b for a, b in itertools.combinations(draws, 2))


def test_examples_are_regular_tokens_and_not_too_long(make: Maker) -> None:
    stream = make(0)
    batch = stream.examples(0, 300)
    tokens = batch.tokens[batch.mask]
    assert 0 <= int(tokens.min()) <= int(tokens.max()) < stream.vocabulary.size
    assert 1 <= int(batch.lengths.min()) <= int(batch.lengths.max()) == stream.max_length


def test_another_process_gets_the_same_stream(make: Maker) -> None:
    stream = make(0)
    expected = stream.examples(50, 30)
    sent = pickle.dumps(stream)
    assert pickle.loads(sent).examples(50, 30).equals(expected)


def test_mapped_text_is_not_sent_to_another_process(tmp_path: Path) -> None:
    stream = text_files(tmp_path)(0)
    stream.examples(0, 1)
    assert len(pickle.dumps(stream)) < 2000 < stream.size("train")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda data: data.batch(-1, 8), "number must be an integer ≥ 0, got -1"),
        (lambda data: data.batch(0, 0), "size must be an integer ≥ 1, got 0"),
        (lambda data: data.examples(-1, 8), "start must be an integer ≥ 0, got -1"),
        (lambda data: data.examples(0, 0), "count must be an integer ≥ 1, got 0"),
    ],
)
def test_numbers_outside_are_refused(call: Callable[[BatchStream], Batch], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(ArithmeticData())


def test_unknown_split_is_refused() -> None:
    # Unwrapped, since the type checker of the tests would refuse it first.
    examples = inspect.unwrap(BatchStream.examples)
    with pytest.raises(ValueError, match="split must be one of train, valid, test; got 'dev'"):
        examples(ArithmeticData(), 0, 8, "dev")


@given(st.integers(0, 2**70), st.integers(0, 2**40), st.integers(1, 50))
def test_seed_of_an_example_does_not_depend_on_where_reading_began(
    seed: int, start: int, count: int
) -> None:
    seeds = seeds_for(seed, "train", start, count)
    assert len(set(seeds.tolist())) == count
    last = seeds_for(seed, "train", start + count - 1, 1)
    assert torch.equal(seeds[-1:], last)
    assert not torch.equal(seeds_for(seed, "valid", start, count), seeds)
    assert not torch.equal(seeds_for(seed + 1, "train", start, count), seeds)


def test_neighbouring_examples_have_independent_noise() -> None:
    noise = RowSeeds(seeds_for(0, "train", 0, 50_000)).uniform(1)[:, 0] - 0.5
    other = RowSeeds(seeds_for(1, "train", 0, 50_000)).uniform(1)[:, 0] - 0.5
    spread = 1 / 12 / 50_000**0.5  # of a mean product of independent numbers
    assert abs(float((noise[1:] * noise[:-1]).mean())) < 4 * spread
    assert abs(float((noise * other).mean())) < 4 * spread
