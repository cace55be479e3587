"""What stands between the network and the page: which requests get through, and in what form."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

import gradio as gr
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indel.web.bodies import BadBody, Calls
from indel.web.request_limits import LIMITS

BUSY = "busy, try again in a moment: too many requests are waiting already"
# Gradio's page has its scripts and styles in itself, so inline ones must be allowed.
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)
_API = "/gradio_api"
_EVENT = f"{_API}/queue/join"
_CALL = re.compile(rf"{_API}/call/v2/(\w+)/?")
# All that the page and the documented API need. Gradio has many routes more, some of which fetch
# from other hosts or write to the disk; none of them is reachable.
_ROUTES = {
    "GET": re.compile(
        r"/|/config|/theme\.css|/favicon\.ico|/robots\.txt"
        r"|/(assets|static)/(?!.*\.\.)[\w./-]+"
        rf"|{_API}/(info|queue/data|call/v2/\w+/[0-9a-f]{{32}})"
    ),
    "POST": re.compile(rf"{_EVENT}|{_API}/(cancel|reset)|{_CALL.pattern}"),
}
_ROUTES["HEAD"] = _ROUTES["GET"]


async def tell_busy(request: Request, error: Exception) -> JSONResponse:
    """A full queue is said in the words of the page."""
    assert isinstance(error, HTTPException)
    full = "full" in str(error.detail)
    detail = BUSY if full else error.detail
    return JSONResponse({"detail": detail}, status_code=error.status_code)


class Guard:
    """Refuses what the page does not need, and tells browsers to load nothing from elsewhere."""

    def __init__(
        self,
        app: ASGIApp,
        page: gr.Blocks,
        names: Collection[str],
        frames: Collection[str] = (),
    ) -> None:
        self.app = app
        self.page = page
        self.names = names
        """Host names that the page may be asked under, next to addresses."""
        self.calls = Calls(page)
        # Sites that may show the page in a frame end the policy.
        self.headers = (
            (b"content-security-policy", " ".join([POLICY, *frames]).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self.headers]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None and scope["method"] == "POST":
            body = await _whole_body(receive)
            if body is None:
                return None
            try:
                receive = _replayed(self._checked(scope, body), receive)
            except BadBody as error:
                refusal = _refused(422, str(error))
        if scope["path"] == "/":
            # A link may name a stored state of the page; there are none.
            scope = {**scope, "query_string": b""}
        await (refusal or self.app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        """The answer to a request whose body is not even read."""
        headers, path = Headers(scope=scope), scope["path"]
        if not self._is_known(headers.get("host", "")):
            return _refused(421, "this page is not served under that name; see --allow-host")
        origin = headers.get("origin")
        if origin is not None and not self._is_known(origin.partition("://")[2]):
            return _refused(403, "pages of other sites may not ask here")
        route = _ROUTES.get(scope["method"])
        if route is None or not route.fullmatch(path):
            return _refused(404, "there is nothing here")
        call = _CALL.fullmatch(path)
        if call and call[1] not in self.calls.fields:
            return _refused(404, f"the API has {', '.join(self.calls.fields)}")
        if "transfer-encoding" in headers:
            return _refused(411, "say how long the request is")
        size = headers.get("content-length", "0")
        # h11 has seen to it that this is a number.
        if int(size) > LIMITS.body_bytes:
            most = f"a request may have {LIMITS.body_bytes:,} bytes, this one has {int(size):,}"
            return _refused(413, most)
        if (call or path == _EVENT) and self._has_enough(scope):
            busy = f"one address may have {LIMITS.of_client} requests under way; wait for them"
            return _refused(429, busy)
        return None

    def _checked(self, scope: Scope, body: bytes) -> bytes:
        if scope["path"] == _EVENT:
            return self.calls.event(body)
        call = _CALL.fullmatch(scope["path"])
        return self.calls.call(call[1], body) if call else body

    def _is_known(self, host: str) -> bool:
        """Whether a Host is an address, or a name that is allowed.

        The name of another site that resolves to this machine would let that site's scripts in.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self.names or _is_address(name)

    def _has_enough(self, scope: Scope) -> bool:
        """Whether a client on another machine has its share of the queue already."""
        client = _client(scope)
        if _is_here(client):
            return False
        return sum(other == client for other in _waiting_clients(self.page)) >= LIMITS.of_client


def _waiting_clients(page: gr.Blocks) -> Iterator[str]:
    """The addresses behind all events that wait or run."""
    queue = page._queue
    for waiting in queue.event_queue_per_concurrency_id.values():
        yield from (_client(event.request.scope) for event in waiting.queue)
    for job in queue.active_jobs:
        yield from (_client(event.request.scope) for event in job or ())


def _client(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else ""


def _is_here(client: str) -> bool:
    return not client or (_is_address(client) and ip_address(client).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


async def _whole_body(receive: Receive) -> bytes | None:
    """All of it, at most `LIMITS.body_bytes` as its header says; None if the client left."""
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def again() -> Message:
        return next(messages, None) or await receive()

    return again


def _refused(status: int, detail: str) -> JSONResponse:
    headers = {"retry-after": "5"} if status == 429 else None
    return JSONResponse({"detail": detail}, status_code=status, headers=headers)
