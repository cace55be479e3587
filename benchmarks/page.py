"""200 requests from 16 clients at once: each gets its own answer or "busy", and memory stays flat.

python benchmarks/page.py

The server is a process of its own on the loopback device, with untrained models: this is about the
page, not about the speed of a model. Fails if an answer is somebody else's, missing or late, or if
the server's memory grows.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.page_server import page_server

REQUESTS, CLIENTS, ROUNDS = 200, 16, 6
# Seconds until an answer counts as hanging, on a machine that may do other work.
LATE = 300.0
MOST_GROWTH = 8.0
"""MB a round over the last three rounds: by then all caches are filled."""


class Kind(NamedTuple):
    """One endpoint: a request that only client and number can make, and how to know its answer."""

    name: str
    fields: Callable[[str], dict[str, Any]]
    says: Callable[[dict[str, Any]], str]


KINDS = (
    Kind("repair", lambda own: {"text": own, "draws": 2}, lambda found: found["original"]),
    Kind("process", lambda own: {"text": own}, lambda found: _spelled(found["tokens"][0])),
    Kind("watch", lambda own: {"start": own, "t": 3}, lambda found: _spelled(found["tokens"][0])),
    Kind("likelihood", lambda own: {"text": own, "chains": 1}, lambda found: found["letters"]),
)


def main() -> None:
    """Print what became of the requests, and fail if one went wrong."""
    with tempfile.TemporaryDirectory() as folder, page_server(Path(folder)) as server:
        outcomes, memory = Counter[str](), [server.megabytes()]
        start = time.perf_counter()
        with _opening_the_page(server.address) as waits:
            for number in range(ROUNDS):
                outcomes += Counter(_round(server.address, _letters(number)))
                memory.append(server.megabytes())
        seconds = time.perf_counter() - start
        growth = (memory[-1] - memory[-4]) / 3
    table = Table("", "", box=None, padding=(0, 2))
    table.add_row("rounds, requests a round, clients", f"{ROUNDS}, {REQUESTS}, {CLIENTS}")
    for outcome in ("own answer", "busy", "mixed up", "error", "hanging"):
        table.add_row(outcome, str(outcomes[outcome]))
    table.add_row("requests a second", f"{ROUNDS * REQUESTS / seconds:.1f}")
    table.add_row("opening the page meanwhile", f"{max(waits):.2f} s at most")
    table.add_row("server's memory, MB", " ".join(f"{megabytes:.0f}" for megabytes in memory))
    Console().print(table)
    wrong = ROUNDS * REQUESTS - outcomes["own answer"] - outcomes["busy"]
    if wrong or not outcomes["own answer"] or growth > MOST_GROWTH:
        sys.exit(
            f"missed: {wrong} requests without an answer of their own, {growth:+.1f} MB a round"
        )


def _round(address: str, name: str) -> list[str]:
    with ThreadPoolExecutor(CLIENTS) as clients, httpx.Client(timeout=LATE) as client:

        def ask(number: int) -> str:
            # Letters only, so that every endpoint gives them back unchanged.
            own = f"{name} request {_letters(number)}"
            return _ask(client, address, KINDS[number % len(KINDS)], own)

        return list(clients.map(ask, range(REQUESTS)))


@contextmanager
def _opening_the_page(address: str) -> Iterator[list[float]]:
    """How long somebody else waits for the page, again and again until the block is left."""
    waits, done = list[float](), threading.Event()

    def look() -> None:
        while not done.is_set() or not waits:
            start = time.perf_counter()
            httpx.get(address, timeout=LATE).raise_for_status()
            waits.append(time.perf_counter() - start)
            done.wait(0.5)

    visitor = threading.Thread(target=look)
    visitor.start()
    try:
        yield waits
    finally:
        done.set()
        visitor.join()


def _ask(client: httpx.Client, address: str, kind: Kind, own: str) -> str:
    """What became of one request."""
    url = f"{address}/gradio_api/call/v2/{kind.name}"
    try:
        asked = client.post(url, json=kind.fields(own))
        if asked.status_code == 503 and "busy, try again" in asked.text:
            return "busy"
        stream = client.get(f"{url}/{asked.raise_for_status().json()['event_id']}").text
    except httpx.TimeoutException:
        return "hanging"
    except httpx.HTTPError:
        return "error"
    event, data = re.findall(r"^event: (\w+)\ndata: (.*)$", stream, re.MULTILINE)[-1]
    if event != "complete":
        return "error"
    return "own answer" if kind.says(json.loads(data)[0]) == own else "mixed up"


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _spelled(tokens: list[str]) -> str:
    return "".join(tokens).replace("␣", " ")


if __name__ == "__main__":
    main()
