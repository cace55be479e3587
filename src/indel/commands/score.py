"""`indel score`."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from indel.commands.arguments import AsJson, Device, Model, Seed

if TYPE_CHECKING:
    from indel.bound.edit_scores import Alignment
    from indel.bound.estimates import Estimate
    from indel.vocabularies import Vocabulary


def score(
    model: Model,
    file: Annotated[Path, typer.Argument(help="Sequences, one per line.")],
    reference: Annotated[
        Path, typer.Option(help="What each line was before: as many lines, or one for all.")
    ],
    chains: Annotated[
        int, typer.Option(min=2, max=100_000, help="Chains per pair: more, less noise.")
    ] = 16,
    times: Annotated[
        int | None, typer.Option(min=1, help="So many random t per chain; default: all.")
    ] = None,
    seed: Seed = 0,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """How much likelier edits make a sequence, and what the edits most likely are."""
    from indel.api.basics import tokens_of
    from indel.bound.edit_scores import edit_scores
    from indel.loading import load
    from indel.sharing import Processes

    processes = Processes.launched()
    denoiser = load(model, device=processes.device(device))
    texts, before = _lines(file), _lines(reference)
    before = before * len(texts) if len(before) == 1 else before
    if len(before) != len(texts):
        raise ValueError(
            f"--reference must have as many lines as {file}, {len(texts)}, or one for all; "
            f"{reference} has {len(before)}"
        )
    sequences, references = (
        [tokens_of(denoiser, text, f"{name}, line {n}: ") for n, text in enumerate(lines, start=1)]
        for name, lines in ((file, texts), (reference, before))
    )
    scores = edit_scores(
        denoiser,
        sequences,
        references,
        seed=seed,
        chains=chains,
        num_times=times,
        processes=processes,
    )
    if not processes.is_first:
        return
    table = Table("text", "nats", "reference", "difference", "t", "edits", "probability", box=None)
    for number, found in enumerate(scores):
        shown = drawn(found.alignment, references[number], sequences[number], denoiser.vocabulary)
        if as_json:
            known: dict[str, Any] = {"text": texts[number], "reference": before[number]}
            for name in ("nats", "reference_nats", "difference"):
                known[name] = _plain(getattr(found, name))
            known["alignment"] = {**_finite(asdict(found.alignment)), "drawn": shown}
            print(json.dumps(known, ensure_ascii=False, allow_nan=False))
            continue
        table.add_row(
            texts[number],
            f"{found.nats.mean:.2f}",
            f"{found.reference_nats.mean:.2f}",
            f"{found.difference.mean:.2f} ± {found.difference.standard_error:.2f}",
            str(found.alignment.t),
            shown,
            f"{found.alignment.prob:.3f}",
        )
    if not as_json:
        Console(soft_wrap=True, highlight=False, markup=False).print(table, markup=False)


def drawn(
    alignment: Alignment, reference: list[int], sequence: list[int], vocabulary: Vocabulary
) -> str:
    """The sequence with its edits: (a→b) replaced, (+b) inserted, (-a) deleted.

    >>> from indel import CharacterVocabulary
    >>> from indel.bound.edit_scores import Alignment
    >>> abc = CharacterVocabulary("abc")
    >>> drawn(Alignment((0, -1), (1,), 1.0, 0.0, 1), [0, 1], [1, 2], abc)
    '(a→b)(+c)(-b)'
    """
    shown: list[str] = []
    place = 0

    def lost(until: int) -> None:
        nonlocal place
        shown.extend(f"(-{vocabulary.text([reference[i]])})" for i in range(place, until))
        place = until

    for token, source in zip(sequence, alignment.source, strict=True):
        new = vocabulary.text([token])
        if source < 0:
            shown.append(f"(+{new})")
            continue
        lost(source)
        place = source + 1
        old = vocabulary.text([reference[source]])
        shown.append(new if token == reference[source] else f"({old}→{new})")
    lost(len(reference))
    return "".join(shown)


def _lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text in UTF-8: {error}") from None
    if not lines:
        raise ValueError(f"{path} has no line")
    return lines


def _plain(estimate: Estimate) -> dict[str, float | None]:
    return _finite(estimate._asdict())


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has neither NaN nor infinity: both become null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
