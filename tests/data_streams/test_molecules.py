"""Molecules as data: MOSES's parts, the sample in the package, files of SMILES."""

from __future__ import annotations

import gzip
import os
import zlib
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from indel.data import DataError, DataUnavailable, LengthSorted, MosesSample, open_data
from indel.data.molecules import HELD_OUT, MosesData, read_smiles
from indel.data.packed import PackedRows, PackedSequences
from indel.vocabularies.smiles import SmilesVocabulary, syntax_problem

MOSES = os.environ.get("INDEL_TEST_MOSES")
SAMPLE = resources.files("indel.data") / "moses_sample"
PARTS = ("train", "valid", "test", "test_scaffolds")


def lines(name: str) -> list[str]:
    return (SAMPLE / f"{name}.txt").read_text(encoding="ascii").split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small MOSES: one table plain, the others packed."""
    home = tmp_path / "moses"
    home.mkdir()
    training = [*lines("train")[:300], *lines("valid")[:20]]
    tables = {"train": training, "test": lines("test"), "test_scaffolds": lines("test_scaffolds")}
    for name, molecules in tables.items():
        content = "\n".join(["SMILES,SPLIT", *(f"{each},{name}" for each in molecules)]) + "\n"
        if name == "test":
            (home / "test.csv").write_text(content)
        else:
            (home / f"{name}.csv.gz").write_bytes(gzip.compress(content.encode()))
    return home


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_splits_of_moses(folder: Path, cache: Path) -> None:
    data = MosesData(folder, cache=cache)
    assert data.texts("train") == lines("train")[:300]
    assert data.texts("valid") == lines("valid")[:20]
    assert data.texts("test") == lines("test")
    assert MosesData(folder, cache=cache, scaffolds=True).texts("test") == lines("test_scaffolds")
    assert data.vocabulary == SmilesVocabulary.moses()
    assert data.max_length == max(map(len, map(data.vocabulary.encode, data.texts("train"))))


def test_the_cache_is_read_and_written_again_when_the_table_changes(
    folder: Path, cache: Path
) -> None:
    first = MosesData(folder, cache=cache)
    files = sorted((cache / "moses").iterdir())
    assert len(files) == 3
    assert MosesData(folder, cache=cache).fingerprint() == first.fingerprint()
    assert sorted((cache / "moses").iterdir()) == files
    (folder / "test.csv").write_text("SMILES\nCCO\n")
    again = MosesData(folder, cache=cache)
    assert again.texts("test") == ["CCO"]
    assert again.fingerprint() != first.fingerprint()


def test_characters_instead_of_atoms(folder: Path, cache: Path) -> None:
    atoms, characters = (MosesData(folder, cache=cache, atoms=each) for each in (True, False))
    assert characters.vocabulary.size == 26
    assert characters.texts("test") == atoms.texts("test")
    assert len(characters.vocabulary.encode("CCl")) > len(atoms.vocabulary.encode("CCl"))


def test_training_goes_through_all_molecules_in_a_new_order_each_time() -> None:
    data = MosesSample(seed=1)
    size = data.size("train")
    passes = [
        [data.vocabulary.text(row) for row in data.examples(start, size).to_lists()]
        for start in (0, size)
    ]
    assert passes[0] != passes[1]
    assert sorted(passes[0]) == sorted(passes[1]) == sorted(lines("train"))
    assert data.examples(size - 5, 10).equals(MosesSample(seed=1).examples(size - 5, 10))
    assert not data.examples(0, 10).equals(MosesSample(seed=2).examples(0, 10))


def test_held_out_molecules_are_read_in_one_shuffled_order() -> None:
    data = MosesSample(seed=1)
    size = data.size("valid")
    read = [data.vocabulary.text(row) for row in data.examples(0, size, "valid").to_lists()]
    assert read != lines("valid")
    assert sorted(read) == sorted(lines("valid"))
    assert data.examples(size, 9, "valid").equals(data.examples(0, 9, "valid"))
    assert MosesSample(seed=2).examples(0, 9, "valid").equals(data.examples(0, 9, "valid"))
    assert data.texts("valid", 9) == read[:9]


def test_rows_end_where_they_end() -> None:
    rows = PackedRows(
        np.array([3, 4, 255, 5, 255], dtype=np.uint8), np.array([0, 3]), np.array([2, 4])
    )
    data = PackedSequences(
        {"train": rows, "valid": rows, "test": rows}, SmilesVocabulary.moses(), 0
    )
    assert sorted(data.examples(0, 2, "valid").to_lists()) == [[3, 4], [5]]


def test_batches_of_similar_lengths_can_be_made() -> None:
    data = LengthSorted(MosesSample(), batch_size=16)
    spread = [
        int(b.lengths.max() - b.lengths.min())
        for b, _ in zip(data.batches(16), range(8), strict=False)
    ]
    assert np.mean(spread) < 6


def test_the_sample_is_small_attributed_and_all_tokens() -> None:
    parts = {name: lines(name) for name in PARTS}
    assert 5000 <= sum(map(len, parts.values())) <= 6000
    for name, molecules in parts.items():
        assert len(set(molecules)) == len(molecules), name
        assert not any(map(syntax_problem, molecules))
    assert not set(parts["train"]) & {each for name in PARTS[1:] for each in parts[name]}
    attribution = (SAMPLE / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for word in ("Polykovskiy", "MIT", "ZINC", "CRC-32"):
        assert word in attribution
    assert "Insilico Medicine" in (SAMPLE / "LICENSE").read_text(encoding="utf-8")


def test_the_sample_follows_the_rule_of_its_attribution() -> None:
    for name, (divisor, held) in {"train": (391, False), "valid": (25, True)}.items():
        codes = [zlib.crc32(each.encode()) for each in lines(name)]
        assert {code % divisor for code in codes} == {1}
        assert all((code % HELD_OUT == 0) == held for code in codes)


@pytest.mark.slow
@pytest.mark.skipif(MOSES is None, reason="INDEL_TEST_MOSES names no folder of MOSES")
def test_the_sample_is_made_of_moses(tmp_path: Path) -> None:
    assert MOSES is not None
    data = MosesData(MOSES, cache=tmp_path)
    other = MosesData(MOSES, cache=tmp_path, scaffolds=True)
    assert [data.size(split) for split in ("train", "valid", "test")] == [
        1_572_401,
        12_262,
        176_074,
    ]
    whole = {"train": data, "valid": data, "test": data, "test_scaffolds": other}
    for (name, stream), divisor in zip(whole.items(), (391, 25, 176, 440), strict=True):
        molecules = stream.texts("test" if name == "test_scaffolds" else name)
        assert [m for m in molecules if zlib.crc32(m.encode()) % divisor == 1] == lines(name)


def test_files_of_smiles(tmp_path: Path) -> None:
    file = tmp_path / "mine.smi"
    file.write_text("CCO ethanol\n\nc1ccccc1\tbenzene\n[Na+].[Cl-]\nCCBr\n")
    data = open_data(f"smiles:{file}")
    assert data.vocabulary == SmilesVocabulary([".", "1", "Br", "C", "O", "[Cl-]", "[Na+]", "c"])
    assert open_data(f"smiles:{file}", atoms=False).vocabulary.size == 14
    assert read_smiles(file)[-1] == (5, "CCBr")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "holds no molecules"),
        ("\n \n", "holds no molecules"),
        ("SMILES\n", "holds no molecules"),
        ("CCO\nCC[nHC\n", "line 2: '[' at position 2 is not closed"),
        ("CCO\nC?C\n", "line 2: '?'"),
        ("CCO\n", "at least 3 different examples"),
    ],
)
def test_bad_files_of_smiles(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "mine.smi"
    file.write_text(content)
    with pytest.raises(DataError) as error:
        open_data(f"smiles:{file}")
    assert reason in str(error.value)
    assert str(file) in str(error.value)


def test_bad_folders_of_moses(folder: Path, cache: Path, tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match="--data FOLDER"):
        open_data("moses")
    with pytest.raises(DataUnavailable, match="no folder"):
        MosesData(tmp_path / "nowhere", cache=cache)
    train = folder / "train.csv.gz"
    whole = train.read_bytes()
    for content, reason in {
        whole[:-20]: "not a whole gzip file",
        b"SMILES": "not a whole gzip file",
        gzip.compress(b"smile\nCCO\n"): "no column SMILES; its columns are smile",
        gzip.compress(b"SMILES\n"): "holds no molecules of the split train",
        gzip.compress(b"SMILES\nCCO\nC[Si]C\n"): "line 3: '[Si]' at position 1",
        gzip.compress("SMILES\né\n".encode("latin-1")): "not UTF-8",
    }.items():
        train.write_bytes(content)
        with pytest.raises(DataError) as error:
            MosesData(folder, cache=cache)
        assert reason in str(error.value)
    train.unlink()
    with pytest.raises(DataUnavailable, match=r"neither train.csv nor train.csv.gz"):
        MosesData(folder, cache=cache)
