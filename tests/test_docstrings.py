"""What `import indel` and `indel.process` offer is documented: each argument, result and source."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import indel
from indel import process

CONSTRUCTORS = [
    *(process.Schedule, process.Schedule.paper, process.Schedule.interpolate, process.Step),
    *(process.UniformTransition, process.AbsorbingTransition, process.MatrixTransition),
    *(process.GaussianTransition, process.NeighborTransition, process.NeighborTransition.qwerty),
    *(indel.Sequences.lines, indel.Sequences.csv, indel.Batch.from_lists),
    *(indel.Denoiser.from_preset, indel.Denoiser.from_pretrained),
]
FUNCTIONS = [
    found
    for home in (indel, process)
    for name in home.__all__
    if inspect.isfunction(found := getattr(home, name))
]


def described(docstring: str) -> set[str]:
    """The names in the section Args.

    >>> sorted(described("Do.\\n\\nArgs:\\n    x: One,\\n        or two.\\n    y: Three.\\n"))
    ['x', 'y']
    """
    section = re.search(r"^Args:\n((?:    .*\n)+)", docstring, re.MULTILINE)
    return set(re.findall(r"^    (\w+): ", section[1], re.MULTILINE)) if section else set()


def missing(found: Callable[..., Any]) -> list[str]:
    """What a docstring lacks."""
    docstring = (inspect.getdoc(found) or "") + "\n"
    parameters = set(inspect.signature(found).parameters)
    lacks = sorted(parameters ^ described(docstring))
    first = docstring.partition("\n\n")[0]
    lacks += [] if first.rstrip().endswith((".", ":")) else ["a sentence"]
    if not inspect.isclass(found) and "\nReturns:\n" not in docstring:
        lacks.append("Returns")
    lacks += [] if "\n>>> " in docstring else ["an example"]
    return lacks + ([] if re.search(r"^(Reference|Paper): ", docstring, re.M) else ["a reference"])


@pytest.mark.parametrize("found", FUNCTIONS + CONSTRUCTORS, ids=lambda found: found.__qualname__)
def test_each_argument_is_described(found: Callable[..., Any]) -> None:
    assert not missing(found)


def test_about_thirty_are_looked_at() -> None:
    assert {indel.loss, indel.train, indel.repair, process.corrupt} <= set(FUNCTIONS)
    assert len(FUNCTIONS) + len(CONSTRUCTORS) >= 30


def test_what_is_missing_is_seen() -> None:
    def undescribed(x: int, y: int) -> int:
        """Add.

        Args:
            x: One.

        >>> 1 + 1
        2
        """
        return x + y

    assert missing(undescribed) == ["y", "Returns", "a reference"]
