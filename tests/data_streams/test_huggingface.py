"""Hugging Face datasets, from copies made here."""

import importlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest

from indel.data import SPLITS, DataError, DataUnavailable, HuggingFaceText, Split
from indel.vocabularies import ByteVocabulary, CharacterVocabulary

BYTES = ByteVocabulary()


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def on_disk(path: Path, **splits: list[str]) -> Path:
    made = {name: datasets.Dataset.from_dict({"text": texts}) for name, texts in splits.items()}
    (datasets.DatasetDict(made) if len(made) > 1 else made["train"]).save_to_disk(str(path))
    return path


def lines(path: Path, texts: list[str], **more: object) -> Path:
    path.write_text("".join(json.dumps({"text": text, **more}) + "\n" for text in texts))
    return path


def texts(data: HuggingFaceText, start: int, count: int, split: Split = "train") -> list[str]:
    return [bytes(row).decode() for row in data.examples(start, count, split).to_lists()]


def numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def test_own_splits_are_used(tmp_path: Path) -> None:
    path = on_disk(
        tmp_path / "d", train=numbered("a", 30), validation=numbered("b", 5), test=numbered("c", 4)
    )
    data = HuggingFaceText(path, BYTES, 9)
    assert sorted(texts(data, 0, 30)) == sorted(numbered("a", 30))
    assert sorted(texts(data, 0, 5, "valid")) == sorted(numbered("b", 5))
    assert sorted(texts(data, 0, 4, "test")) == sorted(numbered("c", 4))
    chosen = HuggingFaceText(path, BYTES, 9, splits={"train": "test"})
    assert sorted(texts(chosen, 0, 4)) == sorted(numbered("c", 4))


@pytest.mark.parametrize("kind", ["disk", "stream"])
@pytest.mark.parametrize("count", [59, 60, 79, 97])
def test_missing_splits_are_held_out(tmp_path: Path, kind: str, count: int) -> None:
    all_texts = numbered("r", count)
    if kind == "disk":
        path = on_disk(tmp_path / "d", train=all_texts)
    else:
        path = lines(tmp_path / "d.jsonl", all_texts)
    data = HuggingFaceText(path, BYTES, 9, block=7)
    expected = {
        "train": [text for n, text in enumerate(all_texts) if n % 20 < 18],
        "valid": all_texts[18::20],
        "test": all_texts[19::20],
    }
    for split in SPLITS:
        own = expected[split]
        # Each pass over the data holds every record once.
        for turn in range(3):
            assert sorted(texts(data, turn * len(own), len(own), split)) == sorted(own)
    first, second = (
        texts(data, 0, len(expected["train"])),
        texts(data, len(expected["train"]), len(expected["train"])),
    )
    assert first != second  # shuffled anew
    assert first != expected["train"]


def test_one_missing_split_is_held_out(tmp_path: Path) -> None:
    path = on_disk(tmp_path / "d", train=numbered("a", 40), test=numbered("c", 3))
    data = HuggingFaceText(path, BYTES, 9)
    assert sorted(texts(data, 0, 2, "valid")) == ["a19", "a39"]
    assert not {"a19", "a39"} & set(texts(data, 0, 38))
    assert sorted(texts(data, 0, 3, "test")) == numbered("c", 3)


def test_disk_and_stream_give_the_same(tmp_path: Path) -> None:
    all_texts = [text * (number % 3) for number, text in enumerate(numbered("word ", 90))]
    disk = HuggingFaceText(on_disk(tmp_path / "d", train=all_texts), BYTES, 8, block=16, seed=2)
    stream = HuggingFaceText(
        "json", BYTES, 8, block=16, seed=2, data_files=str(lines(tmp_path / "x.jsonl", all_texts))
    )
    for start in (0, 300, 37, 1000):
        assert texts(disk, start, 40) == texts(stream, start, 40)


def test_streamed_shards_and_line_files(tmp_path: Path) -> None:
    shards = [str(lines(tmp_path / f"{n}.jsonl", numbered(f"s{n}-", 25))) for n in range(3)]
    validation = tmp_path / "v.jsonl"
    lines(validation, numbered("v", 5))
    data = HuggingFaceText(
        "json", BYTES, 9, data_files={"train": shards, "validation": str(validation)}, block=10
    )
    assert sorted(texts(data, 0, 5, "valid")) == numbered("v", 5)
    assert len(set(texts(data, 0, 72))) == 72  # 3 of the 75 are held out for the test
    plain = tmp_path / "plain.txt"
    plain.write_text("\n".join(numbered("line ", 40)))
    assert set(texts(HuggingFaceText(plain, BYTES, 9), 0, 36)) < set(numbered("line ", 40))


def test_records_without_text_are_left_out(tmp_path: Path) -> None:
    all_texts = [text if n % 3 else "" for n, text in enumerate(numbered("r", 200))]
    data = HuggingFaceText(on_disk(tmp_path / "d", train=all_texts), BYTES, 9, block=60)
    counts = Counter(texts(data, 0, 180))
    kept = [text for n, text in enumerate(all_texts) if text and n % 20 < 18]
    assert set(counts) == set(kept)
    assert set(counts.values()) <= {1, 2}  # one in three stands in


def test_long_records_give_random_parts(tmp_path: Path) -> None:
    text = "".join(chr(33 + n) for n in range(90))
    data = HuggingFaceText(on_disk(tmp_path / "d", train=[text] * 40), BYTES, 10)
    assert set(texts(data, 0, 1500)) == {text[start : start + 10] for start in range(81)}
    exact = HuggingFaceText(on_disk(tmp_path / "e", train=[text] * 40), BYTES, 90)
    assert set(texts(exact, 0, 40)) == {text}


def test_normalised_text(tmp_path: Path) -> None:
    path = on_disk(tmp_path / "d", train=["Hello, World 2!"] * 40)
    vocabulary = CharacterVocabulary.text8()
    data = HuggingFaceText(path, vocabulary, 30, normalize=True)
    assert vocabulary.decode(data.examples(0, 1).to_lists()[0]) == "hello world two"
    with pytest.raises(DataError, match=r"d', record 0: character 'H' .* not in the vocabulary"):
        HuggingFaceText(path, vocabulary, 30).examples(0, 1)


def test_only_the_text_column_is_read(tmp_path: Path) -> None:
    path = lines(tmp_path / "d.jsonl", numbered("r", 40), other=7)
    assert texts(HuggingFaceText(path, BYTES, 9), 0, 1)[0].startswith("r")
    with pytest.raises(DataError, match="has no column 'body'; it has text, other"):
        HuggingFaceText(path, BYTES, 9, column="body").examples(0, 1)
    with pytest.raises(DataError, match=r"column 'other' must hold text, but holds int"):
        HuggingFaceText(path, BYTES, 9, column="other").examples(0, 1)


def test_unusable_datasets_are_refused(tmp_path: Path) -> None:
    few = HuggingFaceText(on_disk(tmp_path / "few", train=["a"] * 5), BYTES, 9)
    assert texts(few, 0, 12) == ["a"] * 12
    with pytest.raises(DataError, match="has no records for the split valid"):
        few.examples(0, 1, "valid")
    empty = HuggingFaceText(on_disk(tmp_path / "empty", train=[""] * 50), BYTES, 9, block=8)
    with pytest.raises(DataError, match="records 0 to 7 of the split train have no text"):
        empty.examples(0, 1)
    odd = on_disk(tmp_path / "odd", one=["a"], two=["b"])
    with pytest.raises(DataError, match=r"has the splits one, two, none called train; .*'one'"):
        HuggingFaceText(odd, BYTES, 9)
    with pytest.raises(DataError, match=r"'train' to 'three'; .* has the splits one, two"):
        HuggingFaceText(odd, BYTES, 9, splits={"train": "three"})
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"text": "a"}\n{"text": \n')
    with pytest.raises(DataError, match=r"broken.jsonl"):
        HuggingFaceText(broken, BYTES, 9).examples(0, 1)
    unknown = tmp_path / "data.xyz"
    unknown.write_text("a")
    with pytest.raises(DataError, match=r"data.xyz must end in one of .json, .jsonl, .txt"):
        HuggingFaceText(unknown, BYTES, 9)


def test_failed_read_is_not_taken_for_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lines(tmp_path / "d.jsonl", numbered("r", 90))
    data = HuggingFaceText(path, BYTES, 9, block=20)
    expected = texts(data, 0, 200)
    failing = HuggingFaceText(path, BYTES, 9, block=20)
    whole = failing._records["train"]._dataset

    class Failing:
        def skip(self, count: int) -> Iterator[dict[str, str]]:
            for number, record in enumerate(whole.skip(count), start=count):
                if number == 50:
                    raise ConnectionError("the line is dead")
                yield record

    failing._records["train"]._dataset = Failing()
    assert texts(failing, 0, 40) == expected[:40]
    with pytest.raises(DataUnavailable, match=r"cannot read .*d\.jsonl: .*the line is dead"):
        failing.examples(40, 20)
    failing._records["train"]._dataset = whole
    assert texts(failing, 40, 160) == expected[40:]


def test_names_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(
        importlib.import_module("huggingface_hub.constants"), "HF_HUB_OFFLINE", True
    )
    (tmp_path / "empty").mkdir()
    for name in ("nobody/nothing", str(tmp_path / "nowhere"), str(tmp_path / "empty")):
        with pytest.raises(
            DataUnavailable, match=r"cannot open .* or, where there is no network"
        ) as e:
            HuggingFaceText(name, BYTES, 9)
        assert name in str(e.value)
        assert "\n" not in str(e.value)


def test_library_is_imported_only_when_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match=r'pip install "indel\[data\]"'):
        HuggingFaceText("anything", BYTES, 9)
