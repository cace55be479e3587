"""Work that reports how far it is, and stops when nobody waits for it any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Generic, NamedTuple, TypeVar

BEAT = 0.2
"""Seconds between two signs of life; a cancelled run is noticed at the next one."""

THREAD = "indel work"

Result = TypeVar("Result")
Report = Callable[[int, int], None]
"""Is given how much is done, and of how much; raises `Stopped` if the work is to end."""


class Stopped(Exception):
    """Nobody waits for the result."""


class Progress(NamedTuple):
    """How far a piece of work is."""

    done: int
    total: int


class Done(NamedTuple, Generic[Result]):
    """What a piece of work has come to."""

    result: Result


def unwatched(done: int, total: int) -> None:
    """A `Report` for work that nobody watches and nobody stops."""


def in_steps(work: Callable[[Report], Result]) -> Iterator[Progress | Done[Result]]:
    """Do work in a thread of its own; yield how far it is every now and then, at last its result.

    Closing the generator makes the next report raise `Stopped`, so the work ends there. What the
    work raises is raised here.

    >>> list(in_steps(lambda report: report(1, 2) or "mended"))[-1]
    Done(result='mended')
    """
    stop, news = threading.Event(), SimpleQueue[Done[Result] | BaseException]()
    progress = Progress(0, 0)

    def report(done: int, total: int) -> None:
        nonlocal progress
        progress = Progress(done, total)
        if stop.is_set():
            raise Stopped

    def run() -> None:
        try:
            news.put(Done(work(report)))
        except BaseException as error:
            news.put(error)

    # A daemon: Ctrl-C does not wait for the last step.
    threading.Thread(target=run, name=THREAD, daemon=True).start()
    try:
        while True:
            try:
                outcome = news.get(timeout=BEAT)
            except Empty:
                yield progress
                continue
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome
            return
    finally:
        stop.set()
