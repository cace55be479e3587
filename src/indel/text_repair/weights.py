"""How much each kind of evidence counts, with and without known words; kept beside a model."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from indel.atomic_files import write_output
from indel.model.saving import REPAIR_WEIGHTS


@dataclass(frozen=True)
class Weights:
    """log p(text | typed) = Σ weight · evidence + constant, over all candidates for one place.

    With the weights 1 for count, typing and letters this is Bayes' rule; `indel tune-repair` finds
    those that predict best how a file of pairs was corrected.
    """

    count: float = 0.0
    """Of log n: how often the words of the text stand in the training text."""
    typing: float = 0.0
    """Of log q: how likely the typing channel makes the typed letters of the text."""
    kept: float = 0.0
    """The text is what was typed, all words of it known (or no words at hand)."""
    unknown: float = 0.0
    """Of the number of unknown words in the text."""
    letters: float = 0.0
    """Of the log-probability of the letters of unknown words."""
    derived: float = 0.0
    """Of the number of unknown words that follow from known ones by rule."""
    split: float = 0.0
    """Of the number of spaces put in."""
    joined: float = 0.0
    """Of the number of spaces taken out."""
    first_letter: float = 0.0
    """The first letter is another."""
    pairs: float = 0.0
    """Of how well the words follow each other and those around them, by counts of pairs."""
    contexts: float = 0.0
    """Of the log-probability of the letters, and of those after them, by the model's contexts."""
    votes: float = 0.0
    """Of how many draws write it: log (share + ε) − log ε."""
    context_kept: float = 0.0
    """Of the network's log-probability that nothing of the text needs an edit where it stands."""
    context_written: float = 0.0
    """Of the network's log-probability of the letters where the word is taken out."""

    @property
    def asks_network(self) -> bool:
        """Whether the network's own scores count at all."""
        return self.context_kept != 0 or self.context_written != 0


EVIDENCE = tuple(each.name for each in fields(Weights))
"""The kinds of evidence, in the order of the columns of a table of them."""


@dataclass(frozen=True)
class RepairWeights:
    """The weights of a model's folder: with its known words, and of the network alone."""

    words: Weights = field(
        default_factory=lambda: Weights(
            count=0.36,
            typing=0.81,
            kept=0.6,
            unknown=-2.4,
            letters=0.25,
            derived=1.9,
            split=-2.6,
            joined=1.0,
            first_letter=-1.45,
            pairs=0.62,
            contexts=0.13,
            votes=0.1,
        )
    )
    """Found by `indel tune-repair --no-network` on half of a file of pairs and rounded
    (docs/experiments.md). But `kept` and `derived` are 1 higher: known words and their forms are
    seldom wrong outside of learners' sentences."""
    network: Weights | None = None
    """None: the shares of the draws are the probabilities."""

    @classmethod
    def read(cls, folder: Path) -> RepairWeights:
        """The weights in the folder of a model; the defaults if there is no such file."""
        path = folder / REPAIR_WEIGHTS
        if not path.is_file():
            return cls()
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is no JSON: {error}") from None
        if not isinstance(data, dict) or not data.keys() <= {"words", "network"}:
            raise ValueError(f"{path}: expected an object with words and network")
        return cls(**{name: _weights(path, name, values) for name, values in data.items()})

    def write(self, folder: Path) -> None:
        """Write the file that `read` reads."""
        data = {"words": asdict(self.words)}
        if self.network is not None:
            data["network"] = asdict(self.network)
        write_output(folder / REPAIR_WEIGHTS, (json.dumps(data, indent=2) + "\n").encode())


def _weights(path: Path, name: str, values: Any) -> Weights:
    if not isinstance(values, dict) or not values.keys() <= set(EVIDENCE):
        raise ValueError(f"{path}, {name}: expected weights of {', '.join(EVIDENCE)}")
    for key, value in values.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            raise ValueError(f"{path}, {name}: {key} must be a finite number, got {value!r}")
    return Weights(**{key: float(value) for key, value in values.items()})
