"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write under a temporary name, flush, rename; also safe when two processes do so at once."""
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not tempfile: others may read the file if the umask allows it.
    with partial.open("xb") as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            partial.unlink()
            raise


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
