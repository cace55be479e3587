"""One loop for all: the budget, going on after an interruption to the same bits, bad files."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from indel import Batch
from indel.comparison.checkpoints import Checkpoint
from indel.comparison.interface import Method
from indel.comparison.training import (
    CHECKPOINT,
    Interrupted,
    Progress,
    TrainingPlan,
    load_trained,
    train_method,
)
from indel.data import ArithmeticData
from indel.training import CheckpointError, NonFiniteError, TrainingError, read_metrics
from support.small_methods import Knowing, small_method

DATA = ArithmeticData(numbers=8, max_step=1, min_length=3, max_length=5)
PLAN = TrainingPlan(budget=10.0, batch_size=4, seed=3, validations=2)


def seconds() -> Callable[[], float]:
    """A clock by which each step takes a second."""
    times = iter(range(10**6))
    return lambda: float(next(times))


def train(
    folder: Path, validate: Callable[[Method], dict[str, Any]], name: str = "autoregressive"
) -> tuple[nn.Module, Progress]:
    method = small_method(name, 8, 5)
    progress = train_method(method, DATA, folder, PLAN, validate=validate, clock=seconds())
    assert isinstance(method, nn.Module)
    return method, progress


def point(method: Method) -> dict[str, Any]:
    x_0 = DATA.examples(0, 4, "valid")
    found = method.negative_log_likelihood(x_0, generator=torch.Generator().manual_seed(0))
    assert found is not None
    return {"nats_per_sequence": float(found.mean())}


def interrupting(method: Method) -> dict[str, Any]:
    """Ctrl-C in the middle."""
    os.kill(os.getpid(), signal.SIGINT)
    return point(method)


@pytest.mark.parametrize("name", ["autoregressive", "mask-insert-delete-0.6"])
def test_an_interrupted_run_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    whole, progress = train(tmp_path / "whole", point, name)
    assert progress == Progress(step=10, cpu_seconds=10.0, validated=2)
    with pytest.raises(Interrupted, match=f"{name} was interrupted"):
        train(tmp_path / "cut", interrupting, name)
    assert Checkpoint.read(tmp_path / "cut" / CHECKPOINT).state["step"] == 5
    cut, progress = train(tmp_path / "cut", point, name)
    assert progress == Progress(step=10, cpu_seconds=10.0, validated=2)
    for key, value in whole.state_dict().items():
        assert torch.equal(value, cut.state_dict()[key]), key
    records = [read_metrics(tmp_path / each) for each in ("whole", "cut")]
    assert records[0] == records[1]
    assert [each["step"] for each in records[0] if each["kind"] == "validation"] == [5, 10]
    assert [each["step"] for each in records[0] if each["kind"] == "train"] == list(range(1, 11))


def test_training_lowers_the_loss_and_its_weights_can_be_read(tmp_path: Path) -> None:
    before = point(small_method("autoregressive", 8, 5))
    trained, _ = train(tmp_path, point)
    after = point(trained)  # type: ignore[arg-type]
    assert after["nats_per_sequence"] < before["nats_per_sequence"] - 0.3
    other = small_method("autoregressive", 8, 5, seed=1)
    assert load_trained(other, tmp_path).step == 10
    assert point(other) == after


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_bytes(b"\x00" * 40)
    with pytest.raises(CheckpointError, match=r"is no whole checkpoint .* delete it"):
        train(tmp_path, point)


def test_a_method_without_a_backbone_is_refused(tmp_path: Path) -> None:
    knowing = Knowing([[1]])
    knowing.linear = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="knowing has no linear layers in a module called back"):
        train_method(knowing, DATA, tmp_path, PLAN, validate=point, clock=seconds())


class _Nonsense(Knowing):
    """Its loss is not a number."""

    def __init__(self) -> None:
        super().__init__([[1]])
        self.backbone = nn.Sequential(nn.Linear(2, 2))

    def loss(self, x_0: Batch, *, generator: torch.Generator) -> torch.Tensor:
        return torch.nan * self.backbone(torch.ones(len(x_0), 2))[:, 0]


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteError, match=r"knowing: the loss .* step 3 of seed 3"):
        train_method(_Nonsense(), DATA, tmp_path, PLAN, validate=point, clock=seconds())


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match="cannot write to the folder"):
        train(tmp_path / "file", point)
