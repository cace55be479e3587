"""Which model a name means: bundled, folder, run, checkpoint, Hub; and what its folder says."""

import json
from pathlib import Path

import pytest
import torch

from indel import Batch, load
from indel.bound.likelihood import chain_bound
from indel.loading import model_folder
from indel.model import Denoiser
from indel.pretrained import MODELS, pretrained_folder
from indel.process import Schedule
from indel.training.checkpoints import MODEL, Snapshot, write_checkpoint
from support.denoisers import tiny_denoiser

SCHEDULE = Schedule.paper(3, 4, 0.5)


@pytest.mark.parametrize("name", MODELS)
def test_bundled_models(name: str) -> None:
    assert model_folder(name) == pretrained_folder(name)
    assert not load(name).training


def test_bundled_models_have_the_limit_they_were_trained_with() -> None:
    assert load("text8").length_limit == 127
    assert load("in-place").length_limit == 127
    assert load("arithmetic").length_limit is None


def test_a_folder_of_a_bundled_name_needs_a_longer_path(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    tiny_denoiser(SCHEDULE).save_pretrained("text8")
    assert load("text8").schedule.num_steps == 32
    assert load("./text8").schedule.num_steps == 4


def snapshot(step: int, best: int | None = None, **config: object) -> Snapshot:
    denoiser = tiny_denoiser(SCHEDULE, seed=step)
    state = {"best_step": best}
    weights = dict(denoiser.state_dict())
    return Snapshot(step, weights, None, {"w/m": torch.zeros(1)}, state, config, denoiser.config)


def test_a_run_means_its_best_checkpoint_and_a_checkpoint_itself(tmp_path: Path) -> None:
    first = write_checkpoint(tmp_path, snapshot(1, best=1))
    last = write_checkpoint(tmp_path, snapshot(2, best=1))
    assert model_folder(tmp_path) == first / MODEL
    assert model_folder(tmp_path, newest=True) == last / MODEL
    assert model_folder(last) == model_folder(last / MODEL) == last / MODEL
    weight = load(str(last)).embedding.weight
    assert torch.equal(weight, tiny_denoiser(SCHEDULE, seed=2).embedding.weight)


def test_the_hub_is_asked_for_what_is_no_folder(tmp_path: Path, monkeypatch) -> None:
    tiny_denoiser(SCHEDULE).save_pretrained(tmp_path)
    asked: list[str] = []

    def download(repository: str, **_: object) -> str:
        asked.append(repository)
        return str(tmp_path)

    monkeypatch.setattr("indel.model.saving.snapshot_download", download)
    assert load("someone/some-model").schedule == SCHEDULE
    assert asked == ["someone/some-model"]
    with pytest.raises(ValueError, match="there is no model at no/such/path"):
        load("no/such/path")
    assert asked == ["someone/some-model"]


def test_what_is_nowhere_is_one_clear_line(monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("tekst8", "no/where"):
        with pytest.raises(ValueError, match=f"there is no model at {name}: expected") as raised:
            load(name)
        assert "\n" not in str(raised.value)
    with pytest.raises(ValueError, match="device 'gpu' is not available"):
        load("text8", device="gpu")


# ---------------------------------------------------------------- what a model is travels with it


def changed(denoiser: Denoiser, folder: Path, **fields: object) -> Denoiser:
    """The same weights in a folder whose config says something else."""
    denoiser.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | fields))
    (folder / "checksums.json").unlink()
    return load(folder)


def test_limit_and_weights_are_in_the_folder_and_in_the_bound(tmp_path: Path) -> None:
    x_0 = Batch.from_lists([[0, 1, 2], [2]])
    plain = tiny_denoiser(SCHEDULE)
    jump = SCHEDULE.tables(torch.device("cpu")).jump

    def bound(model: Denoiser, **options: object) -> torch.Tensor:
        noise = torch.Generator().manual_seed(0)
        return chain_bound(model, x_0, generator=noise, **options).nats.detach()  # type: ignore[arg-type]

    free = changed(plain, tmp_path / "free", limit_length=False)
    joint = changed(plain, tmp_path / "joint", edit_weights="joint")
    assert (plain.length_limit, free.length_limit) == (6, None)
    assert torch.equal(bound(plain), bound(plain, max_length=6))
    assert torch.equal(bound(free), bound(plain, max_length=None))
    assert torch.equal(bound(joint), bound(plain, weights=joint.edit_weights(jump)))
    assert not torch.equal(bound(joint), bound(plain))
    joint.save_pretrained(tmp_path / "again")
    assert load(tmp_path / "again").config == joint.config


def old_folder(folder: Path) -> Path:
    """A model as it was saved before its config spoke of limit and weights."""
    tiny_denoiser(SCHEDULE).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    del config["limit_length"], config["edit_weights"]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "checksums.json").unlink()
    return folder


def test_an_old_folder_has_the_defaults_it_was_made_with(tmp_path: Path) -> None:
    model = load(old_folder(tmp_path / "alone"))
    assert (model.length_limit, model.config.edit_weights) == (6, "normalized")
    exported = old_folder(tmp_path / "exported")
    (exported / "training.toml").write_text("[training]\nlimit_length = false\n")
    assert load(exported).length_limit is None
    in_run = old_folder(tmp_path / "checkpoint" / "model")
    (tmp_path / "checkpoint" / "config.json").write_text('{"training": {"limit_length": false}}')
    assert load(in_run).length_limit is None


@pytest.mark.parametrize(
    ("field", "value"), [("limit_length", "yes"), ("edit_weights", "other"), ("limit_lenth", True)]
)
def test_a_wrong_field_is_named(tmp_path: Path, field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        changed(tiny_denoiser(SCHEDULE), tmp_path / "model", **{field: value})
