"""A folder is all one needs, and a bad one says what is wrong with it."""

import json
import math
import os
import socket
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from indel import Batch, CharacterVocabulary, IntegerVocabulary
from indel.model import Denoiser
from indel.model.saving import write_checksums
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


@pytest.fixture
def unchecked(folder: Path) -> Path:
    """A folder as they were before there were checksums: its files are checked all the same."""
    (folder / "checksums.json").unlink()
    return folder


def test_round_trip(tmp_path: Path) -> None:
    denoiser = make(backbone="t5", activation="gated-gelu", time_embedding=True).eval()
    denoiser.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "README.md",
        "checksums.json",
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
def test_a_missing_or_broken_file_is_named(
    unchecked: Path, name: str, content: bytes | None
) -> None:
    if content is None:
        (unchecked / name).unlink()
    else:
        (unchecked / name).write_bytes(content)
    message = f"{name} with .* is missing; the folder" if content is None else f"{name} should hold"
    with pytest.raises(FileNotFoundError if content is None else ValueError, match=message):
        Denoiser.from_pretrained(unchecked)


def edit(path: Path, **changes: object) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    data.update(changes)
    path.write_text(json.dumps(data), encoding="utf-8")


def test_files_that_do_not_fit_together_are_named(unchecked: Path) -> None:
    edit(unchecked / "config.json", max_length=11)
    with pytest.raises(ValueError, match=r"(?s)model\.safetensors does not fit .*length\.logits"):
        Denoiser.from_pretrained(unchecked)
    edit(unchecked / "config.json", max_length=10, time_embedding=False)
    with pytest.raises(ValueError, match="time_embedding"):
        Denoiser.from_pretrained(unchecked)


def test_another_vocabulary_is_refused(folder: Path) -> None:
    data = json.dumps(IntegerVocabulary(9).to_dict())
    (folder / "vocabulary.json").write_text(data, encoding="utf-8")
    with pytest.raises(ValueError, match=r"config\.json .* agree .* 9 and 4"):
        Denoiser.from_pretrained(folder)


def test_a_missing_weight_is_refused(unchecked: Path) -> None:
    weights = load_file(unchecked / "model.safetensors")
    del weights["deletions_head.bias"]
    save_file(weights, unchecked / "model.safetensors")
    with pytest.raises(ValueError, match=r"deletions_head\.bias"):
        Denoiser.from_pretrained(unchecked)


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

    monkeypatch.setattr("indel.model.saving.snapshot_download", download)
    Denoiser.from_pretrained("someone/indel-xyz", revision="v1", local_files_only=True)
    assert (asked["repo_id"], asked["revision"]) == ("someone/indel-xyz", "v1")
    assert asked["local_files_only"] is True
    assert sorted(asked["allow_patterns"]) == [
        "checksums.json",
        "config.json",
        "model.safetensors",
        "repair.json",
        "schedule.json",
        "vocabulary.json",
        "word_pairs.txt",
        "words.txt",
    ]


@pytest.mark.parametrize("name", ["config.json", "vocabulary.json", "schedule.json"])
def test_a_changed_file_is_refused_by_its_checksum(folder: Path, name: str) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(ValueError, match=rf"{name} has changed since it was written"):
        Denoiser.from_pretrained(folder)
    (folder / "checksums.json").unlink()
    Denoiser.from_pretrained(folder)


def test_one_changed_bit_of_the_weights_is_noticed(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.safetensors has changed since it was written"):
        Denoiser.from_pretrained(folder)


def test_an_older_folder_loads_with_a_note(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    Denoiser.from_pretrained(folder)
    assert caplog.text == ""
    (folder / "checksums.json").unlink()
    Denoiser.from_pretrained(folder)
    assert f"{folder} has no checksums.json: it is loaded unchecked" in caplog.text


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"config.json": 3}', "[" * 5000])
def test_damaged_checksums_are_refused(folder: Path, content: str) -> None:
    (folder / "checksums.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"checksums"):
        Denoiser.from_pretrained(folder)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite_are_refused(folder: Path, value: float) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["embedding.weight"][1, 2] = value
    save_file(weights, folder / "model.safetensors")
    write_checksums(folder)
    with pytest.raises(ValueError, match=r"1 of the values of embedding\.weight are not finite"):
        Denoiser.from_pretrained(folder)


def test_a_length_may_be_impossible_but_not_undefined(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    for value, right in ((-math.inf, True), (math.nan, False), (math.inf, False)):
        weights["length.logits"][3] = value
        save_file(weights, folder / "model.safetensors")
        write_checksums(folder)
        with nullcontext() if right else pytest.raises(ValueError, match=r"length\.logits"):
            Denoiser.from_pretrained(folder)


def test_bundled_models_by_name() -> None:
    assert Denoiser.from_pretrained("arithmetic").vocabulary == IntegerVocabulary(512)


def test_files_are_as_readable_as_the_umask_says(tmp_path: Path) -> None:
    for mask, mode in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        before = os.umask(mask)
        try:
            make().save_pretrained(tmp_path / str(mask))
        finally:
            os.umask(before)
        for path in (tmp_path / str(mask)).iterdir():
            assert path.stat().st_mode & 0o777 == mode, path.name


HOSTILE_OPTIONS = [
    {"attn_implementation": "someone/kernel"},
    {"_attn_implementation": "someone/kernel"},
    {"auto_map": {"AutoModel": "someone/code--model.Model"}},
    {"use_kernels": True},
    {"quantization_config": {"quant_method": "gptq"}},
    {"backbone": "someone/model", "use_pretrained_backbone": True},
]
SMALL_BERT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.mark.parametrize("options", HOSTILE_OPTIONS)
@pytest.mark.parametrize("model_type", ["bert", "detr", "timm_backbone"])
def test_a_config_cannot_make_it_contact_anybody(
    folder: Path, options: dict[str, object], model_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    asked: list[object] = []

    def refuse(*arguments: object, **_: object) -> None:
        asked.append(arguments)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    backbone = {
        "kind": "hugging-face",
        "model_type": model_type,
        "options": {**SMALL_BERT, **options},
    }
    edit(folder / "config.json", backbone=backbone)
    write_checksums(folder)
    with pytest.raises(ValueError, match=r"config\.json"):
        Denoiser.from_pretrained(folder)
    assert asked == []
