"""The page with untrained models, as a process of its own.

python tests/page_server.py [WAITING]    prints its address; ends when its standard input does
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from indel.web.limits import LIMITS


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
def page_server(folder: Path, waiting: int = LIMITS.waiting) -> Iterator[Server]:
    """A server that logs to a file in a folder, until the block is left."""
    log = folder / "server.log"
    with (
        log.open("wb") as file,
        subprocess.Popen(
            [sys.executable, __file__, str(waiting)],
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


def main(waiting: int) -> None:
    """Serve."""
    import torch

    from indel.web.serving import running
    from page_models import page_models

    torch.set_num_threads(1)
    with running(page_models(), port=0, waiting=waiting) as address:
        print(address.rstrip("/"), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
