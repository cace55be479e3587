"""Work shared between processes that a launcher has started together, and put in order again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TypeVar

import torch
from torch import distributed

Item = TypeVar("Item")
Result = TypeVar("Result")

# What `accelerate launch` and torchrun tell each process.
_SET_BY_LAUNCHERS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# A piece of work may take long, and the others wait for it; a launcher ends all if one fails.
_PATIENCE = timedelta(days=1)


def _to_json(result: object) -> bytes:
    return json.dumps(result).encode()


@dataclass(frozen=True)
class Processes:
    """This process among those that were started together; alone it is 0 of 1.

    >>> list(Processes().map(abs, [1, -2]))
    [1, 2]
    """

    index: int = 0
    count: int = 1

    @classmethod
    def launched(cls, environment: Mapping[str, str] = os.environ) -> Processes:
        """Those of `accelerate launch` or torchrun, connected to each other; else this one alone.

        Results travel between the processes' memories (gloo), whatever device computes them.
        """
        if not all(name in environment for name in _SET_BY_LAUNCHERS):
            return cls()
        index, count = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        if count > 1 and not distributed.is_initialized():
            distributed.init_process_group("gloo", rank=index, world_size=count, timeout=_PATIENCE)
        return cls(index, count)

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that reads and prints."""
        return self.index == 0

    def device(self, name: str) -> str:
        """The device that is meant here: of several processes each has a GPU of its own.

        >>> Processes().device("cuda"), Processes(1, 2).device("cpu")
        ('cuda', 'cpu')
        """
        if self.count == 1 or name != "cuda":
            return name
        return f"cuda:{os.environ.get('LOCAL_RANK', self.index)}"

    def map(
        self,
        work: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        to_bytes: Callable[[Result], bytes] = _to_json,
        from_bytes: Callable[[bytes], Result] = json.loads,
    ) -> Iterator[Result]:
        """work(item) of all items in their order, in every process; each is done by one of them.

        Each process must be given the same items. The first one does item 0, the next one item 1,
        and so on, so that results come as they are made. Between processes they are bytes, JSON
        unless it is said otherwise.
        """
        if self.count == 1:
            yield from map(work, items)
            return
        remaining = iter(items)
        while turn := list(islice(remaining, self.count)):
            mine = to_bytes(work(turn[self.index])) if self.index < len(turn) else b""
            yield from map(from_bytes, self.gather(mine)[: len(turn)])

    def gather(self, mine: bytes) -> list[bytes]:
        """What each process gives, by its index, in every process. Bytes, so nothing is unpickled.

        >>> Processes().gather(b"alone")
        [b'alone']
        """
        if self.count == 1:
            return [mine]
        length = torch.tensor([len(mine)])
        lengths = [torch.empty_like(length) for _ in range(self.count)]
        distributed.all_gather(lengths, length)
        longest = max(int(each) for each in lengths)
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: len(mine)] = torch.frombuffer(bytearray(mine), dtype=torch.uint8) if mine else 0
        every = [torch.empty_like(padded) for _ in range(self.count)]
        distributed.all_gather(every, padded)
        return [
            each[: int(size)].numpy().tobytes() for each, size in zip(every, lengths, strict=True)
        ]


ALONE = Processes()
