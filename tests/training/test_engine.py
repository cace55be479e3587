"""The loop: processes, precision, accumulation, numbers that are none, and learning."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from indel.bound.objective import Objective
from indel.bound.times import TimeDistribution
from indel.data import BatchStream
from indel.model import Denoiser
from indel.training import NonFiniteError, load_config, read_metrics, train
from indel.training.batches import BatchPlan
from support.small_runs import records, start_program, very_small


def losses(folder: Path) -> list[float]:
    return [r["loss"] for r in records(folder) if r["kind"] == "train"]


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    train(very_small(), tmp_path / "one")
    launcher = (
        *(sys.executable, "-m", "accelerate.commands.launch", "--cpu"),
        *("--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no"),
        *("--dynamo_backend", "no", "--main_process_port", "0"),
    )
    program = start_program(tmp_path / "two", launcher=launcher)
    _, errors = program.communicate()
    assert program.returncode == 0, errors
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert len(one) == len(two) == 20
    assert two == pytest.approx(one, rel=1e-5)
    # They do not agree because nothing happens.
    assert len(set(one)) == 20
    measured = [r for r in records(tmp_path / "one") if r["kind"] == "validation"]
    again = [r for r in records(tmp_path / "two") if r["kind"] == "validation"]
    assert [r["bound"] for r in again] == pytest.approx([r["bound"] for r in measured], rel=1e-5)


def test_accumulation_trains_as_one_batch(tmp_path: Path) -> None:
    train(very_small(training__steps=10), tmp_path / "one")
    train(very_small(training__steps=10, training__accumulate=4), tmp_path / "four")
    assert losses(tmp_path / "four") == pytest.approx(losses(tmp_path / "one"), rel=1e-5)


def test_processes_and_micro_batches_cut_the_same_batch() -> None:
    data = very_small().open_data()
    distribution, cpu = TimeDistribution.uniform(4), torch.device("cpu")

    def rows(processes: int, accumulate: int) -> list[object]:
        found: list[object] = []
        for process in range(processes):
            plan = BatchPlan(data, 8, accumulate, 5, process, processes)
            for piece in plan.micro_batches(3, plan.times(3, distribution), device=cpu):
                found += zip(
                    piece.x_0.to_lists(),
                    piece.t.tolist(),
                    piece.weight.tolist(),
                    piece.noise.seeds.tolist(),
                    strict=True,
                )
        return found

    assert rows(1, 1) == rows(2, 1) == rows(4, 2) == rows(1, 8)
    times = [row[1] for row in rows(1, 1)]  # type: ignore[index]
    assert sorted(times) == [1, 1, 2, 2, 3, 3, 4, 4]  # stratified over all processes
    with pytest.raises(ValueError, match=r"multiple of 3 .3 processes"):
        BatchPlan(data, 8, 1, 5, 0, 3)


class Unlucky:
    """Makes the loss of chosen steps no number, as a broken batch would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, steps: set[int]) -> None:
        self.calls = 0
        call = Objective.__call__

        def unlucky(objective: Objective, *args: object, **options: object) -> object:
            loss = call(objective, *args, **options)  # type: ignore[arg-type]
            factor = math.nan if self.calls in steps else 1.0
            self.calls += 1
            return loss._replace(total=loss.total * factor)

        monkeypatch.setattr(Objective, "__call__", unlucky)


def test_some_bad_steps_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Unlucky(monkeypatch, {2, 7})
    result = train(very_small(training__bad_steps=2, training__steps=10), tmp_path)
    assert (result.step, result.bad_steps) == (10, 2)
    found = losses(tmp_path)
    assert [step for step, loss in enumerate(found) if loss is None] == [2, 7]
    denoiser = Denoiser.from_pretrained(result.checkpoint / "model")  # type: ignore[operator]
    assert all(bool(weight.isfinite().all()) for weight in denoiser.parameters())


def test_too_many_bad_steps_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Unlucky(monkeypatch, {2, 6, 8})
    with pytest.raises(NonFiniteError, match=r"batch 8 of seed 0, the bad step number 3"):
        train(very_small(training__bad_steps=2, training__log_every=100), tmp_path)
    # Recorded although it is not its turn, and counted across a resumption.
    assert [r["step"] for r in records(tmp_path) if r["kind"] == "train"] == [3, 7, 9]


def test_tensorboard_has_the_records(tmp_path: Path) -> None:
    train(very_small(training__steps=10, training__tensorboard=True), tmp_path)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [round(e.value, 3) for e in events.Scalars("train/loss")] == [
        round(loss, 3) for loss in losses(tmp_path)
    ]
    assert [e.step for e in events.Scalars("validation/bound")] == [10]


def test_mixed_precision_is_that_of_accelerate(tmp_path: Path) -> None:
    train(very_small(training__steps=5), tmp_path / "full")
    launcher = (
        *(sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_machines", "1"),
        *("--num_processes", "1", "--mixed_precision", "bf16", "--dynamo_backend", "no"),
    )
    program = start_program(
        tmp_path / "half", launcher=launcher, training__steps=5, training__precision="auto"
    )
    _, errors = program.communicate()
    assert program.returncode == 0, errors
    half, full = losses(tmp_path / "half"), losses(tmp_path / "full")
    assert half == pytest.approx(full, rel=0.05)
    assert half != pytest.approx(full, rel=1e-6)


def unigram_and_length(data: BatchStream) -> float:
    """What the best model of single tokens and of the length costs, in nats per sequence."""
    x = data.examples(0, 20_000)

    def entropy(values: torch.Tensor) -> float:
        share = torch.bincount(values).double() / len(values)
        return float(-torch.xlogy(share, share).sum())

    return entropy(x.lengths) + float(x.lengths.double().mean()) * entropy(x.tokens[x.mask])


def untrained_error_rate(folder: Path) -> float:
    changes = {"optimizer.learning_rate": 1e-12, "optimizer.muon_learning_rate": 1e-12}
    changes |= {"training.steps": 1, "training.batch_size": 2}
    train(load_config("arithmetic", "tiny", overrides=changes), folder)
    rate = read_metrics(folder)[-1]["error_rate"]
    assert isinstance(rate, float)
    return rate


@pytest.mark.slow
def test_tiny_arithmetic_learns(tmp_path: Path) -> None:
    config = load_config("arithmetic", "tiny")
    before = untrained_error_rate(tmp_path / "untrained")
    result = train(config, tmp_path / "trained")
    assert result.validation["error_rate"] < before / 2
    assert result.validation["bound"] < unigram_and_length(config.open_data())
