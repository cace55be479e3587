"""`indel evaluate-molecules`."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from indel.commands.arguments import BatchSize, Device, Seed, parsed_settings, run_config
from indel.commands.molecule_views import require_smiles

if TYPE_CHECKING:
    from indel.data.packed import PackedSequences
    from indel.molecules.metrics import Metrics, Reference

SAMPLE, WHOLE = "moses-sample", "moses"
FAULTS = {
    "aromatic": "a ring cannot be aromatic as it is written",
    "valence": "an atom has too many bonds",
    "syntax": "the string is no SMILES",
}


def evaluate_molecules(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL|FILE", help="A model of SMILES, or a file with one string per line."
        ),
    ],
    samples: Annotated[
        int, typer.Option("--samples", "-n", min=1, max=1_000_000, help="How many are generated.")
    ] = 10_000,
    data: Annotated[
        str | None,
        typer.Option(
            help="moses or moses-sample, to compare with; default: that of the model's run, "
            "otherwise the sample."
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="Of --data, e.g. path=FOLDER."),
    ] = None,
    reference: Annotated[
        int | None,
        typer.Option(min=2, help="Compare with so many test molecules; default: all of them."),
    ] = None,
    chemnet: Annotated[
        bool, typer.Option("--fcd", help="Also the Fréchet ChemNet Distance, which takes longest.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="Write the generated strings to this file, one per line.")
    ] = None,
    seed: Seed = 0,
    temperature: Annotated[float, typer.Option(help="Of both heads; 1 is the model itself.")] = 1.0,
    top_p: Annotated[float, typer.Option(help="Keep this share of the mass of both heads.")] = 1.0,
    batch_size: BatchSize = 256,
    device: Device = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """MOSES's metrics of made-up molecules, beside those of its paper's models."""
    from indel.atomic_files import write_output
    from indel.molecules.chemistry import fault, rdkit
    from indel.molecules.metrics import measure

    # Before anything that takes long, such as generating: what may be missing.
    rdkit()
    name, options = _data(data, parsed_settings(option or [], "--option"), source)
    streams = [_stream(name, {**options, "scaffolds": each}) for each in (False, True)]
    if source.is_file():
        strings = _strings(source)
    else:
        settings = {"temperature": temperature, "top_p": top_p, "batch_size": batch_size}
        strings = _generated(source, samples, seed, device, settings)
    if save is not None:
        write_output(save, "".join(f"{text}\n" for text in strings).encode())
    references = [
        _reference(label, stream, reference)
        for label, stream in zip(("Test", "TestSF"), streams, strict=True)
    ]
    training = {*streams[0].texts("train"), *streams[0].texts("valid")}
    found = measure(
        strings, references, training, with_chemnet=chemnet, progress=sys.stderr.isatty()
    )
    sizes = {each.name: len(each.smiles) for each in references}
    faults = Counter(filter(None, map(fault, strings)))
    if as_json:
        plain = {name: value if math.isfinite(value) else None for name, value in found.items()}
        counts = {"strings": len(strings), "faults": faults, "reference": sizes}
        print(json.dumps({**counts, **plain}, allow_nan=False))
        return
    _show(found, len(strings), name, sizes)
    for kind, count in faults.most_common():
        print(f"{count:,} are no molecules: {FAULTS[kind]}.")


def _data(name: str | None, options: dict[str, Any], source: Path) -> tuple[str, dict[str, Any]]:
    """The name and the options of the molecules to compare with."""
    config = None if name is not None or source.is_file() else run_config(source)
    if config is not None and config.data.name in (SAMPLE, WHOLE):
        return config.data.name, {**config.data.options, **options}
    name = SAMPLE if name is None else name
    if name not in (SAMPLE, WHOLE):
        raise ValueError(f"--data must be {WHOLE} or {SAMPLE}, got {name!r}")
    return name, options


def _stream(name: str, options: dict[str, Any]) -> PackedSequences:
    from indel.data import open_data
    from indel.data.packed import PackedSequences

    stream = open_data(name, **options)
    assert isinstance(stream, PackedSequences)
    return stream


def _reference(label: str, stream: PackedSequences, count: int | None) -> Reference:
    from indel.molecules.metrics import Reference
    from indel.molecules.statistics import Statistics

    smiles = stream.texts("test", None if count is None else min(count, stream.size("test")))
    return Reference(label, smiles, Statistics.kept(smiles, progress=sys.stderr.isatty()))


def _strings(file: Path) -> list[str]:
    """The first word of each line; an empty line is a string that is no molecule."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not a text in UTF-8: {error}") from None
    if not any(line.strip() for line in lines):
        raise ValueError(f"{file} holds no molecules; expected is one SMILES string per line")
    return [(line.split() or [""])[0] for line in lines]


def _generated(
    source: Path, samples: int, seed: int, device: str, settings: dict[str, Any]
) -> list[str]:
    import indel

    model = indel.load(source, device=device)
    require_smiles(model, str(source))
    progress = sys.stderr.isatty()
    return indel.generate(model, samples, seed=seed, progress=progress, **settings).texts


def _show(found: Metrics, count: int, name: str, sizes: dict[str, int]) -> None:
    """Ours beside the published rows, a metric per line."""
    from indel.molecules.published import PUBLISHED, SOURCE

    # Eighty columns are just enough.
    columns = [Column(name, no_wrap=True) for name in ("", "this", *PUBLISHED)]
    table = Table(*columns, box=None, padding=(0, 1), collapse_padding=True, pad_edge=False)
    for metric, value in found.items():
        others = (PUBLISHED[model].get(metric) for model in PUBLISHED)
        shown = "–" if math.isnan(value) else f"{value:.4f}"
        table.add_row(metric, shown, *("" if each is None else f"{each:.4f}" for each in others))
    console = Console(soft_wrap=True, highlight=False)
    console.print(table)
    console.print(
        f"this: {count:,} strings, compared with {sizes['Test']:,} and {sizes['TestSF']:,} "
        f"molecules of {name}; logP, SA, QED, weight: Wasserstein distances to Test."
    )
    if sizes["Test"] < 100_000:
        console.print(
            "With so few molecules to compare with, SNN and Scaf are lower than the paper's, "
            "which has 176,074 and 176,225."
        )
    console.print(f"Train … LatentGAN: {SOURCE}.")
