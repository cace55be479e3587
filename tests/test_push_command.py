"""`indel push`: what goes to the Hub comes back from it, and what goes wrong is one line."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
import torch

from indel import Denoiser, Schedule, load
from indel.cli import run
from indel.pretrained import pretrained_folder
from support.denoisers import tiny_denoiser
from support.fake_hub import TOKEN, FakeHub, fake_hub

# huggingface_hub sends a file in a way that httpx no longer likes.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture
def denoiser() -> Denoiser:
    return tiny_denoiser(Schedule.paper(3, 4, 0.6))


@pytest.fixture
def folder(denoiser: Denoiser, tmp_path: Path) -> Path:
    denoiser.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A Hub on this machine, known to the library and to the user."""
    with fake_hub() as found:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", found.address)
        monkeypatch.setattr(
            "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
            f"{found.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}",
        )
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
        # The Hub of the tests takes files as they are, not in pieces.
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield found
        huggingface_hub.close_session()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says that it does not do."""
    capsys.readouterr()
    assert run(["push", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_what_is_pushed_can_be_loaded(
    folder: Path, denoiser: Denoiser, hub: FakeHub, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["push", str(folder), "someone/tiny", "--title", "Tiny", "--private"]
    assert run([*command, "--message", "The first"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "indel.load('someone/tiny')"
    assert hub.messages == ["The first"]
    assert hub.private == {"someone/tiny"}
    files = hub.repositories["someone/tiny"]
    assert files["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    card = files["README.md"].decode()
    assert card.startswith("---\nlibrary_name: indel\n")
    assert "# Tiny" in card
    assert "not measured" in card
    assert 'indel.load("someone/tiny")' in card
    # Through the library's own download, from the Hub that holds it.
    weight = load("someone/tiny").embedding.weight
    assert torch.equal(weight, denoiser.embedding.weight)


def test_a_dry_run_writes_what_is_pushed(
    folder: Path, tmp_path: Path, hub: FakeHub, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "dry"
    assert run(["push", str(folder), "someone/tiny", "--dry-run", str(written)]) == 0
    assert not hub.repositories
    assert run(["push", str(folder), "someone/tiny"]) == 0
    found = {path.name: path.read_bytes() for path in written.iterdir()}
    assert found == hub.repositories["someone/tiny"]
    assert "is there already" in refused(
        capsys, str(folder), "someone/tiny", "--dry-run", str(written)
    )


def test_a_bundled_model_takes_its_card_and_its_words_along(tmp_path: Path) -> None:
    written = tmp_path / "dry"
    assert run(["push", "text8", "someone/text8", "--dry-run", str(written)]) == 0
    source = pretrained_folder("text8")
    for path in source.iterdir():
        if path.name != "README.md":
            assert (written / path.name).read_bytes() == path.read_bytes()
    card = (written / "README.md").read_text(encoding="utf-8")
    body = (source / "README.md").read_text(encoding="utf-8").partition("---\n\n")[2]
    assert body in card
    # A card that says how to use the model does not say so twice.
    again = tmp_path / "again"
    assert run(["push", str(written), "other/text8", "--dry-run", str(again)]) == 0
    assert (again / "README.md").read_text(encoding="utf-8") == card


@pytest.mark.parametrize("name", ["tiny", "a/b/c", "someone/ti ny", "someone/", "../x", ""])
def test_a_bad_name_is_refused_at_once(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "text8", name)
    assert "must be OWNER/NAME" in said
    assert repr(name) in said


def test_without_a_token(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    assert "hf auth login" in refused(capsys, str(folder), "someone/tiny")


def test_with_a_token_that_is_not_known_or_may_not_write(
    folder: Path,
    hub: FakeHub,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "the token may not write there" in refused(capsys, str(folder), "others/tiny")
    monkeypatch.setenv("HF_TOKEN", "hf_stale")
    assert "does not know the token" in refused(capsys, str(folder), "someone/tiny")
    assert not hub.repositories


def test_without_a_network(
    folder: Path, hub: FakeHub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = other.getsockname()[1]
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{free}")
    said = refused(capsys, str(folder), "someone/tiny")
    assert "nothing was uploaded to someone/tiny: the Hub cannot be reached" in said


def test_what_is_no_model(tmp_path: Path, hub: FakeHub, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "nowhere"):
        assert str(tmp_path / name) in refused(capsys, str(tmp_path / name), "someone/tiny")
    assert not hub.repositories


def test_a_card_with_a_broken_header(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "README.md").write_text("---\ntags: [unfinished\n---\n\n# A model\n")
    said = refused(capsys, str(folder), "someone/tiny", "--dry-run", str(folder.parent / "dry"))
    assert "should begin with a header in YAML" in said
    assert sorted(path.name for path in folder.parent.iterdir()) == ["model"]
