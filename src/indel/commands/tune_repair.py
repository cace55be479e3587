"""`indel tune-repair`."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from indel.commands.arguments import Device, Seed, open_repairer
from indel.commands.repair import Words
from indel.commands.repair_views import progress_bar
from indel.text_repair import defaults
from indel.text_repair.pairs import Half, read_pairs


def tune_repair(
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS.tsv", help="A line each: noisy, a tab, clean.")
    ],
    model: Annotated[
        str, typer.Option(metavar="NAME|PATH", help="Whose weights to find.")
    ] = defaults.MODEL,
    half: Annotated[
        Half | None, typer.Option(help="first: lines 0, 2, 4 …; second: lines 1, 3, 5 …")
    ] = Half.FIRST,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many pairs, the first.")] = None,
    words: Words = True,
    draws: Annotated[
        int, typer.Option(min=0, max=10_000, help="0: as when a text is repaired.")
    ] = 0,
    network: Annotated[
        bool, typer.Option(help="Whether the network's scores of each candidate count too.")
    ] = True,
    save: Annotated[
        bool, typer.Option("--save", help="Write the weights into the model's folder.")
    ] = False,
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """Find how much each kind of evidence should count in repair, from corrected sentences."""
    from indel.loading import model_folder
    from indel.text_repair.repairer import Repairer
    from indel.text_repair.tuning import AGREEMENTS, examples_of, starting_weights, tune
    from indel.text_repair.weights import RepairWeights

    chosen = read_pairs(pairs, half=half, limit=limit)
    opened = open_repairer(model, device, with_words=words, seed=seed, draws=draws)
    start = starting_weights(with_words=words)
    repairer = Repairer(
        opened.mender.denoiser,
        draws=draws,
        seed=seed,
        words=opened.words,
        weights=RepairWeights(start) if words else RepairWeights(network=start),
    )
    with progress_bar(model) as progress:
        examples = examples_of(chosen, repairer.mender, network=network, progress=progress)
    tuned = tune(examples, start)
    print(f"{len(chosen)} pairs, {len(examples)} places, {len(tuned.kinds)} weights")
    print(f"mean −log p of what is right: {tuned.before:.4f} before, {tuned.after:.4f} after")
    for name, value in asdict(tuned.weights).items():
        print(f"  {name:16} {value:8.3f}")
    print(f"wrong characters at these places, {tuned.wrong(1.1)} as typed, by agreement:")
    print("  " + ", ".join(f"{share:g}: {tuned.wrong(share)}" for share in AGREEMENTS))
    if save:
        folder = model_folder(model)
        before = RepairWeights.read(folder)
        name = "words" if words else "network"
        replace(before, **{name: tuned.weights}).write(folder)
        print(f"saved as the weights of {name} in {folder}")
