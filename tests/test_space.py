"""The folder `space` starts as Hugging Face Spaces start it."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml
from packaging.requirements import Requirement

import indel
from indel.cli import run
from support import browsers
from support.page_models import page_models
from support.programs import environment

ROOT = Path(__file__).parents[1]
SPACE = ROOT / "space"
NAME = "someone-indel.hf.space"


def header() -> dict[str, str]:
    """The settings of the Space."""
    text = (SPACE / "README.md").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text.split("---\n")[1]))


def test_the_header_names_what_is_there() -> None:
    settings = header()
    assert settings["sdk"] == "gradio"
    assert (SPACE / settings["app_file"]).is_file()
    assert f"gradio=={settings['sdk_version']}\n" in (ROOT / "constraints.txt").read_text()
    assert len(settings["short_description"]) <= 60
    assert sorted(path.name for path in SPACE.iterdir() if path.name != "__pycache__") == [
        "README.md",
        "app.py",
        "requirements.txt",
    ]


def test_the_requirements_take_this_version() -> None:
    (line,) = (SPACE / "requirements.txt").read_text().splitlines()
    requirement = Requirement(line)
    assert (requirement.name, requirement.extras) == ("indel", {"web"})
    assert indel.__version__ in requirement.specifier


@pytest.mark.parametrize("origin", ["huggingface.co", "https://a.b/c", "https://a b", "*", ""])
def test_a_frame_of_what_is_no_site(origin: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--allow-frame", origin]) == 2
    assert f"--allow-frame must be a site such as https://NAME, got {origin!r}" in (
        capsys.readouterr().err
    )


@pytest.mark.slow
def test_it_starts_and_answers(tmp_path: Path) -> None:
    """With untrained models; what is not said to `app.py` comes from the variables of Spaces."""
    home = tmp_path / "app"
    shutil.copytree(SPACE, home, ignore=shutil.ignore_patterns("__pycache__"))
    models = page_models()
    options = []
    for name in ("text8", "in_place", "arithmetic"):
        getattr(models, name).save_pretrained(tmp_path / name)
        options += [f"--{name.replace('_', '-')}", str(tmp_path / name)]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told = {"SPACE_HOST": NAME, "SPACE_ID": "someone/indel", "GRADIO_SERVER_PORT": str(port)}
    with subprocess.Popen(
        [sys.executable, "app.py", *options],
        cwd=home,
        env=environment(SYSTEM="spaces", **told),
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline().startswith("indel is loading")
            assert re.match(r"indel is ready at \S+", server.stdout.readline())
            check_answers(f"http://127.0.0.1:{port}")
        finally:
            server.kill()


def check_answers(address: str) -> None:
    """The page comes under the name of the Space, in a frame of the Hub, under no other name."""
    answer = httpx.get(address, headers={"Host": NAME}, timeout=120)
    assert answer.status_code == 200
    assert "indel" in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.endswith("frame-ancestors 'self' https://huggingface.co")
    assert httpx.get(address, headers={"Host": "evil.example"}, timeout=120).status_code == 421
    if browsers.CHROMIUM.exists():
        with browsers.browser() as chromium:
            visit = browsers.Visit(chromium, address, browsers.DESKTOP)
            visit.open_tab("Watch")
            assert not visit.errors
            visit.close()
