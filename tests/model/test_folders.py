"""A folder is all one needs, and a bad one says what is wrong with it."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from indel import Batch, CharacterVocabulary, IntegerVocabulary
from indel.model import Denoiser
from indel.process import AbsorbingTransition, Schedule

VOCABULARY = CharacterVocabulary("xyz-")
SCHEDULE = Schedule.paper(
    4, 5, 0.6, transition=lambda size, keep: AbsorbingTransition(size, keep, mask=3)
)


def make(**overrides: object) -> Denoiser:
    denoiser = Denoiser.from_preset(
        "tiny", VOCABULARY, SCHEDULE, max_length=10, width=16, max_deletions=6, **overrides
    )
    denoiser.length.fit(torch.tensor([1, 2, 3, 4]))
    return denoiser


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_round_trip(tmp_path: Path) -> None:
    denoiser = make(backbone="t5", activation="gated-gelu", time_embedding=True).eval()
    denoiser.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "README.md",
        "config.json",
        "model.safetensors",
        "schedule.json",
        "vocabulary.json",
    }
    loaded = Denoiser.from_pretrained(tmp_path)
    assert loaded.vocabulary == VOCABULARY
    assert loaded.schedule == SCHEDULE
    assert loaded.config == denoiser.config
    assert not loaded.training
    x_t = Batch.from_lists([[0, 1, 2, VOCABULARY.del_], [3]])
    t = torch.tensor([2, 5])
    for ours, theirs in zip(denoiser(x_t, t), loaded(x_t, t), strict=True):
        assert torch.equal(ours, theirs)
    lengths = torch.arange(20)
    assert torch.equal(denoiser.length.log_prob(lengths), loaded.length.log_prob(lengths))


def test_a_second_round_trip_changes_nothing(folder: Path, tmp_path: Path) -> None:
    Denoiser.from_pretrained(str(folder)).save_pretrained(tmp_path / "again")
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


def test_loading_leaves_the_global_generator_alone(folder: Path) -> None:
    before = torch.get_rng_state()
    Denoiser.from_pretrained(folder)
    assert torch.equal(torch.get_rng_state(), before)


def test_saving_again_replaces_the_old_model(folder: Path) -> None:
    other = make(num_layers=1)
    other.save_pretrained(folder)
    loaded = Denoiser.from_pretrained(folder)
    assert loaded.config == other.config
    assert torch.equal(loaded.embedding.weight, other.embedding.weight)


@pytest.mark.parametrize(
    "name", ["config.json", "vocabulary.json", "schedule.json", "model.safetensors"]
)
@pytest.mark.parametrize("content", [None, b"", b"{ not what it should be", b"[1, 2]", b"\xff\xfe"])
def test_a_missing_or_broken_file_is_named(folder: Path, name: str, content: bytes | None) -> None:
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    message = f"{name} with .* is missing; the folder" if content is None else f"{name} should hold"
    with pytest.raises(FileNotFoundError if content is None else ValueError, match=message):
        Denoiser.from_pretrained(folder)


def edit(path: Path, **changes: object) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    data.update(changes)
    path.write_text(json.dumps(data), encoding="utf-8")


def test_files_that_do_not_fit_together_are_named(folder: Path) -> None:
    edit(folder / "config.json", max_length=11)
    with pytest.raises(ValueError, match=r"(?s)model\.safetensors does not fit .*length\.logits"):
        Denoiser.from_pretrained(folder)
    edit(folder / "config.json", max_length=10, time_embedding=False)
    with pytest.raises(ValueError, match="time_embedding"):
        Denoiser.from_pretrained(folder)


def test_another_vocabulary_is_refused(folder: Path) -> None:
    data = json.dumps(IntegerVocabulary(9).to_dict())
    (folder / "vocabulary.json").write_text(data, encoding="utf-8")
    with pytest.raises(ValueError, match=r"config\.json .* agree .* 9 and 4"):
        Denoiser.from_pretrained(folder)


def test_a_missing_weight_is_refused(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["deletions_head.bias"]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ValueError, match=r"deletions_head\.bias"):
        Denoiser.from_pretrained(folder)


def test_unknown_settings_are_named(folder: Path) -> None:
    edit(folder / "config.json", colour="blue")
    with pytest.raises(ValueError, match=r"config\.json .* unknown: colour"):
        Denoiser.from_pretrained(folder)


def test_an_unknown_backbone_is_named(folder: Path) -> None:
    edit(folder / "config.json", backbone={"kind": "recurrent"})
    with pytest.raises(ValueError, match="unknown kind of backbone 'recurrent'; known are 'transf"):
        Denoiser.from_pretrained(folder)


@pytest.mark.parametrize("name", ["/tmp/no/where", "no/where", "no/where/at/all"])
def test_no_such_folder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FileNotFoundError, match=f"there is no folder {name}, and nothing came"):
        Denoiser.from_pretrained(name)


def test_push_uploads_the_whole_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    uploaded: dict[str, object] = {}

    class Api:
        def __init__(self, **_: object) -> None: ...

        def create_repo(self, repo_id: str, **_: object) -> object:
            return type("Url", (), {"repo_id": repo_id})

        def upload_folder(self, repo_id: str, folder_path: Path, **_: object) -> str:
            uploaded["repo"] = repo_id
            uploaded["model"] = Denoiser.from_pretrained(folder_path)
            return "https://example.org/commit"

    monkeypatch.setattr("huggingface_hub.hub_mixin.HfApi", Api)
    denoiser = make()
    assert denoiser.push_to_hub("someone/indel-xyz") == "https://example.org/commit"
    assert uploaded["repo"] == "someone/indel-xyz"
    assert torch.equal(uploaded["model"].embedding.weight, denoiser.embedding.weight)


def test_pull_takes_the_model_and_its_words(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def download(repo_id: str, **options: object) -> str:
        asked.update(options, repo_id=repo_id)
        return str(folder)

    monkeypatch.setattr("indel.model.folders.snapshot_download", download)
    Denoiser.from_pretrained("someone/indel-xyz", revision="v1", local_files_only=True)
    assert (asked["repo_id"], asked["revision"]) == ("someone/indel-xyz", "v1")
    assert asked["local_files_only"] is True
    assert sorted(asked["allow_patterns"]) == [
        "config.json",
        "model.safetensors",
        "schedule.json",
        "vocabulary.json",
        "words.txt",
    ]
