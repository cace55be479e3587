"""Files that are made once and kept in a folder that may be deleted at any time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from indel.atomic_files import CACHE, whole_file
from indel.data.errors import DataUnavailable


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file of the cache whole or not at all; an error says where else it could lie."""
    try:
        with whole_file(path) as file:
            yield file
    except DataUnavailable:  # what was to be written could not be read
        raise
    except OSError as error:
        raise DataUnavailable(
            f"cannot write {path}: {error.strerror or error}; set {CACHE} to a "
            "folder that can be written and has room"
        ) from error
