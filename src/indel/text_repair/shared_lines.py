"""Lines of letters mended by several processes, each of which takes some of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from indel.sharing import Processes
from indel.text_repair.corrections import LetterMender
from indel.text_repair.lines import LetterRepair, Progress
from indel.text_repair.results import Choice
from indel.text_repair.votes import LetterCorrection


@dataclass(frozen=True)
class SharedMender:
    """A mender whose lines are shared: process r of R mends lines r, r + R, … and gets all."""

    mender: LetterMender
    processes: Processes

    @property
    def draws(self) -> int:
        """How often each line is drawn."""
        return self.mender.draws

    def __call__(
        self, lines: Sequence[str], *, progress: Progress | None = None
    ) -> list[LetterRepair]:
        """What is made of each line, in their order; the lines do not matter to each other."""
        count = self.processes.count
        if count == 1:
            return self.mender(lines, progress=progress)
        shares = self.processes.map(
            lambda first: self.mender(lines[first::count], progress=progress),
            range(count),
            to_bytes=_to_bytes,
            from_bytes=_from_bytes,
        )
        every: dict[int, LetterRepair] = {}
        for first, share in enumerate(shares):
            every |= zip(range(first, len(lines), count), share, strict=True)
        return [every[number] for number in range(len(lines))]


def _to_bytes(repairs: list[LetterRepair]) -> bytes:
    return json.dumps([asdict(repair) for repair in repairs]).encode()


def _from_bytes(content: bytes) -> list[LetterRepair]:
    return [
        LetterRepair(
            repair["letters"],
            tuple(
                LetterCorrection(
                    found["start"],
                    found["end"],
                    tuple(Choice(**choice) for choice in found["choices"]),
                    tuple(found["votes"]),
                )
                for found in repair["corrections"]
            ),
        )
        for repair in json.loads(content)
    ]
