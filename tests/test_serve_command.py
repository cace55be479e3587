"""`indel serve` as a process of its own."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from indel.cli import run
from support.page_models import page_models

# Gradio leaves sockets open in the process that asks it for a port; later tests would be blamed.
LOADING = "indel is loading its models and their first examples …\n"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Models in folders, and the options that name them."""
    folder = tmp_path_factory.mktemp("models")
    models = page_models()
    names = {"text8": models.text8, "in-place": models.in_place, "arithmetic": models.arithmetic}
    for name, denoiser in names.items():
        denoiser.save_pretrained(folder / name)
    return [word for name in names for word in (f"--{name}", str(folder / name))]


def test_serves_on_this_machine_alone_until_interrupted(options: list[str]) -> None:
    command = [sys.executable, "-m", "indel.cli", "serve", "--port", "0", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            # Said at once, long before the models are there.
            assert server.stdout.readline() == LOADING
            line = server.stdout.readline()
            assert line.startswith("indel is ready at http://127.0.0.1:"), server.stderr.read()
            assert httpx.get(line.split()[4], timeout=120).status_code == 200
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == 0
            assert server.stdout.read() == "stopped\n"
            assert server.stderr.read() == ""
        finally:
            server.kill()


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str, said: str = LOADING) -> str:
    assert run(["serve", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == said
    assert err.count("\n") == 1
    return err


def test_models_that_are_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert f"no model at {tmp_path / 'none'}" in complaint(
        capsys, "--text8", str(tmp_path / "none")
    )


def test_models_of_the_wrong_kind(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    text = options[options.index("--text8") + 1]
    assert "the model arithmetic must be one of integers" in complaint(
        capsys, *options, "--arithmetic", text
    )
    numbers = options[options.index("--arithmetic") + 1]
    assert "the model in_place must know a–z" in complaint(capsys, *options, "--in-place", numbers)


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert f"cannot listen on port {port} of 127.0.0.1" in complaint(
            capsys, *options, "--port", port
        )


def test_no_address_is_seen_before_anything_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--host must be an address, such as" in complaint(capsys, "--host", "", said="")


def test_an_address_that_is_not_ours(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert "of 192.0.2.1: " in complaint(capsys, *options, "--host", "192.0.2.1")
