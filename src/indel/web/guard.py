"""What stands between the network and the page: sizes, uploads, and what a browser may load."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indel.web.limits import LIMITS

BUSY = "busy, try again in a moment: too many requests are waiting already"
# Gradio's page has its scripts and styles in itself, so inline ones must be allowed.
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'"
)
_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


async def tell_busy(request: Request, error: Exception) -> JSONResponse:
    """A full queue is said in the words of the page."""
    assert isinstance(error, HTTPException)
    full = "full" in str(error.detail)
    detail = BUSY if full else error.detail
    return JSONResponse({"detail": detail}, status_code=error.status_code)


class Guard:
    """Refuses uploads and large requests, and tells browsers to load nothing from elsewhere."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        await (_refusal(scope) or self.app)(scope, receive, guarded)


def _refusal(scope: Scope) -> JSONResponse | None:
    """The answer to a request that is not even read."""
    headers = Headers(scope=scope)
    if scope["path"].endswith("/upload"):
        return JSONResponse({"detail": "nothing can be uploaded here"}, status_code=404)
    if "transfer-encoding" in headers:
        return JSONResponse({"detail": "say how long the request is"}, status_code=411)
    size = int(headers.get("content-length", 0))
    if size > LIMITS.body_bytes:
        most = f"a request may have {LIMITS.body_bytes:,} bytes, this one has {size:,}"
        return JSONResponse({"detail": most}, status_code=413)
    return None
