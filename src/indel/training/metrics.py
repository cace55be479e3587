"""Records of a run: lines of JSON that anything can read, and TensorBoard."""

from __future__ import annotations

import json
import logging
import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from indel import extras
from indel.atomic_files import whole_file
from indel.training.errors import TrainingError

METRICS = "metrics.jsonl"
DAMAGED = "metrics.damaged.jsonl"

_log = logging.getLogger(__name__)

Record = dict[str, Any]


class MetricsLog:
    """Writes records of a run, and drops those after the step from which it goes on."""

    def __init__(self, folder: Path, *, after_step: int, tensorboard: bool) -> None:
        self._path = folder / METRICS
        records, damaged = _parsed(self._path)
        kept = [record for record in records if record["step"] <= after_step]
        text = "".join(_line(record) for record in kept)
        with _reporting(self._path):
            if damaged:
                _set_aside(self._path, damaged)
            with whole_file(self._path) as file:
                file.write(text.encode("utf-8"))
            self._file = self._path.open("a", encoding="utf-8")
        self._board = _board(folder, after_step) if tensorboard else None

    def write(self, kind: str, step: int, values: Record) -> None:
        """Add one record; a number that is none becomes null."""
        with _reporting(self._path):
            self._file.write(_line({"kind": kind, "step": step, **values}))
            self._file.flush()
            if self._board is not None:
                for name, value in values.items():
                    if isinstance(value, int | float):
                        self._board.add_scalar(f"{kind}/{name}", value, step)
                for number, text in enumerate(values.get("texts", ())):
                    self._board.add_text(f"{kind}/text-{number}", text, step)

    def flush(self) -> None:
        """Wait until all records are on the disk."""
        with _reporting(self._path):
            os.fsync(self._file.fileno())
            if self._board is not None:
                self._board.flush()

    def close(self) -> None:
        """Close the files; what could not be written has been reported when it was."""
        with suppress(OSError):
            self._file.close()
        if self._board is not None:
            with suppress(OSError):
                self._board.close()


def read_metrics(folder: str | Path) -> list[Record]:
    """The records of a run; a last line that was cut off, and damaged lines, are left out."""
    path = Path(folder) / METRICS
    records, damaged = _parsed(path)
    if damaged:
        _log.warning("%s has %d damaged lines, which are left out", path, len(damaged))
    return records


def _parsed(path: Path) -> tuple[list[Record], list[bytes]]:
    """The records and the lines that hold none; a last line that was cut off is neither."""
    if not path.exists():
        return [], []
    records, damaged = [], []
    for line in path.read_bytes().split(b"\n")[:-1]:
        if (record := _record(line)) is None:
            damaged.append(line)
        else:
            records.append(record)
    return records, damaged


def _record(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    right = isinstance(record, dict) and isinstance(record.get("kind"), str)
    return record if right and isinstance(record.get("step"), int) else None


def _set_aside(path: Path, lines: list[bytes]) -> None:
    aside = path.with_name(DAMAGED)
    with aside.open("ab") as file:
        file.writelines(line + b"\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
    _log.warning("%s has %d damaged lines: moved to %s", path, len(lines), aside.name)


def _line(record: Record) -> str:
    return json.dumps({name: _plain(value) for name, value in record.items()}) + "\n"


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _board(folder: Path, after_step: int) -> Any:
    extras.require("training.tensorboard = true", "tensorboard", "train")
    from torch.utils.tensorboard import SummaryWriter

    # What a run wrote after its checkpoint, before it was killed, is hidden.
    return SummaryWriter(str(folder / "tensorboard"), purge_step=after_step + 1)


class _reporting:
    """Turns a failed write into an error that says which file and why."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise TrainingError(
                f"cannot write {self._path}: {error.strerror or error}; make room, then resume"
            ) from error
