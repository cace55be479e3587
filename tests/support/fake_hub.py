"""A Hugging Face Hub on this machine: repositories, commits and files, by its HTTP interface."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

TOKEN = "hf_knownToThisHub"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeHub(ThreadingHTTPServer):
    """Takes what `create_repo` and `create_commit` send, and gives it to `snapshot_download`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.private: set[str] = set()
        self.messages: list[str] = []
        self.large: dict[str, bytes] = {}
        """Files that were sent apart, by their checksums."""


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """A Hub that answers until the block is left."""
    with FakeHub() as hub:
        thread = threading.Thread(target=hub.serve_forever, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()


class _Requests(BaseHTTPRequestHandler):
    server: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def do_PUT(self) -> None:
        content = self._body()
        oid = self.path.rpartition("/")[2]
        assert hashlib.sha256(content).hexdigest() == oid
        self.server.large[oid] = content
        self._answer({})

    def do_POST(self) -> None:
        body = self._body()
        if self.path.startswith("/api/validate-yaml"):
            return self._answer({"errors": [], "warnings": []})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._answer({"error": "Invalid username or password."}, 401)
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            if asked["organization"] == "others":
                return self._answer({"error": "not yours"}, 403)
            name = f"{asked['organization']}/{asked['name']}"
            self.server.repositories.setdefault(name, {})
            if asked.get("visibility") == "private" or asked.get("private"):
                self.server.private.add(name)
            return self._answer({"url": f"{self.server.address}/{name}"})
        if self.path.endswith("/info/lfs/objects/batch"):
            objects = [
                {**each, "actions": {"upload": {"href": f"{self.server.address}/{each['oid']}"}}}
                for each in json.loads(body)["objects"]
            ]
            return self._answer({"transfer": "basic", "objects": objects})
        found = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(preupload|commit)/main", self.path)
        assert found, self.path
        if found[2] == "preupload":
            files = [
                {
                    "path": each["path"],
                    "uploadMode": "lfs" if each["path"].endswith(".safetensors") else "regular",
                    "shouldIgnore": False,
                }
                for each in json.loads(body)["files"]
            ]
            return self._answer({"files": files})
        self._commit(found[1], [json.loads(line) for line in body.splitlines()])
        return self._answer(
            {"commitUrl": f"{self.server.address}/{found[1]}/commit/{COMMIT}", "commitOid": COMMIT}
        )

    def _commit(self, name: str, lines: list[dict[str, dict[str, str]]]) -> None:
        files = self.server.repositories[name]
        for line in lines:
            value = line["value"]
            match line["key"]:
                case "header":
                    self.server.messages.append(value["summary"])
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    files[value["path"]] = self.server.large[value["oid"]]

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if found := re.match(r"/api/models/([^/]+/[^/]+)/tree/", path):
            files = self.server.repositories[found[1]]
            return self._answer(
                [
                    {"type": "file", "path": name, "size": len(content), "oid": _git_oid(content)}
                    for name, content in files.items()
                ]
            )
        if found := re.match(r"/api/models/([^/]+/[^/]+)(/revision/.*)?$", path):
            if found[1] not in self.server.repositories:
                return self._answer({"error": "Repository not found"}, 404)
            names = [{"rfilename": name} for name in self.server.repositories[found[1]]]
            return self._answer({"id": found[1], "sha": COMMIT, "siblings": names})
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path)
        if not found:
            return self._answer({"error": "not a part of this Hub"}, 404)
        content = self.server.repositories[found[1]][found[2]]
        return self._send(200, content, {"ETag": f'"{_git_oid(content)}"'})

    do_HEAD = do_GET

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, value: object, status: int = 200) -> None:
        self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "X-Repo-Commit": COMMIT}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
