"""The site, built once for all tests that look at it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.programs import environment

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built strictly and without the network."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=environment(http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder
