"""What counts and Bayes' rule explain alone, with no network at all, and what a network adds.

python studies/counts_alone.py arithmetic 0 0.4 0.6 0.8 [--examples 128] [--samples 128]
python studies/counts_alone.py text8 0 0.6 --data text8.zip [--contexts 12000] [RUN …]

Rates are rows of counts alone, taken from the training part as preset `laptop` does; a folder is a
trained model, measured on the same sequences and noise.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

import indel
from indel.data import ArithmeticData, BatchStream
from indel.loading import load
from indel.model import Denoiser
from indel.training import load_config
from indel.training.counting import fit_counts
from indel.training.lengths import fit_lengths


def counts_alone(task: str, rate: float, contexts: int | None, data: BatchStream) -> Denoiser:
    """A denoiser whose network says nothing."""
    overrides = {"process.rate": rate, **({} if contexts is None else {"model.contexts": contexts})}
    denoiser = load_config(task, "laptop", overrides=overrides).denoiser(data)
    fit_counts(denoiser, data)
    fit_lengths(denoiser, data, seed=0)
    assert denoiser.prior is not None
    torch.nn.init.zeros_(denoiser.prior.share)
    return denoiser.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["arithmetic", "text8"])
    parser.add_argument("rows", nargs="+", metavar="RATE|FOLDER")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--examples", type=int, default=64)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--contexts", type=int, help="at most so many, not the preset's")
    given = parser.parse_args()
    overrides = {} if given.data is None else {"data.options.path": str(given.data)}
    data = load_config(given.task, "laptop", overrides=overrides).open_data()
    for row in given.rows:
        known = Path(row).is_dir()
        model = load(row) if known else counts_alone(given.task, float(row), given.contexts, data)
        found = indel.evaluate(
            model, data, examples=given.examples, batch_size=32, split="test", progress=False
        )
        name = Path(row).name if known else f"counts alone, rate {row}"
        if model.prior is not None:
            name += f", {int((model.prior.last >= 0).sum()):,} contexts"
        line = f"{name}: {found.nats_per_sequence} nats, {found.bits_per_token} bits per token"
        if isinstance(data, ArithmeticData) and given.samples:
            samples = indel.generate(model, given.samples, seed=0, progress=False).x
            wrong = 100 * data.error_rates(samples)
            error = float(wrong.std()) / len(wrong) ** 0.5
            line += f", {float(wrong.mean()):.1f} ± {error:.1f} % of steps wrong"
        print(line, flush=True)


if __name__ == "__main__":
    main()
