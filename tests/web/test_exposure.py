"""What holds when the page is served to other machines."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from indel.web.connections import ImpatientProtocol
from indel.web.request_limits import LIMITS
from support.page_server import Server, page_server

PATIENCE = 120.0


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=PATIENCE) as found:
        yield found


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a name, which does not wait long."""
    folder = tmp_path_factory.mktemp("exposed")
    settings = {"names": ["Indel.Example.org"], "request_seconds": 2.0, "examples": False}
    with page_server(folder, **settings) as server:
        yield server


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:7860", 200),
        ("localhost", 200),
        ("[::1]:7860", 200),
        ("192.168.1.7", 200),
        (socket.gethostname(), 200),
        ("evil.example.org", 421),
        ("127.0.0.1.example.org", 421),
        ("localhost.example.org:7860", 421),
        ("", 421),
        ("]", 421),
    ],
)
def test_names_of_other_sites_are_refused(client: httpx.Client, host: str, status: int) -> None:
    assert client.get("/theme.css", headers={"Host": host}).status_code == status


def test_a_name_can_be_allowed(exposed: Server) -> None:
    for host, status in (("indel.example.org", 200), ("other.example.org", 421)):
        found = httpx.get(f"{exposed.address}/theme.css", headers={"Host": host}, timeout=60)
        assert found.status_code == status


def test_pages_of_other_sites_may_not_ask(client: httpx.Client) -> None:
    url, body = "/gradio_api/call/v2/process", {"text": "a"}
    for origin, status in (
        ("https://evil.example.org", 403),
        ("null", 403),
        (str(client.base_url).rstrip("/"), 200),
    ):
        assert client.post(url, json=body, headers={"Origin": origin}).status_code == status


def test_other_sites_may_not_show_the_page_in_a_frame(client: httpx.Client) -> None:
    policy = client.get("/").headers["content-security-policy"]
    assert "frame-ancestors 'self'" in policy


def test_one_client_cannot_take_the_whole_queue(exposed: Server) -> None:
    """A proxy on this machine says for whom it asks, so one machine can be several clients."""
    slow = {"text": "many words to score " * 29, "chains": 2}
    url = f"{exposed.address}/gradio_api/call/v2/likelihood"
    # Gradio describes the API when it is first asked for it, which takes a while.
    httpx.get(f"{exposed.address}/gradio_api/info", timeout=PATIENCE)

    def ask(client: str) -> httpx.Response:
        headers = {"X-Forwarded-For": client}
        return httpx.post(url, json=slow, headers=headers, timeout=PATIENCE)

    greedy = [ask("203.0.113.5") for _ in range(LIMITS.of_client + 3)]
    statuses = [response.status_code for response in greedy]
    assert statuses == [200] * LIMITS.of_client + [429] * 3
    assert "wait for them" in greedy[-1].json()["detail"]
    assert ask("203.0.113.6").status_code == 200
    # When one of its requests is done, the client may ask again.
    httpx.get(f"{url}/{greedy[0].json()['event_id']}", timeout=PATIENCE)
    assert ask("203.0.113.5").status_code == 200


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-",
        b"POST /gradio_api/queue/join HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["nothing", "half of the headers", "half of the body"],
)
def test_half_a_request_is_dropped(exposed: Server, half: bytes) -> None:
    start = time.monotonic()
    with socket.create_connection((_host(exposed), _port(exposed)), timeout=60) as connection:
        for byte in half:
            connection.send(bytes([byte]))
        assert connection.recv(1) == b""
    assert time.monotonic() - start > 1.5


def test_a_connection_that_is_used_stays(exposed: Server) -> None:
    """Several requests one after the other do not meet the deadline of the first."""
    with httpx.Client(base_url=exposed.address, timeout=PATIENCE) as client:
        for _ in range(6):
            assert client.get("/theme.css").status_code == 200
            time.sleep(0.5)
        (pool,) = [client._transport._pool]  # type: ignore[attr-defined]
        assert len(pool.connections) == 1


class Counted(ImpatientProtocol):
    """As if this machine were another one."""

    def is_counted(self, host: str) -> bool:
        return True


async def refused(protocol: type[ImpatientProtocol]) -> list[bool]:
    """Which of so many connections, and two more, are closed by the server at once."""

    async def app(scope: object, receive: object, send: object) -> None: ...

    config, state = Config(app, log_level="critical"), ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    found, writers = [], []
    for _ in range(LIMITS.connections_of_client + 2):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(0.02)
        found.append(reader.at_eof() or reader.exception() is not None)
        writers.append(writer)
    for writer in writers:
        writer.close()
    server.close()
    await asyncio.sleep(0.5)
    return found


def test_one_client_cannot_open_connections_without_end() -> None:
    most = LIMITS.connections_of_client
    # A browser that another test has open runs a loop of its own in this thread.
    with ThreadPoolExecutor(1) as thread:
        for _ in range(2):  # what was closed does not count
            found = thread.submit(asyncio.run, refused(Counted)).result()
            assert found == [False] * most + [True] * 2
        assert not any(thread.submit(asyncio.run, refused(ImpatientProtocol)).result())


def _host(server: Server) -> str:
    return urlsplit(server.address).hostname or ""


def _port(server: Server) -> int:
    return urlsplit(server.address).port or 0
