"""One server and one browser for all tests of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from indel.web.models import Models
from support import browsers
from support.page_models import page_models
from support.page_server import Server, page_server


@pytest.fixture(scope="session")
def models() -> Models:
    return page_models()


@pytest.fixture(scope="session")
def files_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of the server; the page makes no files there."""
    return tmp_path_factory.mktemp("gradio")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, files_folder: Path) -> Iterator[Server]:
    with ExitStack() as running:
        # Only while the server starts: the browser keeps its own files elsewhere.
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GRADIO_TEMP_DIR", str(files_folder))
            patch.setenv("TMPDIR", str(files_folder))
            found = running.enter_context(page_server(tmp_path_factory.mktemp("server")))
        yield found


@pytest.fixture(scope="session")
def address(server: Server) -> str:
    return server.address


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    if not browsers.CHROMIUM.exists():
        pytest.skip(browsers.MISSING)
    with browsers.browser() as found:
        yield found


@pytest.fixture
def visit(chromium: Any, address: str) -> Iterator[Callable[..., browsers.Visit]]:
    """Opens the page; whatever the page complained about, or asked of another host, fails."""
    visits: list[browsers.Visit] = []

    def open_page(size: dict[str, int] = browsers.DESKTOP, **settings: Any) -> browsers.Visit:
        visits.append(browsers.Visit(chromium, address, size, **settings))
        return visits[-1]

    yield open_page
    for each in visits:
        each.close()  # once more does no harm
        assert not each.errors
        assert {host for host in each.hosts if host} == {address.removeprefix("http://")}
