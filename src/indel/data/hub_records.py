"""The records of a Hugging Face dataset, read in order from any place."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from indel import extras
from indel.data.errors import DataError, DataUnavailable
from indel.data.streams import SPLITS, Split

DataFiles = str | Sequence[str] | Mapping[str, str | Sequence[str]]
_USUAL_NAMES: dict[Split, tuple[str, ...]] = {
    "train": ("train",),
    "valid": ("validation", "valid", "val", "dev"),
    "test": ("test",),
}
_READERS = {".json": "json", ".jsonl": "json", ".txt": "text", ".csv": "csv", ".parquet": "parquet"}
_PERIOD = 20


class Records:
    """Of each run of `period` records of a dataset, those at the places of `kept`."""

    def __init__(self, name: str, dataset: Any, kept: range, period: int) -> None:
        self._name = name
        self._dataset = dataset
        self._kept = kept
        self._period = period
        self._rest: Iterator[Any] | None = None
        self._next = 0
        self.count: int | None = None
        """How many there are; of a stream it is known when its end has been seen."""
        if hasattr(dataset, "__len__"):
            runs, left = divmod(len(dataset), period)
            self.count = runs * len(kept) + sum(place < left for place in kept)

    def read(self, first: int, count: int) -> list[Any]:
        """Records first … first+count−1, or fewer where the dataset ends."""
        try:
            # Forgotten until all has gone well: a reader that has failed looks like one at its end.
            rest, self._rest = self._rest, None
            if rest is None or first != self._next:
                rest = self._from(first)
            records = list(itertools.islice(rest, count))
            if len(records) == count:
                self._rest, self._next = rest, first + count
            elif self.count is None:
                # Nothing read tells that the end lies before, but not where.
                known = records or first == 0
                self.count = first + len(records) if known else sum(1 for _ in self._from(0))
            return records
        except OSError as error:
            raise DataUnavailable(f"cannot read {self._name}: {_one_line(error)}") from error
        except Exception as error:  # each of the library's readers has its own
            raise DataError(f"cannot read {self._name}: {_one_line(error)}") from error

    def _from(self, first: int) -> Iterator[Any]:
        run, place = divmod(first, len(self._kept))
        start = run * self._period + self._kept[place]
        numbered = enumerate(self._dataset.skip(start), start=start)
        return (record for number, record in numbered if number % self._period in self._kept)

    def __getstate__(self) -> dict[str, Any]:
        # A place in a stream cannot be sent to another process, which starts from the beginning.
        return self.__dict__ | {"_rest": None}


def open_records(
    name: str,
    *,
    column: str,
    config: str | None,
    revision: str | None,
    data_files: DataFiles | None,
    splits: Mapping[Split, str],
) -> dict[Split, Records]:
    """The records of each split, of which only one column is read."""
    loaded = _load(name, config, revision, data_files)
    native = _native_splits(name, list(loaded), splits)
    missing = [split for split in SPLITS if split not in native]
    for_training = _PERIOD - len(missing)
    records = {}
    for split in SPLITS:
        if split in missing:
            place = for_training + missing.index(split)
            source, kept, period = native["train"], range(place, place + 1), _PERIOD
        elif split == "train" and missing:
            source, kept, period = native["train"], range(for_training), _PERIOD
        else:
            source, kept, period = native[split], range(1), 1
        records[split] = Records(name, _only(column, loaded[source], name), kept, period)
    return records


def _load(
    name: str, config: str | None, revision: str | None, data_files: DataFiles | None
) -> dict[str, Any]:
    """The dataset's splits by their own names."""
    library = _import_datasets()
    path = Path(name).expanduser()
    try:
        if any((path / mark).is_file() for mark in ("dataset_info.json", "dataset_dict.json")):
            loaded = library.load_from_disk(str(path))
        elif path.is_file():
            if path.suffix not in _READERS:
                raise DataError(f"{path} must end in one of {', '.join(_READERS)}")
            loaded = library.load_dataset(
                _READERS[path.suffix], data_files=str(path), streaming=True
            )
        else:
            loaded = library.load_dataset(
                name, config, revision=revision, data_files=data_files, streaming=True
            )
    except DataError:
        raise
    except OSError as error:
        raise DataUnavailable(
            f"cannot open the dataset {name!r} ({_one_line(error)}); expected is a name on the hub "
            "or, where there is no network, a local copy: a folder made by save_to_disk or a file "
            f"{', '.join(_READERS)}"
        ) from error
    except Exception as error:  # the library raises nothing narrower
        raise DataError(f"cannot open the dataset {name!r}: {_one_line(error)}") from error
    return dict(loaded) if isinstance(loaded, Mapping) else {"train": loaded}


def _native_splits(name: str, present: list[str], chosen: Mapping[Split, str]) -> dict[Split, str]:
    """Which of the dataset's own splits serves as train, valid and test."""
    listed = ", ".join(present) or "none"
    native: dict[Split, str] = {}
    for split, own in chosen.items():
        if split not in SPLITS or own not in present:
            raise DataError(
                f"splits maps {split!r} to {own!r}; its keys must be of {', '.join(SPLITS)}, and "
                f"{name!r} has the splits {listed}"
            )
        native[split] = own
    for split, names in _USUAL_NAMES.items():
        found = [own for own in names if own in present]
        if found:
            native.setdefault(split, found[0])
    if "train" not in native:
        raise DataError(
            f"{name!r} has the splits {listed}, none called train; choose one, as in "
            f"splits={{'train': '{present[0] if present else '…'}'}}"
        )
    return native


def _only(column: str, dataset: Any, name: str) -> Any:
    # Streams of some formats tell their columns only with the first record.
    if dataset.column_names is None:
        return dataset
    if column not in dataset.column_names:
        raise DataError(
            f"{name!r} has no column {column!r}; it has {', '.join(dataset.column_names)}"
        )
    return dataset.select_columns([column])


def _import_datasets() -> Any:
    return extras.require("data of the Hugging Face Hub", "datasets", "data")


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
