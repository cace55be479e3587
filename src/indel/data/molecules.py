"""Molecules as SMILES: the benchmark MOSES, a sample of it, and files of one's own."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indel.atomic_files import cache_folder
from indel.data.caching import replacing
from indel.data.errors import DataError, DataUnavailable
from indel.data.packed import PackedRows, PackedSequences
from indel.data.sequences import Sequences
from indel.data.streams import SPLITS, Split
from indel.vocabularies import CharacterVocabulary, Vocabulary
from indel.vocabularies.smiles import SmilesVocabulary, smiles_tokens

HELD_OUT = 128
"""One training molecule of so many is of the split valid."""
_CHARACTERS = "#()-123456=BCFHNOS[]clnors"
_ENCODING_VERSION = 1  # part of the name of a cached file: raise it when encoding changes
_END = 255  # between molecules in a cached file


class MosesData(PackedSequences):
    """MOSES: 1.9 million drug-like molecules with a training, a test and a scaffold test part.

    train and valid are MOSES's training molecules: valid those whose CRC-32 is a multiple of 128
    (12,262 of them), train all others. test is MOSES's test part or, with `scaffolds`, the one
    whose scaffolds do not occur in training.

    `path` is the folder with train.csv, test.csv and test_scaffolds.csv, plain or as .csv.gz, each
    with a column SMILES. A token is an atom, bond, ring or parenthesis, or, without `atoms`,
    a character. The tokens are written once to `cache` (default: the folder INDEL_CACHE, or
    ~/.cache/indel), and again when a file's size or time changes.

    Reference: Polykovskiy et al. 2020, Molecular Sets (MOSES)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        seed: int = 0,
        atoms: bool = True,
        scaffolds: bool = False,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        if path is None:
            raise DataUnavailable(
                "moses needs the folder that holds its train.csv, test.csv and "
                "test_scaffolds.csv (or .csv.gz), as path=FOLDER or --data FOLDER; "
                "moses-sample needs none"
            )
        vocabulary = _vocabulary(atoms)
        training = _table(Path(path), "train")
        testing = _table(Path(path), "test_scaffolds" if scaffolds else "test")
        folder = cache_folder(cache) / "moses"
        files: dict[Split, Path] = {"train": training, "valid": training, "test": testing}
        rows = {split: _encoded(file, split, vocabulary, folder) for split, file in files.items()}
        super().__init__(rows, vocabulary, seed)


class MosesSample(PackedSequences):
    """The 5,799 molecules of MOSES that come with the package, with the same splits.

    Origin and licence (MIT) are in `moses_sample/ATTRIBUTION.md`.

    >>> sample = MosesSample()
    >>> sample.texts("valid")[0], sample.size("train")
    ('O=C(Nc1nccs1)c1ccc(C(=O)Nc2nccs2)cc1', 3970)
    """

    def __init__(self, *, seed: int = 0, atoms: bool = True, scaffolds: bool = False) -> None:
        vocabulary = _vocabulary(atoms)
        folder = resources.files("indel.data") / "moses_sample"
        rows: dict[Split, PackedRows] = {}
        for split in SPLITS:
            name = "test_scaffolds" if scaffolds and split == "test" else split
            lines = (folder / f"{name}.txt").read_text(encoding="ascii").split()
            rows[split] = PackedRows.of(map(vocabulary.encode, lines))
        super().__init__(rows, vocabulary, seed)


def smiles_file(
    path: str | os.PathLike[str],
    *,
    atoms: bool = True,
    held_out: float = 0.05,
    max_length: int | None = None,
    seed: int = 0,
) -> Sequences:
    """Molecules of a file, one SMILES string per line, with splits; see `Sequences.lines`.

    What follows a space or tab in a line is the name of the molecule and is left out. The tokens
    are the atoms, bonds and rings that occur or, without `atoms`, the characters.
    """
    molecules = [smiles for _, smiles in read_smiles(path)]
    vocabulary: Vocabulary = (
        SmilesVocabulary.found(molecules)
        if atoms
        else CharacterVocabulary("".join(sorted(set("".join(molecules)))))
    )
    try:
        return Sequences(molecules, vocabulary, held_out=held_out, max_length=max_length, seed=seed)
    except DataError as error:
        raise DataError(f"{os.fspath(path)}: {error}") from None


def read_smiles(path: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """The number of each line that has one, and its SMILES string, checked to be made of tokens."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(_text(Path(path)).splitlines(), start=1):
        if not (words := line.split()):
            continue
        if not found and words[0] in ("SMILES", "smiles"):
            continue  # the head of a table
        try:
            smiles_tokens(words[0])
        except ValueError as error:
            raise DataError(f"{os.fspath(path)}, line {number}: {error}") from None
        found.append((number, words[0]))
    if not found:
        raise DataError(f"{os.fspath(path)} holds no molecules; expected is one SMILES per line")
    return found


def _vocabulary(atoms: bool) -> Vocabulary:
    if not isinstance(atoms, bool):
        raise ValueError(f"atoms must be true or false, got {atoms!r}")
    return SmilesVocabulary.moses() if atoms else CharacterVocabulary(_CHARACTERS)


def _table(folder: Path, name: str) -> Path:
    """The file of a part of MOSES in the folder."""
    folder = folder.expanduser()
    if not folder.is_dir():
        raise DataUnavailable(f"{folder} is no folder; expected is the one with MOSES's train.csv")
    for file in (folder / f"{name}.csv", folder / f"{name}.csv.gz"):
        if file.is_file():
            return file
    raise DataUnavailable(f"{folder} holds neither {name}.csv nor {name}.csv.gz")


def _encoded(file: Path, split: Split, vocabulary: Vocabulary, folder: Path) -> PackedRows:
    """The tokens of a part, from the cache or from the table."""
    status = file.stat()
    stamp = [str(file.resolve()), status.st_size, status.st_mtime_ns]
    parts = [_ENCODING_VERSION, stamp, split, vocabulary.to_dict()]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
    cached = folder / f"{key}.uint8"
    if not cached.exists():
        with replacing(cached) as target:
            for number, smiles in _molecules(file):
                held = zlib.crc32(smiles.encode()) % HELD_OUT == 0
                if split == "test" or held == (split == "valid"):
                    try:
                        target.write(bytes([*vocabulary.encode(smiles), _END]))
                    except ValueError as error:
                        raise DataError(f"{file}, line {number}: {error}") from None
    content = np.memmap(cached, dtype=np.uint8, mode="r") if cached.stat().st_size else np.empty(0)
    ends: NDArray[np.int64] = np.flatnonzero(content == _END)
    if not len(ends):
        raise DataError(f"{file} holds no molecules of the split {split}")
    return PackedRows(np.asarray(content), np.concatenate([[0], ends[:-1] + 1]), ends)


def _molecules(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a table of MOSES and their SMILES."""
    table = csv.reader(_text(file).splitlines())
    head = next(table, [])
    if "SMILES" not in head:
        raise DataError(f"{file} has no column SMILES; its columns are {', '.join(head) or 'none'}")
    column = head.index("SMILES")
    for row in table:
        if len(row) > column and row[column]:
            yield table.line_num, row[column]


def _text(path: Path) -> str:
    try:
        content = path.expanduser().read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: {error.reason} at byte {error.start:,}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is not a whole gzip file: {error}") from None
    except OSError as error:
        raise DataUnavailable(f"cannot read {path}: {error.strerror or error}") from None
