"""A published text file: found, fetched, unpacked and checked once."""

from __future__ import annotations

import hashlib
import http.client
import json
import logging
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from indel.data.caching import replacing
from indel.data.errors import DataError, DataUnavailable

_PIECE = 1 << 20
_TIMEOUT = 30.0  # seconds without an answer
_ZIP_MAGIC = b"PK"


@runtime_checkable
class _Source(Protocol):
    """A file, an entry of an archive or an answer of a server."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Corpus:
    """A file of which everybody has the same bytes."""

    name: str
    url: str
    size: int
    md5: str

    def locate(self, path: Path | None, cache: Path) -> Path:
        """The unpacked file, checked: of the path given, in the cache, or fetched into it."""
        copy = cache / self.name / self.name
        checked = _Checked(copy.with_name("checked.json"))
        if path is None:
            if copy not in checked:
                if not self._is_good(copy):
                    self._fetch(copy)
                checked.add(copy)
            return copy
        path = path.expanduser().resolve()
        with self._reading(path) as file:
            packed = file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC
        if not packed:
            if path not in checked:
                self._check(path)
                checked.add(path)
            return path
        # The archive is looked up too: else a wrong one would pass once there is a good copy.
        if path not in checked or copy not in checked:
            self._unpack(path, copy)
            checked.add(path, copy)
        return copy

    def _fetch(self, copy: Path) -> None:
        archive = copy.with_name(f"{self.name}.zip")
        logging.getLogger(__name__).info("fetching %s", self.url)
        with replacing(archive) as file:
            try:
                answer = urllib.request.urlopen(self.url, timeout=_TIMEOUT)
            except OSError as error:
                raise self._not_fetched(error) from error
            with answer:
                received = 0
                while piece := self._receive(answer):
                    received += len(piece)
                    # An archive of the right content is smaller than it: the rest is not taken.
                    if received > self.size:
                        raise DataError(
                            f"{self.url} sends more than the {self.size:,} bytes that {self.name} "
                            "has unpacked: it is not the archive"
                        )
                    file.write(piece)
        try:
            self._unpack(archive, copy)
        finally:
            archive.unlink()

    def _receive(self, answer: _Source) -> bytes:
        try:
            return answer.read(_PIECE)
        except (OSError, http.client.HTTPException) as error:
            raise self._not_fetched(error) from error

    def _not_fetched(self, error: Exception) -> DataUnavailable:
        return DataUnavailable(
            f"cannot fetch {self.name} from {self.url} ({error}); download it where there is a "
            f"network and give the file with path='…/{self.name}.zip'"
        )

    def _is_good(self, copy: Path) -> bool:
        try:
            self._check(copy)
        except (DataError, OSError):
            return False
        return True

    def _check(self, path: Path) -> None:
        if path.stat().st_size != self.size:
            raise DataError(
                f"{path} is not {self.name}: it has {path.stat().st_size:,} bytes; expected are "
                f"{self.size:,}, or the zip archive of {self.url}"
            )
        with self._reading(path) as file:
            self._copy(file, path, to=None)

    def _unpack(self, archive: Path, copy: Path) -> None:
        try:
            with self._reading(archive) as file, zipfile.ZipFile(file) as contents:
                entries = [entry for entry in contents.infolist() if not entry.is_dir()]
                if [entry.file_size for entry in entries] != [self.size]:
                    found = ", ".join(f"{e.filename} of {e.file_size:,}" for e in entries[:3])
                    raise DataError(
                        f"{archive} is not {self.name}: it must hold one file of {self.size:,} "
                        f"bytes, but holds {found or 'none'}"
                    )
                with contents.open(entries[0]) as packed, replacing(copy) as unpacked:
                    self._copy(packed, archive, to=unpacked)
        except (DataError, DataUnavailable):
            raise
        except Exception as error:  # damage can make zipfile raise almost anything
            raise DataError(
                f"{archive} is not a readable archive of {self.name} ({error}); download it again "
                f"from {self.url}"
            ) from error

    def _copy(self, source: _Source, path: Path, *, to: BinaryIO | None) -> None:
        """Check the bytes of the source and, if there is a target, copy them."""
        checksum = hashlib.md5(usedforsecurity=False)
        while piece := source.read(_PIECE):
            checksum.update(piece)
            if to is not None:
                to.write(piece)
        if checksum.hexdigest() != self.md5:
            raise DataError(
                f"{path} is not {self.name}: its md5 checksum is {checksum.hexdigest()}, expected "
                f"is {self.md5}; download it again from {self.url}"
            )

    @contextmanager
    def _reading(self, path: Path) -> Iterator[BinaryIO]:
        try:
            file = path.open("rb")
        except OSError as error:
            raise DataUnavailable(
                f"cannot read {path}: {error.strerror}; expected is {self.name}, plain "
                f"({self.size:,} bytes) or zipped as at {self.url}"
            ) from error
        with file:
            yield file


class _Checked:
    """The files whose checksum was right, each with the size and the time that it had then."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __contains__(self, file: Path) -> bool:
        try:
            return self._stamps().get(str(file)) == _stamp(file)
        except FileNotFoundError:
            return False

    def add(self, *files: Path) -> None:
        """Remember the files, unless there is no place for it: then they are checked again."""
        stamps = self._stamps() | {str(file): _stamp(file) for file in files}
        try:
            with replacing(self._path) as target:
                target.write(json.dumps(stamps, indent=1).encode())
        except DataUnavailable as error:
            logging.getLogger(__name__).info("%s", error)

    def _stamps(self) -> dict[str, object]:
        try:
            stamps = json.loads(self._path.read_bytes())
        except (OSError, ValueError):  # nothing remembered, or nothing that can be read
            return {}
        return stamps if isinstance(stamps, dict) else {}


def _stamp(file: Path) -> list[int]:
    status = file.stat()
    return [status.st_size, status.st_mtime_ns]
