"""Text files of one's own, encoded once and then read in random chunks."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from indel.atomic_files import cache_folder
from indel.data.caching import replacing
from indel.data.chunks import ChunkStream, MappedFile
from indel.data.errors import DataError, DataUnavailable
from indel.data.sequences import found_vocabulary
from indel.data.streams import Split
from indel.vocabularies import CharacterVocabulary, TokenizerVocabulary, Vocabulary
from indel.vocabularies.text8_alphabet import normalize_text8

_PIECE = 1 << 18  # bytes; memory stays within some twenty times this, however long the files
_ENCODING_VERSION = 1  # part of the name of a cached file: raise it when encoding changes
_LAST_WORD_END = re.compile(r"(?s).*\S(?=\s)")


class TextFiles(ChunkStream):
    """Random chunks of a text file, or of all files of a folder that match `pattern`.

    Files are read as UTF-8 and put one after the other, by name, as `cat` would; of all their
    tokens the first are the training part, then come two shares of `held_out` each: the
    validation part and the test part. With `normalize` the text is first rewritten in text8's
    alphabet, with a space between files. Without a vocabulary it is the characters that occur.

    The tokens are written once to `cache` (default: the folder INDEL_CACHE, or ~/.cache/indel;
    one, two or four bytes a token) and mapped into memory, so that files may be larger than it.
    They are written again when a file's size or time, the vocabulary or `normalize` changes.
    A tokenizer sees a quarter of a megabyte at a time, cut between words where there are any.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        vocabulary: Vocabulary | None = None,
        chunk_length: int = 118,
        *,
        seed: int = 0,
        normalize: bool = False,
        held_out: float = 0.05,
        pattern: str = "*.txt",
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        if not 0 < held_out < 0.5:
            raise ValueError(f"held_out must lie between 0 and 0.5, got {held_out}")
        files = _files(Path(path).expanduser(), pattern)
        if vocabulary is None:
            vocabulary = _found_vocabulary(files, normalize)
        dtype = np.min_scalar_type(vocabulary.size - 1)
        key = _key(files, vocabulary, normalize)
        encoded = cache_folder(cache) / "tokens" / f"{key}.{dtype.name}"
        if not encoded.exists():
            with replacing(encoded) as target:
                for tokens in _tokens(files, vocabulary, normalize):
                    target.write(np.array(tokens, dtype=dtype).tobytes())
        total = encoded.stat().st_size // dtype.itemsize
        held = int(total * held_out)
        spans: dict[Split, tuple[int, int]] = {
            "train": (0, total - 2 * held),
            "valid": (total - 2 * held, total - held),
            "test": (total - held, total),
        }
        super().__init__(
            MappedFile(encoded, dtype.name),
            spans,
            vocabulary,
            chunk_length=chunk_length,
            seed=seed,
            name=str(path),
        )


def _files(path: Path, pattern: str) -> list[Path]:
    if path.is_dir():
        found = sorted(
            (file for file in path.rglob(pattern) if file.is_file()),
            key=lambda file: file.relative_to(path).as_posix(),
        )
        if not found:
            raise DataUnavailable(f"{path} holds no files {pattern}")
        return found
    if not path.exists():
        raise DataUnavailable(f"{path} does not exist; expected is a text file or a folder of them")
    return [path]


def _found_vocabulary(files: Iterable[Path], normalize: bool) -> Vocabulary:
    """The characters of the text, or text8's if it is rewritten in these."""
    if normalize:
        return CharacterVocabulary.text8()
    return found_vocabulary(text for file in files for _, text in _pieces(file))


def _key(files: Iterable[Path], vocabulary: Vocabulary, normalize: bool) -> str:
    stamps = [(str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    parts = [_ENCODING_VERSION, stamps, vocabulary.to_dict(), normalize]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


Piece = tuple[str, str]
"""Where a text comes from, for messages, and the text."""


def _tokens(files: Iterable[Path], vocabulary: Vocabulary, normalize: bool) -> Iterator[list[int]]:
    pieces: Iterator[Piece] = (piece for file in files for piece in _pieces(file))
    if normalize:
        pieces = _normalized(pieces)
    if isinstance(vocabulary, TokenizerVocabulary):
        pieces = _cut_between_words(pieces)
    for place, text in pieces:
        try:
            yield vocabulary.encode(text)
        except ValueError as error:
            raise DataError(f"{place}: {error}") from error


def _pieces(file: Path) -> Iterator[Piece]:
    """The text of a file piece by piece, and an empty piece at its end."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    position = 0
    try:
        with file.open("rb") as source:
            while True:
                content = source.read(_PIECE)
                waiting = len(decoder.getstate()[0])  # bytes of a character that was cut in two
                try:
                    text = decoder.decode(content, final=not content)
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{file} is not UTF-8: {error.reason} at byte "
                        f"{position - waiting + error.start:,} "
                        f"(0x{error.object[error.start]:02x}); convert the file to UTF-8"
                    ) from error
                if position == 0:
                    text = text.removeprefix("\N{BYTE ORDER MARK}")
                yield f"{file}, in the text from about byte {position:,} on", text
                if not content:
                    return
                position += len(content)
    except OSError as error:
        raise DataUnavailable(f"cannot read {file}: {error.strerror or error}") from error


def _normalized(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """What normalising everything at once would give, with a space for each empty piece."""
    begun = space = False
    for place, text in pieces:
        # Letters around a piece keep the spaces at its ends.
        words = normalize_text8(f"a{text or ' '}a")[1:-1]
        if inner := words.strip():
            yield place, " " * (begun and (space or words[0] == " ")) + inner
            begun, space = True, words[-1] == " "
        else:
            space = space or bool(words)


def _cut_between_words(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The same text cut after words, unless there are none to be seen."""
    place, text = "", ""
    for place, more in pieces:
        text += more
        end = _LAST_WORD_END.match(text)
        cut = end.end() if end else len(text) * (len(text) > 4 * _PIECE)
        yield place, text[:cut]
        text = text[cut:]
    yield place, text
