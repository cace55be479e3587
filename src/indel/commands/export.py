"""`indel export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from indel import extras
from indel.commands.arguments import run_folder

if TYPE_CHECKING:
    from indel.data.streams import Split
    from indel.training import TrainingConfig
    from indel.vocabularies import Vocabulary

HELD_OUT: tuple[Split, ...] = ("valid", "test")
MOST_PAIRS = 95_000
"""Of words, beside a model: less than 1 MB."""


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a training run or a checkpoint.")],
    folder: Annotated[Path, typer.Argument(help="Where the model goes; must not exist.")],
    title: Annotated[str | None, typer.Option(help="Of the model card.")] = None,
    half: Annotated[bool, typer.Option(help="Weights of 16 bits.")] = True,
    examples: Annotated[
        int, typer.Option(min=2, max=1_000_000, help="To measure the bound on.")
    ] = 1024,
    split: Annotated[str, typer.Option(help="valid or test.")] = "valid",
    words: Annotated[
        int,
        typer.Option(
            min=0,
            help="Text: also give away the words that stand in the training part so often or more, "
            "and the most frequent pairs of words, for repair; 0 for none.",
        ),
    ] = 4,
    data: Annotated[
        Path | None, typer.Option(help="Where the data lies, if it has moved since.")
    ] = None,
) -> None:
    """Make a model to give away from a run: weights, config, card with a measured bound, curve."""
    import tempfile

    # Asked for before the bound is measured, which takes long.
    extras.require("the curve on the card of a model", "matplotlib", "plots")
    from indel.atomic_files import read_json, write_output
    from indel.bound.likelihood import evaluate
    from indel.commands.model_cards import (
        CONFIG,
        CURVE,
        Measured,
        Origin,
        draw_curve,
        model_card,
        public_config,
    )
    from indel.data import ChunkStream, open_data
    from indel.loading import load, model_folder
    from indel.text_repair.known_words import KnownWords
    from indel.training import load_run_config, read_metrics

    # The card calls it the bound on held-out data.
    if split not in HELD_OUT:
        raise ValueError(f"--split must be one of {', '.join(HELD_OUT)}, got {split!r}")
    if folder.exists():
        raise ValueError(f"{folder} is there already: name a new folder, or remove it first")
    home = run_folder(run)
    if home is None:
        raise ValueError(f"{run} is not the folder of a training run")
    config = load_run_config(home)
    source = model_folder(run)
    denoiser = load(source)
    if half:
        # Measured as it is given away.
        denoiser.half().float()
    options = {**config.data.options, **({} if data is None else {"path": str(data)})}
    stream = open_data(config.data.name, **options, seed=config.training.seed)
    batches = [
        stream.examples(start, min(64, examples - start), split).trimmed()
        for start in range(0, examples, 64)
    ]
    estimate = evaluate(denoiser, batches, seed=0)
    state = read_json(source.parent / "state.json")
    records = [record for record in read_metrics(home) if record["step"] <= state["step"]]
    origin = Origin(config, state["step"], state["seconds"], records)
    lengths = set(estimate.lengths.tolist())
    tokens = lengths.pop() if len(lengths) == 1 else None
    measured = Measured(estimate, _command(folder, config, split, examples), tokens)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # All or nothing: the folder gets its name when everything is in it.
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        unfinished = Path(work) / folder.name
        (denoiser.half() if half else denoiser).save_pretrained(unfinished)
        write_output(unfinished / CONFIG, public_config(config).encode())
        draw_curve(origin, unfinished / CURVE)
        card = model_card(title or folder.name, denoiser, origin, measured)
        write_output(unfinished / "README.md", card.encode())
        if words and isinstance(stream, ChunkStream) and _spells_words(stream.vocabulary):
            KnownWords.of(stream.text("train"), least=words, most_pairs=MOST_PAIRS).write(
                unfinished
            )
        unfinished.rename(folder)
    bits, error = estimate.bits_per_token
    print(f"{folder}: {bits:.4f} ± {error:.4f} bits per token")


def _command(folder: Path, config: TrainingConfig, split: str, examples: int) -> str:
    """What measures the same again, wherever the data lies."""
    options = {**config.data.options, "seed": config.training.seed}
    shown = {name: "…" if name == "path" else value for name, value in options.items()}
    words = [f"indel evaluate {folder.name} --data {config.data.name}"]
    words += [f"--option {name}={value}" for name, value in shown.items()]
    words += [f"--split {split} --examples {examples}"]
    return " ".join(words)


def _spells_words(vocabulary: Vocabulary) -> bool:
    return " " in getattr(vocabulary, "characters", "")
