"""Files that are written whole or not at all, and the folder for those that can be made again."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

CACHE = "INDEL_CACHE"
"""The environment variable that names the folder of what can be made again."""


def cache_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder given, or else that of INDEL_CACHE, or else ~/.cache/indel."""
    return Path(given or os.environ.get(CACHE) or Path("~", ".cache", "indel")).expanduser()


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write under a temporary name, flush, rename; also safe when two processes do so at once.

    A file that is replaced keeps its permissions; a new one gets those of the umask.
    """
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None

    def create(name: str, flags: int) -> int:
        # Not tempfile: others may read the file if the umask, or the file before it, allows it.
        return os.open(name, flags, 0o666 if mode is None else mode & 0o600)

    with open(partial, "xb", opener=create) as file:
        try:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            partial.unlink()
            raise


@contextmanager
def mode_of_the_umask(path: Path) -> Iterator[None]:
    """Give a file that is written inside (safetensors makes private ones) the usual permissions."""
    path.touch()
    mode = path.stat().st_mode
    yield
    path.chmod(mode)


def sha256(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path) -> Any:
    """The content of a JSON file; an error of any kind in it is a `ValueError`."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write_output(path: Path, content: bytes) -> None:
    """Write what a command was asked to put in a file; an error names the file."""
    target = path.resolve()  # a link stays a link
    if target.exists() and not target.is_file():
        raise ValueError(f"cannot write {path}: it is no file; choose another --out")
    try:
        with whole_file(target) as file:
            file.write(content)
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"cannot write {path}: {reason}; choose another --out") from error
