"""`indel mutate`."""

from __future__ import annotations

import json
import re
from typing import Annotated

import typer

from indel.commands.arguments import AsJson, Count, Device, Model, Seed, Temperature, TopP
from indel.commands.molecule_views import Draw, check_molecule, counted, relatives_of, write_picture


def mutate(
    model: Model,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is varied.")],
    edits: Annotated[
        str, typer.Option(metavar="LEAST-MOST", help="How many tokens may differ (Levenshtein).")
    ] = "1-5",
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="START-END",
            help="Tokens that must not change, counted from 0, without END; may be repeated.",
        ),
    ] = None,
    count: Count = 5,
    seed: Seed = 0,
    temperature: Temperature = 1.0,
    top_p: TopP = 1.0,
    draw: Draw = None,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Vary a text: so many edits away from it, with spans that must not change.

    Of a molecule also how similar each variant is, and whether it is valid.
    """
    from indel.api.editing import mutate as vary
    from indel.loading import load

    least, most = _range(edits, "--edits")
    denoiser = load(model, device=device)
    check_molecule(denoiser, text, draw)
    mutations = vary(
        denoiser,
        text,
        count,
        edits=(least, most),
        keep=[_range(span, "--keep") for span in keep or []],
        seed=seed,
        temperature=temperature,
        top_p=top_p,
    )
    related = relatives_of(denoiser, text, mutations.texts)
    if draw is not None and related is not None:
        from indel.molecules.relatives import panels

        write_picture(draw, panels(text, related))
    for row, found in enumerate(mutations.texts):
        if not as_json:
            about = (
                "" if related is None else f" {counted(int(mutations.edits[row]))}, {related[row]}"
            )
            print(found + about)
            continue
        known = {
            "text": found,
            "ids": mutations.samples.x.to_lists()[row],
            "edits": int(mutations.edits[row]),
            "t": int(mutations.t[row]),
            "attempts": int(mutations.attempts[row]),
        }
        if related is not None:
            known |= {"valid": related[row].valid, "similarity": related[row].similarity}
        print(json.dumps(known, ensure_ascii=False))


def _range(text: str, option: str) -> tuple[int, int]:
    """Two integers with a dash between them, or one for both ends of --edits."""
    found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", text)
    if found is None or (found[2] is None and option == "--keep"):
        raise ValueError(f"{option} takes two numbers such as 3-6, got {text!r}")
    return int(found[1]), int(found[2] or found[1])
