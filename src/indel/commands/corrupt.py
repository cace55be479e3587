"""`indel corrupt`."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from indel import CharacterVocabulary
    from indel.process.schedules import TransitionFamily


class Replacements(StrEnum):
    """What the forward process puts in place of a letter that it does not keep."""

    UNIFORM = "uniform"
    ABSORBING = "absorbing"
    QWERTY = "qwerty"


def corrupt(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A sentence of a–z, spaces and “-”.")],
    steps: Annotated[int, typer.Option(min=2, max=1000, help="The number T of steps.")] = 10,
    rate: Annotated[
        float,
        typer.Option(min=0, max=1, help="The share of the text that is deleted, and inserted."),
    ] = 0.6,
    transition: Annotated[
        Replacements,
        typer.Option(help="What replaces a letter: any one, the mask “-”, or a key next to it."),
    ] = Replacements.UNIFORM,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same chain.")
    ] = 0,
    at: Annotated[
        int | None,
        typer.Option(min=0, help="Sum up the edits until this step (default: half of --steps)."),
    ] = None,
    align: Annotated[
        bool, typer.Option("--align", help="Give each letter a column of its own.")
    ] = False,
    normalize: Annotated[
        bool,
        typer.Option(
            "--normalize", "--normalise", help="First rewrite the text in a–z and spaces."
        ),
    ] = False,
) -> None:
    """Show how the forward process takes a sentence apart, step by step."""
    if at is None:
        at = steps // 2
    elif at > steps:
        raise ValueError(f"--at must lie in 0…{steps} (--steps), got {at}")

    import torch

    from indel import Batch, CharacterVocabulary, normalize_text8
    from indel.drawing import terminal
    from indel.process import Schedule, corrupt_chain, summarize

    vocabulary = CharacterVocabulary.text8()
    try:
        tokens = vocabulary.encode(normalize_text8(text) if normalize else text)
    except ValueError as error:
        raise ValueError(f"{error} (--normalize does that here)") from None
    schedule = Schedule.paper(
        vocabulary.size, steps, rate, transition=_family(transition, vocabulary)
    )
    generator = torch.Generator().manual_seed(seed)
    chain = corrupt_chain(schedule, Batch.from_lists([tokens]), generator=generator)
    edits = summarize(chain[: at + 1], vocabulary.size)

    console = Console(highlight=False, soft_wrap=True)
    plain = console.no_color or console.color_system is None
    first, chosen, last = (terminal.step_name(t) for t in (0, at, steps))
    settings = f"rate {rate:g}, {transition} replacements, seed {seed}"
    console.print(f"[bold]The forward process, {first} to {last}[/]   [dim]{settings}[/]\n")
    console.print(
        terminal.render_chain(chain, vocabulary, width=console.width, aligned=align, marks=plain)
    )
    note = "a deletion followed by an insert is a replacement"
    console.print(f"\n[bold]The edits from {first} to {chosen}[/]   [dim]{note}[/]\n")
    console.print(
        terminal.render_summary(chain[0], chain[at], edits, vocabulary, t=at, width=console.width)
    )
    console.print()
    console.print(terminal.render_legend())


def _family(kind: Replacements, vocabulary: CharacterVocabulary) -> TransitionFamily:
    from indel.process import AbsorbingTransition, NeighborTransition, UniformTransition

    def qwerty(_: int, prob_keep: float) -> NeighborTransition:
        return NeighborTransition.qwerty(vocabulary.characters, prob_keep)

    mask = vocabulary.characters.index("-")
    families: dict[Replacements, TransitionFamily] = {
        Replacements.UNIFORM: UniformTransition,
        Replacements.ABSORBING: partial(AbsorbingTransition, mask=mask),
        Replacements.QWERTY: qwerty,
    }
    return families[kind]
