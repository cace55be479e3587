"""`import indel`: its names, and functions that ask the model for what it knows."""

import subprocess
import sys

import pytest
import torch

import indel
from indel.api import basics
from indel.bound.likelihood import evaluate as evaluate_batches
from indel.bound.objective import Objective
from indel.cli import run
from indel.process import Schedule
from indel.sampling import generation
from support.denoisers import tiny_denoiser

SCHEDULE = Schedule.paper(3, 4, 0.5)
ROWS = [[0, 1, 2], [2], [], [1, 1]]


def test_every_name_is_there_and_public() -> None:
    for name in indel.__all__:
        assert getattr(indel, name) is getattr(indel, name)
    assert set(indel._HOMES) | {"process"} == set(indel.__all__)
    assert set(indel.__all__) <= set(dir(indel))
    with pytest.raises(AttributeError, match="no attribute 'generat'"):
        _ = indel.generat  # type: ignore[attr-defined]


@pytest.mark.parametrize("module", ["indel", "indel.cli"])
def test_importing_it_imports_nothing_heavy(module: str) -> None:
    script = f"import {module}, sys; print({{'torch', 'numpy', 'accelerate'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


def test_public_functions_say_what_they_take_and_give() -> None:
    for name in ("load", "loss", "generate", "denoise_from", "evaluate", "train", "repair"):
        text = getattr(indel, name).__doc__
        for part in ("Args:", "Returns:", ">>> ", "Reference:"):
            assert part in text, (name, part)


# ---------------------------------------------------------------- generate


def test_samples_depend_on_seed_and_number_alone() -> None:
    model = tiny_denoiser(SCHEDULE)
    texts = indel.generate(model, 5, seed=3).texts
    assert indel.generate(model, 5, seed=3, batch_size=2).texts == texts
    assert indel.generate(model, 3, seed=3).texts == texts[:3]
    assert indel.generate(model, 5, seed=4).texts != texts
    colder = indel.generate(model, 5, seed=3, temperature=0.1, top_p=0.5)
    assert colder.texts != texts


def test_joined_batches_have_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_denoiser(SCHEDULE)
    samples = indel.generate(model, 5, batch_size=2, keep_trajectories=True)
    assert samples.trajectories is not None
    assert len(samples.trajectories) == len(samples.t) == len(samples.redrawn) == 5
    assert samples.network_calls == 3 * 4


def test_the_command_prints_the_same(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny_denoiser(SCHEDULE)
    model.save_pretrained(tmp_path)
    arguments = ["sample", str(tmp_path), "-n", "4", "--seed", "2", "--temperature", "0.8"]
    assert run([*arguments, "--top-p", "0.95"]) == 0
    expected = indel.generate(model, 4, seed=2, temperature=0.8, top_p=0.95).texts
    assert capsys.readouterr().out.splitlines() == expected


def test_sampling_uses_the_models_edit_weights(tmp_path) -> None:
    plain = tiny_denoiser(SCHEDULE)
    joint = tiny_denoiser(SCHEDULE)
    object.__setattr__(joint.config, "edit_weights", "joint")
    seeds = indel.RowSeeds(basics.sample_seeds(0, 0, 40))
    options = generation.SamplingOptions(edit_weights=joint.edit_weights)
    given = generation.generate(plain, 40, generator=seeds, options=options).texts
    assert indel.generate(joint, 40).texts == given
    assert indel.generate(plain, 40).texts != given


def test_a_model_in_training_mode_samples_without_dropout_and_stays_in_it() -> None:
    model = tiny_denoiser(SCHEDULE)
    expected = indel.generate(model, 3).texts
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.9
    assert indel.generate(model, 3).texts == expected
    assert model.training


def test_denoising_starts_where_it_is_told() -> None:
    model = tiny_denoiser(SCHEDULE)
    samples = indel.denoise_from(model, ROWS, 2, seed=1)
    assert samples.network_calls == 2
    alone = indel.denoise_from(model, ROWS[:1], 2, seed=1)
    assert alone.texts == samples.texts[:1]


# ---------------------------------------------------------------- loss and likelihood


@pytest.mark.parametrize("limited", [True, False])
def test_the_loss_is_the_objective_of_the_model(limited: bool) -> None:
    model = tiny_denoiser(SCHEDULE)
    object.__setattr__(model.config, "limit_length", limited)
    noise = torch.Generator().manual_seed(5)
    given = indel.loss(model, ROWS, generator=noise)
    objective = Objective(SCHEDULE, max_length=6 if limited else None)
    batch = indel.Batch.from_lists(ROWS)
    again = objective(model, model.length, batch, generator=torch.Generator().manual_seed(5))
    assert torch.equal(given, again.total)
    given.mean().backward()  # type: ignore[no-untyped-call]
    assert model.embedding.weight.grad is not None


def test_lists_batches_and_data_have_the_same_likelihood() -> None:
    model = tiny_denoiser(SCHEDULE)
    batch = indel.Batch.from_lists(ROWS)
    expected = evaluate_batches(model, [batch], seed=2, max_length=6).nats
    data = indel.Sequences([[0]], indel.IntegerVocabulary(3), valid=ROWS)
    for given in (ROWS, batch, data):
        assert torch.equal(indel.evaluate(model, given, seed=2).nats, expected)
    cut = indel.evaluate(model, ROWS, seed=2, batch_size=3).nats
    assert torch.allclose(cut, expected)
    assert len(indel.evaluate(model, data, split="train")) == 1


def test_bad_input_is_named() -> None:
    model = tiny_denoiser(SCHEDULE)
    with pytest.raises(ValueError, match="sequence 1: integer 7"):
        indel.evaluate(model, [[0], [7]])
    with pytest.raises(ValueError, match="list of texts, got the single text 'abc'"):
        indel.evaluate(model, "abc")
    with pytest.raises(ValueError, match="same vocabulary"):
        indel.evaluate(model, indel.Sequences(["a", "b", "c"]))
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        indel.generate(model, 0)
    with pytest.raises(ValueError, match="max_length = 6"):
        indel.evaluate(model, [[0] * 7])
