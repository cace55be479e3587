"""What counts and Bayes' rule explain alone, with no network at all, and what a network adds.

python studies/counts_alone.py arithmetic 0 0.4 0.6 0.8 [--examples 128] [--samples 128]
python studies/counts_alone.py text8 0 0.6 --data text8.zip [--contexts 12000] [RUN …]
python studies/counts_alone.py moses 0 0.6 --data FOLDER [--steps 64]

Rates are rows of counts alone, taken from the training part as preset `laptop` does; a folder is a
trained model, measured on the same sequences and noise.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

import indel
from indel.data import ArithmeticData, BatchStream
from indel.data.molecules import MosesData
from indel.loading import load
from indel.model import Denoiser
from indel.molecules.chemistry import parsed
from indel.training import load_config
from indel.training.counting import fit_counts
from indel.training.lengths import fit_lengths


def counts_alone(task: str, settings: dict[str, Any], data: BatchStream) -> Denoiser:
    """A denoiser whose network says nothing."""
    denoiser = load_config(task, "laptop", overrides=settings).denoiser(data)
    fit_counts(denoiser, data)
    fit_lengths(denoiser, data, seed=0)
    assert denoiser.prior is not None
    torch.nn.init.zeros_(denoiser.prior.share)
    return denoiser.eval()


def how_good(model: Denoiser, data: BatchStream, count: int) -> str:
    """What can be computed of samples: their errors, or whether they are molecules."""
    if isinstance(data, ArithmeticData):
        wrong = 100 * data.error_rates(indel.generate(model, count, seed=0, progress=False).x)
        return f", {_mean(wrong)} % of steps wrong"
    if isinstance(data, MosesData):
        texts = indel.generate(model, count, seed=0, progress=False).texts
        valid = torch.tensor([bool(text) and parsed(text) is not None for text in texts])
        return f", {_mean(100.0 * valid)} % of strings molecules"
    return ""


def _mean(values: torch.Tensor) -> str:
    return f"{float(values.mean()):.1f} ± {float(values.std()) / len(values) ** 0.5:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["arithmetic", "text8", "moses"])
    parser.add_argument("rows", nargs="+", metavar="RATE|FOLDER")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--examples", type=int, default=64)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--contexts", type=int, help="at most so many, not the preset's")
    parser.add_argument("--steps", type=int, help="T, not the preset's")
    given = parser.parse_args()
    asked = {"model.contexts": given.contexts, "process.num_steps": given.steps}
    settings = {name: value for name, value in asked.items() if value is not None}
    overrides = {} if given.data is None else {"data.options.path": str(given.data)}
    data = load_config(given.task, "laptop", overrides=overrides).open_data()
    for row in given.rows:
        known = Path(row).is_dir()
        of_row = {**settings, "process.rate": 0.0 if known else float(row)}
        model = load(row) if known else counts_alone(given.task, of_row, data)
        found = indel.evaluate(
            model, data, examples=given.examples, batch_size=32, split="test", progress=False
        )
        name = Path(row).name if known else f"counts alone, rate {row}"
        if model.prior is not None:
            name += f", {int((model.prior.last >= 0).sum()):,} contexts"
        line = f"{name}: {found.nats_per_sequence} nats, {found.bits_per_token} bits per token"
        if given.samples:
            line += how_good(model, data, given.samples)
        print(line, flush=True)


if __name__ == "__main__":
    main()
