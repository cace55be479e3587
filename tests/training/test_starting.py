"""Training that starts from the weights of a model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from indel import load
from indel.cli import app
from indel.training import TrainingError, train
from indel.training.starting import take_weights
from support.small_runs import VERY_SMALL, final, very_small


def test_the_first_step_starts_from_the_weights_of_the_other_run(tmp_path: Path) -> None:
    train(very_small(), tmp_path / "first")
    model = load(tmp_path / "first")
    model.save_pretrained(tmp_path / "model")
    # At a rate of next to nothing the weights after a step are those before it.
    still = {"optimizer__learning_rate": 1e-12, "optimizer__muon_learning_rate": 1e-12}
    config = very_small(model__start=str(tmp_path / "model"), training__steps=1, **still)
    train(config, tmp_path / "second")
    weights = final(tmp_path / "second").weights
    for name, before in model.state_dict().items():
        torch.testing.assert_close(weights[name], before, rtol=0, atol=1e-6)
    anew = train(very_small(training__steps=1, **still), tmp_path / "third")
    assert not torch.equal(anew.model.embedding.weight, model.embedding.weight)


def test_resuming_keeps_what_was_learned_since_the_start(tmp_path: Path) -> None:
    train(very_small(), tmp_path / "first")
    load(tmp_path / "first").save_pretrained(tmp_path / "model")
    start = str(tmp_path / "model")
    train(very_small(model__start=start), tmp_path / "whole")
    train(very_small(model__start=start, training__steps=10), tmp_path / "parts")
    train(very_small(model__start=start), tmp_path / "parts", resume=True)
    whole, parts = final(tmp_path / "whole").weights, final(tmp_path / "parts").weights
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_counts_of_other_contexts_and_groups_of_three_stay_behind(tmp_path: Path) -> None:
    config = very_small(model__contexts=40, model__trigrams=100)
    first = config.denoiser(config.open_data())
    assert first.prior is not None
    torch.nn.init.constant_(first.prior.share, 0.3)
    first.prior.common.fill_(7.0)
    first.save_pretrained(tmp_path / "model")
    config = very_small(model__contexts=60)
    second = config.denoiser(config.open_data())
    take_weights(second, str(tmp_path / "model"))
    assert second.prior is not None
    assert second.trigrams is None
    assert torch.equal(second.embedding.weight, first.embedding.weight)
    assert torch.equal(second.prior.share, first.prior.share)
    assert len(second.prior.last) == 60
    assert float(second.prior.common.sum()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data__options": {"numbers": 17}}, "another vocabulary"),
        ({"model__width": 32}, "another backbone"),
        ({"model__time_embedding": False}, "another time_embedding"),
        ({"process__num_steps": 5}, r"time_embedding.weight of shape \(4, 16\)"),
    ],
)
def test_another_network_is_refused(tmp_path: Path, changes: dict, message: str) -> None:  # type: ignore[type-arg]
    config = very_small()
    config.denoiser(config.open_data()).save_pretrained(tmp_path / "model")
    other = {f"data__options__{k}": v for k, v in changes.pop("data__options", {}).items()}
    with pytest.raises(TrainingError, match=message):
        train(
            very_small(model__start=str(tmp_path / "model"), **changes, **other), tmp_path / "run"
        )
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_the_command_takes_a_run(tmp_path: Path) -> None:
    first = tmp_path / "first"
    train(very_small(), first)
    settings = [part for key, value in VERY_SMALL.items() for part in ("--set", f"{key}={value}")]
    settings = [part.replace("False", "false") for part in settings]
    command = ["train", "arithmetic", "--scale", "tiny", *settings]
    found = CliRunner().invoke(app, [*command, "--start", str(first), "--out", str(tmp_path / "b")])
    assert found.exit_code == 0, found.output
    missing = CliRunner().invoke(
        app, [*command, "--start", "nothing", "--out", str(tmp_path / "c")]
    )
    assert missing.exit_code != 0
    assert "there is no model at nothing" in str(missing.exception or missing.output)
