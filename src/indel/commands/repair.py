"""`indel repair`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from indel.atomic_files import write_output
from indel.commands import repair_views
from indel.commands.arguments import BatchSize, Device, Seed, open_repairer
from indel.commands.repair_views import Answer
from indel.text_repair import defaults

if TYPE_CHECKING:
    from indel.model import Denoiser
    from indel.text_repair.results import Repair

STANDARD_INPUT = "-"
COMPARED = ("text8", "in-place")

Words = Annotated[
    bool, typer.Option(help="Whether words that lie beside the model help to judge spelling.")
]


def repair(
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="The text; “-” reads standard input.")
    ] = None,
    file: Annotated[
        str | None, typer.Option(metavar="PATH", help="Repair a file; “-” is standard input.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|PATH",
            help=f"text8, in-place, or a folder (default: {defaults.MODEL}). Twice with --compare.",
        ),
    ] = None,
    strength: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The time t that the text is taken to be at: how noisy it is believed to be "
            f"(default: {defaults.STRENGTH}; with --paper 10).",
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=10_000,
            help="How often x_0 is drawn (default: not at all, the network's guess of the edits "
            "is read off; with --paper 5).",
        ),
    ] = None,
    agreement: Annotated[
        float | None,
        typer.Option(
            help=f"How sure a correction must be, at most 1 (default: {defaults.AGREEMENT:g}).",
        ),
    ] = None,
    words: Words = True,
    seed: Seed = 0,
    paper: Annotated[
        bool, typer.Option("--paper", help="Single draws, as in the paper: a sentence as x_10.")
    ] = False,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="The insert/delete and the in-place model side by side."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write to a file, not to the screen.")] = None,
    show_diff: Annotated[
        bool | None,
        typer.Option("--diff/--plain", help="Default: the diff on a terminal, otherwise plain."),
    ] = None,
    batch_size: BatchSize = defaults.BATCH_SIZE,
    device: Device = "cpu",
) -> None:
    """Mend a badly typed text; what is not mended stays as it is, to the byte."""
    if paper and compare:
        raise ValueError("--compare shows the paper's way too: leave out --paper")
    if paper and agreement is not None:
        raise ValueError("--agreement has no meaning with --paper, whose draws are not combined")
    if show_diff is not None and (as_json or paper or compare or out is not None):
        raise ValueError(
            "--diff and --plain are for repairs on the screen: leave them out with --json, "
            "--paper, --compare and --out"
        )
    if compare and out is not None and not as_json:
        raise ValueError("--compare is a table for the screen: --out takes it with --json only")
    names = model or (COMPARED if compare else (defaults.MODEL,))
    if len(names) != 1 + compare:
        raise ValueError(
            f"--model must be given once, or twice with --compare; got {', '.join(names)}"
        )
    given: dict[str, Any] = {"strength": strength, "draws": draws, "agreement": agreement}
    settings = {name: value for name, value in given.items() if value is not None}
    from indel.sharing import Processes

    processes = Processes.launched()
    # Standard input can be read once.
    given_text = json.dumps(_read(text, file)) if processes.is_first else ""
    source, ending = json.loads(processes.gather(given_text.encode())[0])
    device = processes.device(device)
    if paper:
        from indel.loading import load

        drawn = _single_draws(load(names[0], device=device), source, seed=seed, **settings)
        if not processes.is_first:
            return
        lines = "".join(f"{line}\n" for line in drawn)
        _write(_json({"model": names[0], "draws": drawn}) if as_json else lines, out)
        return
    answers = []
    for name in names:
        repairer = open_repairer(
            name,
            device,
            with_words=words,
            seed=seed,
            batch_size=batch_size,
            processes=processes,
            **settings,
        )
        single = _single_draws(repairer.mender.denoiser, source, seed=seed) if compare else None
        with repair_views.progress_bar(name, shown=processes.is_first) as progress:
            answers.append(Answer(name, repairer([source], progress=progress)[0], single))
    if not processes.is_first:
        return
    if as_json:
        found = [asdict(answer) for answer in answers]
        _write(_json(found if compare else found[0]), out)
    elif compare:
        console = Console(highlight=False)
        console.print(repair_views.comparison(answers, signs=_needs_signs(console)))
    else:
        _show(answers[0].repair, ending, out, show_diff)


def _show(repair: Repair, ending: str, out: Path | None, show_diff: bool | None) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if out is not None or not (console.is_terminal if show_diff is None else show_diff):
        _write(repair.text + ending, out)
        return
    console.print(repair_views.diff(repair, signs=_needs_signs(console)))
    console.print(repair_views.summary(repair))


def _needs_signs(console: Console) -> bool:
    return console.no_color or console.color_system is None


def _single_draws(denoiser: Denoiser, source: str, **settings: Any) -> list[str]:
    from indel.text_repair.paper_way import paper_draws
    from indel.vocabularies.text8_alphabet import normalize_text8

    return paper_draws(denoiser, normalize_text8(source, strip_accents=True), **settings)


def _read(text: str | None, file: str | None) -> tuple[str, str]:
    """The text, and what to print after it: a file ends as it ends."""
    if text is not None and file is not None:
        raise ValueError(f"give a TEXT or --file, not both; got {text[:40]!r} and {file!r}")
    if text is not None and text != STANDARD_INPUT:
        return text, "\n"
    if file is not None and file != STANDARD_INPUT:
        return _decoded(Path(file).read_bytes()), ""
    if sys.stdin is None:
        raise ValueError("standard input is closed: give a TEXT or --file PATH")
    if text is None and file is None and sys.stdin.isatty():
        raise ValueError("nothing to repair: give a TEXT, --file PATH, or pipe a text in")
    return _decoded(sys.stdin.buffer.read()), ""


def _json(data: object) -> str:
    # In ASCII: halves of characters, which stand for bytes that are not UTF-8, are escaped too.
    return json.dumps(data, indent=2) + "\n"


def _write(text: str, out: Path | None) -> None:
    content = _encoded(text)
    if out is not None:
        write_output(out, content)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _decoded(content: bytes) -> str:
    """Any bytes as text, so that `_encoded` gives the same bytes."""
    return content.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    """The bytes of a text; those that were not UTF-8 when they were read come back."""
    return text.encode("utf-8", "surrogateescape")
