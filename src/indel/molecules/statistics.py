"""What is known of a set of molecules: fingerprints, parts, properties; kept between runs."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from indel.atomic_files import cache_folder
from indel.data.caching import replacing
from indel.molecules.chemistry import molecule, rdkit
from indel.molecules.fingerprints import BITS, fingerprints
from indel.molecules.parts import fragments, scaffold
from indel.molecules.properties import PROPERTIES

_VERSION = 1  # part of the name of a cached file: raise it when a definition changes


@dataclass(frozen=True)
class Statistics:
    """All that the metrics ask of a set of molecules."""

    bits: NDArray[np.uint8]
    fragments: Counter[str]
    scaffolds: Counter[str]
    properties: dict[str, NDArray[np.float64]]

    @classmethod
    def of(cls, smiles: Sequence[str], *, progress: bool = False) -> Statistics:
        """The statistics of valid molecules, about three milliseconds each."""
        bits: list[NDArray[np.uint8]] = []
        pieces, scaffolds = Counter[str](), Counter[str]()
        values: dict[str, list[float]] = {name: [] for name in PROPERTIES}
        for text in track(smiles, "molecules", disable=not progress, transient=True):
            found = molecule(text)
            bits.append(fingerprints([found]))
            pieces.update(fragments(found))
            scaffolds.update(filter(None, [scaffold(found)]))
            for name, property_of in PROPERTIES.items():
                values[name].append(property_of(found))
        whole = np.concatenate(bits) if bits else np.zeros((0, BITS), dtype=np.uint8)
        arrays = {name: np.array(each, dtype=np.float64) for name, each in values.items()}
        return cls(whole, pieces, scaffolds, arrays)

    @classmethod
    def kept(
        cls, smiles: Sequence[str], *, cache: Path | None = None, progress: bool = False
    ) -> Statistics:
        """The same, written to the cache once for each set of molecules and version of RDKit."""
        content = hashlib.sha256("\n".join(smiles).encode()).hexdigest()[:24]
        version = rdkit("rdBase").rdkitVersion
        file = cache_folder(cache) / "molecules" / f"{content}-{version}-{_VERSION}.npz"
        if file.is_file() and (known := _read(file)) is not None:
            return known
        statistics = cls.of(smiles, progress=progress)
        with replacing(file) as target:
            np.savez_compressed(target, allow_pickle=False, **statistics._arrays())
        return statistics

    def _arrays(self) -> dict[str, NDArray[Any]]:
        counts = {"fragments": self.fragments, "scaffolds": self.scaffolds}
        return {
            "bits": np.packbits(self.bits, axis=1),
            "counts": np.frombuffer(json.dumps(counts).encode(), dtype=np.uint8),
            **{f"property {name}": values for name, values in self.properties.items()},
        }


def _read(file: Path) -> Statistics | None:
    """What a cached file holds; None if it is damaged."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            counts = json.loads(arrays["counts"].tobytes())
            return Statistics(
                np.unpackbits(arrays["bits"], axis=1, count=BITS),
                Counter(counts["fragments"]),
                Counter(counts["scaffolds"]),
                {name: arrays[f"property {name}"] for name in PROPERTIES},
            )
    except Exception:  # damage can make zipfile and numpy raise almost anything
        return None
