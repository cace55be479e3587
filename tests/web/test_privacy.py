"""What is typed reaches no log and no disk, and the server asks nothing of other hosts."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.page_server import Server

SECRET = "zebraprivate"
PATIENCE = 120.0
ELSEWHERE = "fetched.example.org"


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.address, timeout=PATIENCE) as found:
        yield found


def leaks(server: Server, files_folder: Path) -> list[str]:
    """The log lines and the files that hold what was typed."""
    lines = server.log.read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if SECRET in line]
    files = [path for path in files_folder.rglob("*") if path.is_file()]
    return found + [str(path) for path in files if SECRET.encode() in path.read_bytes()]


def events(client: httpx.Client) -> dict[int, int]:
    """How many inputs each event of the page has, by its number."""
    config = client.get("/config").json()
    return {each["id"]: len(each["inputs"]) for each in config["dependencies"]}


FILE = {
    "path": f"http://{ELSEWHERE}/{SECRET}",
    "url": f"http://{ELSEWHERE}/{SECRET}",
    "meta": {"_type": "gradio.FileData"},
}
DEEP = "[" * 50_000 + "]" * 50_000
BAD_CALLS: dict[str, tuple[str, str]] = {
    "too few, by name": ("/gradio_api/call/v2/repair", json.dumps({"data": [SECRET]})),
    "too few": ("/gradio_api/call/repair", json.dumps({"data": [SECRET]})),
    "too few, run": ("/gradio_api/run/repair", json.dumps({"data": [SECRET]})),
    "too few, api": ("/gradio_api/api/repair", json.dumps({"data": [SECRET]})),
    "one more field": ("/gradio_api/call/v2/repair", json.dumps({"text": "a", SECRET: SECRET})),
    "a list": ("/gradio_api/call/v2/repair", json.dumps({"text": [SECRET]})),
    "a file": ("/gradio_api/call/v2/repair", json.dumps({"text": FILE})),
    "no JSON": ("/gradio_api/call/v2/repair", f'{{"text": "{SECRET}"'),
    "no object": ("/gradio_api/call/v2/repair", json.dumps([SECRET])),
    "deep": ("/gradio_api/call/v2/repair", f'{{"{SECRET}": {DEEP}}}'),
    "no such name": (f"/gradio_api/call/v2/{SECRET}", "{}"),
}


@pytest.mark.parametrize("kind", BAD_CALLS)
def test_a_bad_call_gets_one_sentence_and_4xx(
    client: httpx.Client, server: Server, files_folder: Path, kind: str
) -> None:
    path, body = BAD_CALLS[kind]
    found = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert 400 <= found.status_code < 500
    detail = found.json()["detail"]
    assert isinstance(detail, str)
    assert 5 < len(detail) < 200
    assert "\n" not in detail
    assert SECRET not in detail
    assert not leaks(server, files_folder)


def bad_values(inputs: int) -> Iterator[Any]:
    yield [SECRET] * (inputs + 1)
    yield [SECRET] * (inputs - 1)
    yield [FILE] * inputs
    yield [[SECRET]] * inputs
    yield {"0": SECRET}
    yield None


def test_a_bad_event_of_the_page_gets_one_sentence_and_4xx(
    client: httpx.Client, server: Server, files_folder: Path
) -> None:
    asked = {
        "session_hash": "bad",
        "event_data": FILE,
        "trigger_id": SECRET,
    }
    bodies = [
        {**asked, "fn_index": number, "data": data}
        for number, inputs in events(client).items()
        if inputs
        for data in bad_values(inputs)
    ]
    bodies += [
        {**asked, "fn_index": index, "data": []} for index in (-1, 10**6, SECRET, True, None)
    ]
    assert len(bodies) > 30
    for body in bodies:
        found = client.post("/gradio_api/queue/join", json=body)
        assert 400 <= found.status_code < 500, body
        assert SECRET not in found.json()["detail"]
    assert not leaks(server, files_folder)


def finish(client: httpx.Client, session: str, event: str) -> str:
    """All that the server says to a session until one of its events is done."""
    said = ""
    address = f"/gradio_api/queue/data?session_hash={session}"
    with client.stream("GET", address) as stream:
        for line in stream.iter_lines():
            said += line
            if "process_completed" in line and event in line:
                return said
    raise AssertionError(said)


def test_values_of_the_wrong_kind_are_not_logged(
    client: httpx.Client, server: Server, files_folder: Path
) -> None:
    """Text where the page has sliders, numbers and choices: Gradio itself refuses it."""
    for number, inputs in events(client).items():
        if inputs < 3:
            continue
        body = {"session_hash": f"kind{number}", "fn_index": number, "data": [SECRET] * inputs}
        asked = client.post("/gradio_api/queue/join", json=body)
        assert asked.status_code == 200
        finish(client, f"kind{number}", asked.json()["event_id"])
    # Something was wrong, and the log says what kind of thing.
    assert "Error at " in server.log.read_text(encoding="utf-8")
    assert not leaks(server, files_folder)


CLOSED = [
    "/gradio_api/deep_link?session_hash=used",
    "/gradio_api/file=/etc/hostname",
    f"/gradio_api/file=http://{ELSEWHERE}/{SECRET}",
    "/gradio_api/file/etc/hostname",
    f"/gradio_api/proxy=http://{ELSEWHERE}/",
    "/gradio_api/upload_progress?upload_id=a",
    "/gradio_api/stream/used/0/0/playlist.m3u8",
    "/gradio_api/runs",
    "/gradio_api/heartbeat/used",
    "/gradio_api/openapi.json",
    "/gradio_api/vibe-code",
    "/gradio_api/dev/reload",
    "/gradio_api/token",
    "/monitoring",
    "/docs",
    "/openapi.json",
    "/static/../../../../etc/hostname",
    "/assets/%2e%2e/%2e%2e/etc/hostname",
    "//gradio_api/deep_link?session_hash=used",
    "/gradio_api/deep_link/?session_hash=used",
]


@pytest.mark.parametrize("path", CLOSED)
def test_routes_that_the_page_does_not_need_are_closed(
    client: httpx.Client, server: Server, files_folder: Path, path: str
) -> None:
    values: list[Any] = ["text8", SECRET, 2]
    number = next(
        each["id"]
        for each in client.get("/config").json()["dependencies"]
        if len(each["inputs"]) == 4 and len(each["outputs"]) == 4
    )
    body = {"session_hash": "used", "fn_index": number, "data": [0, *values]}
    asked = client.post("/gradio_api/queue/join", json=body)
    assert asked.status_code == 200, asked.text
    finish(client, "used", asked.json()["event_id"])
    # httpx would tidy the path up.
    url = httpx.URL(server.address).copy_with(raw_path=path.encode())
    assert client.get(url).status_code == 404
    assert not leaks(server, files_folder)


@pytest.mark.parametrize(
    "path",
    ["upload", "component_server", "component_server/", "process_recording", "vibe-edit"],
)
def test_nothing_can_be_left_on_the_server(
    client: httpx.Client, server: Server, files_folder: Path, path: str
) -> None:
    found = client.post(f"/gradio_api/{path}", files={"files": SECRET.encode()})
    assert found.status_code == 404
    assert not leaks(server, files_folder)
    assert not [path for path in files_folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_closed(client: httpx.Client, method: str) -> None:
    assert client.request(method, "/").status_code == 404


@pytest.fixture
def other_server() -> Iterator[tuple[str, list[str]]]:
    """A server of somebody else on this machine, and what it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *values: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


def test_the_server_fetches_nothing_for_others(
    client: httpx.Client, server: Server, other_server: tuple[str, list[str]]
) -> None:
    address, asked = other_server
    before = len(server.log.read_text(encoding="utf-8"))
    for host in (address, ELSEWHERE, f"localhost:{address.rpartition(':')[2]}", "169.254.169.254"):
        for scheme in ("http", "https"):
            for route in ("file=", "file/", "proxy=", "custom_component/"):
                path = f"/gradio_api/{route}{scheme}://{host}/x"
                assert client.get(path).status_code == 404
                assert client.head(path).status_code == 404
        body = {"text": {**FILE, "path": f"http://{host}/x", "url": f"http://{host}/x"}}
        assert client.post("/gradio_api/call/v2/repair", json=body).status_code == 422
    assert not asked
    log = server.log.read_text(encoding="utf-8")[before:]
    assert "looks up" not in log
    assert "connects to" not in log


ROUTES = (
    *("/gradio_api/call/v2/repair", "/gradio_api/call/repair", "/gradio_api/run/likelihood"),
    *("/gradio_api/queue/join", "/gradio_api/queue/data", "/gradio_api/upload", "/gradio_api/info"),
    *("/gradio_api/deep_link", "/gradio_api/heartbeat/x", "/config", "/", "/theme.css", "/login"),
)


def random_value(generator: random.Random, depth: int = 0) -> Any:
    """JSON of any shape, with the secret in many places."""
    plain = [SECRET, "", 0, -1, 10**400, 1e308, True, None, FILE, "\x00\ud83d" + SECRET, "a" * 5000]
    if depth > 3 or generator.random() < 0.6:
        return generator.choice(plain)
    values = [random_value(generator, depth + 1) for _ in range(generator.randrange(4))]
    names = ("data", "fn_index", "session_hash", "text", "trigger_id", "event_data", SECRET)
    if generator.random() < 0.5:
        return values
    return {generator.choice(names): value for value in values}


@pytest.mark.slow
def test_a_thousand_random_requests_end_in_an_answer_that_says_nothing(
    client: httpx.Client, server: Server, files_folder: Path
) -> None:
    generator = random.Random(1)
    for number in range(1000):
        path = generator.choice(ROUTES) + generator.choice(
            ["", f"/{SECRET}", f"?{SECRET}=1", "/.."]
        )
        body = json.dumps(random_value(generator)).encode()
        if generator.random() < 0.2:
            body = body[: generator.randrange(len(body) + 1)] + generator.randbytes(5)
        kind = generator.choice(["application/json", "text/plain", "multipart/form-data"])
        method = generator.choice(["GET", "POST", "POST", "POST", "PUT", "OPTIONS"])
        with client.stream(
            method, path, content=body, headers={"Content-Type": kind}, timeout=PATIENCE
        ) as found:
            assert found.status_code < 500, (number, method, path, body)
    assert not leaks(server, files_folder)
    assert "Traceback" not in server.log.read_text(encoding="utf-8")
