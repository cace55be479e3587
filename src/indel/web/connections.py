"""Connections that do not wait for ever for a request, and not too many of one client."""

from __future__ import annotations

import asyncio
from collections import Counter
from ipaddress import ip_address
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from indel.web.request_limits import LIMITS

_open: Counter[str] = Counter()
"""Connections from other machines, by address."""


class ImpatientProtocol(H11Protocol):
    """HTTP whose requests must be complete within `LIMITS.request_seconds`.

    uvicorn by itself keeps a connection with half a request open as long as the client likes.
    """

    _deadline: asyncio.TimerHandle | None = None
    _peer = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request."""
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        if self.is_counted(host):
            self._peer = host
            _open[host] += 1
            if _open[host] > LIMITS.connections_of_client:
                return transport.abort()
        self._follow()
        return None

    def is_counted(self, host: str) -> bool:
        """Whether connections from there have a limit: this machine itself has none."""
        return bool(host) and not ip_address(host).is_loopback

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_waiting()
        if self._peer:
            _open[self._peer] -= 1
            _open[self._peer] or _open.pop(self._peer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request, or all of it."""
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """The next request may come."""
        super().on_response_complete()
        self._stop_waiting()
        self._follow()

    def _follow(self) -> None:
        """A request that is complete has no deadline; one that is not keeps its first."""
        complete = self.conn.their_state not in (h11.IDLE, h11.SEND_BODY)
        if complete:
            self._stop_waiting()
        elif self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(LIMITS.request_seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def http_settings() -> dict[str, Any]:
    """For uvicorn: no log of requests, no web sockets, and the limits of this module."""
    return {
        "http": ImpatientProtocol,
        "ws": "none",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "limit_concurrency": LIMITS.connections,
        "timeout_graceful_shutdown": 2,
    }
