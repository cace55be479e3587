"""The processes by name, each imported when it is first built."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, cast

from torch import nn

from indel import checks
from indel.comparison.interface import Method
from indel.model.backbones import BackboneConfig

Build = Callable[[int, BackboneConfig, int, dict[str, Any]], Method]

_DIFFUSION = "indel.comparison.diffusion:build"


@dataclass(frozen=True)
class Process:
    """Where a process is made, and with which options."""

    home: str
    """module:function"""
    options: dict[str, Any] = field(default_factory=dict)
    needs_order: bool = False
    """Whether it is for tokens that have an order."""

    @property
    def has_steps(self) -> bool:
        """Whether it has a number of steps T, an option `num_steps`."""
        return self.home == _DIFFUSION

    def build(self) -> Build:
        """The function that makes it."""
        module, _, function = self.home.partition(":")
        return cast("Build", getattr(import_module(module), function))


_PROCESSES: dict[str, Process] = {
    "autoregressive": Process("indel.comparison.autoregressive:build"),
    "in-place-uniform": Process(_DIFFUSION, {"process": "in-place-uniform"}),
    "in-place-mask": Process(_DIFFUSION, {"process": "in-place-mask"}),
    "in-place-gaussian": Process(_DIFFUSION, {"process": "in-place-gaussian"}, needs_order=True),
    "delete-only": Process(_DIFFUSION, {"process": "delete-only"}),
    "levenshtein-transformer": Process("indel.comparison.levenshtein_transformer:build"),
    "insertion-deletion-transformer": Process(
        "indel.comparison.insertion_deletion_transformer:build"
    ),
    "edit-flow": Process("indel.comparison.edit_flow:build"),
}
_RATED = ("insert-delete", "mask-insert-delete", "mask-delete-only")
"""Processes whose name ends in the rate of deletion."""
_RATE = re.compile(rf"({'|'.join(_RATED)})-(0\.\d{{1,6}})")
_COUNTED = ("in-place-uniform", "in-place-gaussian", "insert-delete")
"""Processes whose network may start from counts; then their name ends so:"""
_COUNTS = "-counts"

NAMES = (*_PROCESSES, *(f"{name}-RATE" for name in _RATED), "insert-delete-RATE-counts")
"""What `--processes` takes; RATE is a number such as 0.6."""
USUAL = (
    "autoregressive",
    "in-place-uniform",
    "in-place-mask",
    "in-place-gaussian",
    "insert-delete-0.4",
    "insert-delete-0.6",
    "delete-only",
    "mask-delete-only-0.6",
    "mask-insert-delete-0.6",
    "levenshtein-transformer",
    "insertion-deletion-transformer",
    "edit-flow",
    "insert-delete-0.6-counts",
)
"""What is compared unless it is said."""


def process_of(name: str) -> Process:
    """The process of a name.

    >>> process_of("insert-delete-0.4").options
    {'process': 'insert-delete', 'rate': 0.4}
    """
    plain = _without_counts(name.removesuffix(_COUNTS))
    if plain is not None and not name.endswith(_COUNTS):
        return plain
    if plain is not None and plain.options.get("process") in _COUNTED:
        return replace(plain, options={**plain.options, "counts": True})
    hint = checks.closest(name, [*_PROCESSES, *USUAL]) or "."
    raise ValueError(
        f"there is no process {name!r}{hint} There are {', '.join(NAMES)}, with a RATE such as 0.6"
    )


def _without_counts(name: str) -> Process | None:
    if name in _PROCESSES:
        return _PROCESSES[name]
    found = _RATE.fullmatch(name)
    if found is None or float(found[2]) == 0:
        return None
    return Process(_DIFFUSION, {"process": found[1], "rate": float(found[2])})


def build_method(
    name: str,
    vocabulary_size: int,
    backbone: BackboneConfig,
    max_length: int,
    *,
    num_steps: int,
) -> Method:
    """A new method; T is for those that have steps of a forward process."""
    process = process_of(name)
    steps = {"num_steps": num_steps} if process.has_steps else {}
    method = process.build()(vocabulary_size, backbone, max_length, {**process.options, **steps})
    if not isinstance(method, nn.Module) or not isinstance(method, Method):
        raise TypeError(f"{process.home} must make a torch.nn.Module that is a Method")
    if method.name != name:
        raise ValueError(f"{process.home} made {method.name!r}, asked for was {name!r}")
    return method
