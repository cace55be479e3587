"""What is known of a finished run, as plain data: tables and the report are made from it alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from indel.bound.likelihood import evaluate
from indel.data import BatchStream, Split
from indel.experiments.files import read_json, write_json
from indel.experiments.requests import RUNS, Request
from indel.experiments.runs import LAST_SHARE, Run
from indel.experiments.sample_quality import sample_quality
from indel.model import Denoiser
from indel.randomness import RowSeeds, seeds_for
from indel.sampling.generation import generate

MEASURED = ("bound", "bits_per_token", "error_rate")
"""What is kept of a validation; the error rate exists for arithmetic only."""


@dataclass(frozen=True)
class FinalMeasure:
    """How the newest model of a run is measured once more, with standard errors."""

    examples: int
    split: Split
    num_times: int | None = None
    """How many t a sequence; None: all of them."""
    samples: int = 0
    """Sequences to generate, to see how good they are."""
    batch_size: int = 64

    def __call__(self, denoiser: Denoiser, data: BatchStream) -> dict[str, Any]:
        """The bound in nats and bits per token, and the error rate: means and standard errors."""
        batches = (
            data.examples(at, min(self.batch_size, self.examples - at), self.split).trimmed()
            for at in range(0, self.examples, self.batch_size)
        )
        estimate = evaluate(denoiser, batches, seed=1, num_times=self.num_times, progress=False)
        found: dict[str, Any] = {
            "bound": list(estimate.nats_per_sequence),
            "bits_per_token": list(estimate.bits_per_token),
            "steps": [list(step) for step in estimate.by_time],
        }
        if self.samples:
            seeds = seeds_for(data.seed, "final samples", 0, self.samples)
            samples = generate(denoiser, self.samples, generator=RowSeeds(seeds)).x
            found |= sample_quality(samples, data, self.split)
        return found


def run_record(request: Request, run: Run, measure: FinalMeasure) -> dict[str, Any]:
    """What a run has come to; measured once and kept beside the runs."""
    path = request.folder / RUNS / f"{run.name}.json"
    asked = {"steps": run.steps_done, "measure": asdict(measure)}
    if path.is_file() and (known := read_json(path)).get("asked") == asked:
        return {name: value for name, value in known.items() if name != "asked"}
    request.say(f"measuring {run.name}")
    denoiser, data = run.model(), run.config.open_data()
    if denoiser.vocabulary != data.vocabulary:
        raise ValueError(
            f"the model at {run.folder} has another vocabulary than {run.config.data.name}: it "
            "cannot serve here"
        )
    record = {
        "rate": run.rate,
        "seed": run.seed,
        "parameters": sum(each.numel() for each in denoiser.parameters()),
        "num_steps": denoiser.schedule.num_steps,
        **_training(run),
        "final": measure(denoiser, data),
    }
    write_json(path, {"asked": asked, **record})
    return record


def _training(run: Run) -> dict[str, Any]:
    """Steps, examples, time, learning curve and the mean over the last tenth, as far as known."""
    config = run.training()
    if config is None:
        return {"foreign": run.foreign}
    size, done = config.training.batch_size, run.steps_done
    validations = run.metrics("validation")
    late = [each for each in validations if each["step"] > (1 - LAST_SHARE) * done]
    return {
        "foreign": run.foreign,
        "steps": done,
        "batch_size": size,
        "examples": done * size,
        "learning_rate": config.optimizer.learning_rate,
        "schedule": config.optimizer.schedule,
        "seconds": max((each["seconds"] for each in run.metrics("train")), default=None),
        "curve": [{"examples": each["step"] * size, **_kept(each)} for each in validations],
        "late": _means([_kept(each) for each in late]),
        "late_validations": len(late),
        "validation_examples": config.validation.examples,
        "validation_samples": config.validation.samples,
    }


def _kept(validation: dict[str, Any]) -> dict[str, float]:
    return {name: validation[name] for name in MEASURED if validation.get(name) is not None}


def _means(validations: Sequence[dict[str, float]]) -> dict[str, float]:
    if not validations:
        return {}
    return {name: fmean(each[name] for each in validations) for name in validations[0]}
