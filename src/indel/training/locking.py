"""One run per folder: a lock that the system releases when its process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from indel.training.errors import TrainingError

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create the folder and keep other runs out of it; after an error an empty folder goes again.

    The lock is the kernel's (`flock`): after kill −9 the file remains, but locks nothing.
    """
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _locked_file(folder)
    except OSError as error:
        reason = error.strerror or error
        raise TrainingError(f"cannot write to the folder {folder}: {reason}") from error
    try:
        yield
    finally:
        # Removed while it is held: who waits for this file notices that it has no name any more.
        (folder / LOCK).unlink(missing_ok=True)
        os.close(descriptor)
        if new:
            with suppress(OSError):
                folder.rmdir()


def _locked_file(folder: Path) -> int:
    path = folder / LOCK
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 200).decode("utf-8", "replace") or "another process"
            os.close(descriptor)
            raise TrainingError(
                f"another run is writing to {folder} ({holder}): wait until it ends, or choose "
                "another folder"
            ) from None
        if _is_still_named(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())
            return descriptor
        os.close(descriptor)


def _is_still_named(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
