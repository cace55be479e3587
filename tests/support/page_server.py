"""The page with untrained models, as a process of its own.

python -m support.page_server SETTINGS    takes JSON, prints its address; ends with its input
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from support.programs import environment


class Server(NamedTuple):
    """A server that runs."""

    address: str
    pid: int
    log: Path

    def cpu_seconds(self) -> float:
        """How long it has computed so far (Linux)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
        # utime and stime, counted from the field after the name; in hundredths.
        return sum(map(int, fields.split()[11:13])) / 100

    def megabytes(self) -> float:
        """What it holds in memory (Linux)."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) / 1024


@contextmanager
def page_server(folder: Path, **settings: Any) -> Iterator[Server]:
    """A server that logs to a file in a folder, until the block is left.

    Settings are those of `running`, and `request_seconds`.
    """
    log = folder / "server.log"
    with (
        log.open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-m", "support.page_server", json.dumps(settings)],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:
                raise RuntimeError(log.read_text(encoding="utf-8"))
            yield Server(address, process.pid, log)
        finally:
            process.stdin.close()
            try:
                process.wait(60)
            finally:
                process.kill()


def main(request_seconds: float | None = None, **settings: Any) -> None:
    """Serve."""
    import torch

    from indel.web import request_limits
    from indel.web.serving import running
    from support.page_models import page_models

    if request_seconds is not None:
        object.__setattr__(request_limits.LIMITS, "request_seconds", request_seconds)
    sys.addaudithook(_tell_of_connections)
    torch.set_num_threads(1)
    with running(page_models(), port=0, **settings) as address:
        print(address.rstrip("/"), flush=True)
        sys.stdin.read()


def _tell_of_connections(event: str, values: tuple[object, ...]) -> None:
    """Log every name that is looked up and every address that is connected to."""
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        print(f"looks up {values[0]!r}", file=sys.stderr, flush=True)
    elif event == "socket.connect":
        print(f"connects to {values[1]!r}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
