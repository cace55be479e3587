"""One file with all that a run needs to go on: weights, optimizers, and counters as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from indel.atomic_files import whole_file
from indel.training.errors import CheckpointError

_STATE = "state"


@dataclass(frozen=True)
class Checkpoint:
    """Named tensors, and counters as JSON data."""

    weights: dict[str, Tensor]
    optimizers: dict[str, Tensor]
    state: dict[str, Any]

    def write(self, path: Path) -> None:
        """Write the file whole or not at all."""
        tensors = {f"weights.{name}": each for name, each in self.weights.items()}
        tensors |= {f"optimizers.{name}": each for name, each in self.optimizers.items()}
        content = save(tensors, metadata={_STATE: json.dumps(self.state, allow_nan=False)})
        try:
            with whole_file(path) as file:
                file.write(content)
        except OSError as error:
            reason = error.strerror or error
            raise CheckpointError(
                f"cannot write {path}: {reason}; make room, then give the same command again"
            ) from error

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read what `write` wrote."""
        parts: dict[str, dict[str, Tensor]] = {"weights": {}, "optimizers": {}}
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118  # it is no dictionary
                    part, _, rest = name.partition(".")
                    parts[part][rest] = file.get_tensor(name)
                state = json.loads((file.metadata() or {})[_STATE])
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise CheckpointError(
                f"{path} is no whole checkpoint ({error}): delete it to train this process anew"
            ) from error
        return cls(parts["weights"], parts["optimizers"], state)
