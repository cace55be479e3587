"""Files that are made once and kept in a folder that may be deleted at any time."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from indel.data.errors import DataUnavailable

ENVIRONMENT_VARIABLE = "INDEL_CACHE"


def cache_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder given, or else that of INDEL_CACHE, or else ~/.cache/indel."""
    chosen = given or os.environ.get(ENVIRONMENT_VARIABLE) or Path("~", ".cache", "indel")
    return Path(chosen).expanduser()


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file whole or not at all, also when two processes write it at once."""
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not tempfile: the cache of a group must be readable by all that the umask allows.
        with partial.open("xb") as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                partial.replace(path)
            except BaseException:
                partial.unlink()
                raise
    except DataUnavailable:  # what was to be written could not be read
        raise
    except OSError as error:
        raise DataUnavailable(
            f"cannot write {path}: {error.strerror or error}; set {ENVIRONMENT_VARIABLE} to a "
            "folder that can be written and has room"
        ) from error
