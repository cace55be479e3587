"""text8 itself, where it is at hand, and the sample of it that comes with the package."""

import os
import re
import zipfile
from collections import Counter
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from indel.batch import Batch
from indel.data import SPLITS, DataError, Text8Data, Text8Sample, open_data

SHARED = Path(__file__).parents[3] / "shared" / "data" / "text8" / "text8.zip"
SPANS = {"train": (0, 90), "valid": (90, 95), "test": (95, 100)}  # millions


def spelt(batch: Batch) -> list[str]:
    """The chunks as text; `decode`, which checks each token, would take too long here."""
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz -", np.uint8)
    return [letters[row].tobytes().decode() for row in batch.tokens.numpy()]


@pytest.fixture(scope="module")
def archive() -> Path:
    path = Path(os.environ.get("INDEL_TEXT8", SHARED))
    if not path.is_file():
        pytest.skip("text8.zip is not at hand; set INDEL_TEXT8 to its path to run this test")
    return path


@pytest.fixture(scope="module")
def text(archive: Path) -> bytes:
    with zipfile.ZipFile(archive) as file:
        return file.read("text8")


@pytest.fixture(scope="module")
def data(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Text8Data:
    return Text8Data(archive, seed=0, cache=tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("split", SPLITS)
def test_chunks_are_text_of_their_own_split(data: Text8Data, text: bytes, split: str) -> None:
    first, last = (million * 1_000_000 for million in SPANS[split])
    batch = data.examples(0, 12, split)
    assert batch.lengths.tolist() == [118] * 12
    assert all(text.find(chunk.encode(), first, last) >= 0 for chunk in spelt(batch))
    assert spelt(batch)[0] == data.vocabulary.decode(batch.to_lists()[0])
    assert data.size(split) == last - first


def test_places_are_uniform_over_the_training_part(data: Text8Data, text: bytes) -> None:
    # The share of each letter over many chunks is its share in the part.
    tokens = data.examples(0, 5_000).tokens
    counts = np.bincount(np.frombuffer(text, np.uint8)[:90_000_000:30], minlength=128)
    seen = tokens.flatten().bincount(minlength=28).tolist()
    for token, count in enumerate(seen):
        share = counts[ord(data.vocabulary.characters[token])] / counts.sum()  # type: ignore[attr-defined]
        assert count / tokens.numel() == pytest.approx(share, abs=0.002)
    assert seen[27] == 0  # '-' is never used


def test_mapped_not_read(data: Text8Data) -> None:
    data.examples(0, 1)
    assert isinstance(data._text.numbers.base, np.memmap)


def test_plain_copy_gives_the_same_stream(
    data: Text8Data, text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "text8"
    plain.write_bytes(text)
    monkeypatch.setenv("INDEL_CACHE", str(tmp_path / "cache"))
    stream = open_data("text8", path=plain)
    assert stream.batch(3, 8, "test").equals(data.batch(3, 8, "test"))
    assert (tmp_path / "cache" / "text8" / "checked.json").is_file()


def test_sample_is_made_of_text8_as_its_attribution_says(text: bytes) -> None:
    for split, pieces in (("train", 20), ("valid", 2), ("test", 2)):
        first, last = (million * 1_000_000 for million in SPANS[split])
        expected = b""
        for number in range(pieces):
            start = text.index(b" ", first + number * (last - first) // pieces) + 1
            expected += text[start : text.rindex(b" ", start, start + 8000)] + b" "
        assert (resources.files("indel.data") / "text8_sample" / f"{split}.txt").read_bytes() == (
            expected
        )


def test_sample_is_small_attributed_and_in_the_alphabet() -> None:
    folder = resources.files("indel.data") / "text8_sample"
    parts = {split: (folder / f"{split}.txt").read_text() for split in SPLITS}
    assert sum(map(len, parts.values())) <= 200_000
    assert all(re.fullmatch("([a-z]+ )+", part) for part in parts.values())
    attribution = (folder / "ATTRIBUTION.md").read_text()
    for word in ("Wikipedia", "Mahoney", "Attribution-ShareAlike", "GNU Free Documentation"):
        assert word in attribution


def test_splits_of_the_sample_are_disjoint_and_used_up_to_their_ends() -> None:
    folder = resources.files("indel.data") / "text8_sample"
    parts = {split: (folder / f"{split}.txt").read_text() for split in SPLITS}
    for split in SPLITS:
        sample = Text8Sample(seed=0, chunk_length=50)
        chunks = spelt(sample.examples(0, 300, split))
        assert all(chunk in parts[split] for chunk in chunks)
        others = "|".join(part for name, part in parts.items() if name != split)
        assert not any(chunk in others for chunk in chunks)
    # With two places to start at, the first and the last token are reached.
    length = len(parts["test"]) - 1
    ends = Text8Sample(seed=0, chunk_length=length).examples(0, 8, "test")
    assert set(spelt(ends)) == {parts["test"][:-1], parts["test"][1:]}


def test_places_in_the_sample_are_uniform() -> None:
    folder = resources.files("indel.data") / "text8_sample"
    text = (folder / "valid.txt").read_text()
    sample = Text8Sample(seed=2, chunk_length=100)
    place = {text[n : n + 100]: n for n in range(len(text) - 99)}
    assert len(place) == len(text) - 99
    chunks = spelt(sample.examples(0, 30_000, "valid"))
    seen = Counter(place[chunk] * 40 // len(place) for chunk in chunks)
    bins = Counter(n * 40 // len(place) for n in range(len(place)))
    expected = [bins[n] / len(place) * len(chunks) for n in range(40)]
    assert chisquare([seen[n] for n in range(40)], expected).pvalue > 0.001


def test_default_is_the_papers_chunk() -> None:
    assert Text8Sample().max_length == 118
    assert Text8Sample().vocabulary.augmented_size == 31
    assert torch.equal(Text8Sample().batch(0, 4).lengths, torch.full((4,), 118))


def test_chunk_longer_than_a_split_is_refused() -> None:
    with pytest.raises(DataError, match=r"the split valid has 15,998 tokens, fewer than one chunk"):
        Text8Sample(chunk_length=20_000)
