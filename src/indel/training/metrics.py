"""Records of a run: lines of JSON that anything can read, and TensorBoard."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from indel import extras
from indel.files import whole_file
from indel.training.errors import TrainingError

METRICS = "metrics.jsonl"
Record = dict[str, Any]


class MetricsLog:
    """Writes records of a run, and drops those after the step from which it goes on."""

    def __init__(self, folder: Path, *, after_step: int, tensorboard: bool) -> None:
        self._path = folder / METRICS
        kept = [record for record in read_metrics(folder) if record["step"] <= after_step]
        text = "".join(_line(record) for record in kept)
        with _reporting(self._path):
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
        """Close the files."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_metrics(folder: str | Path) -> list[Record]:
    """The records of a run; a last line that was cut off is left out."""
    path = Path(folder) / METRICS
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        records.append(json.loads(line))
    return records


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
