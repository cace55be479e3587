from __future__ import annotations

import threading

import pytest

from indel.web.jobs import THREAD, Done, Progress, Report, Stopped, in_steps


def test_progress_then_result() -> None:
    go_on = threading.Event()

    def work(report: Report) -> str:
        report(3, 7)
        go_on.wait()
        return "done"

    news = in_steps(work)
    assert any(next(news) == Progress(3, 7) for _ in range(50))
    go_on.set()
    assert list(news)[-1] == Done("done")


def test_closing_stops_the_work_at_its_next_report() -> None:
    stopped, turns = threading.Event(), []

    def work(report: Report) -> None:
        try:
            while True:
                turns.append(1)
                report(len(turns), 0)
                threading.Event().wait(0.005)
        except Stopped:
            stopped.set()
            raise

    news = in_steps(work)
    next(news)
    news.close()
    assert stopped.wait(20)
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(20)
            assert not thread.is_alive()


def test_what_the_work_raises_is_raised_here() -> None:
    def work(report: Report) -> None:
        raise ValueError("too long")

    with pytest.raises(ValueError, match="too long"):
        list(in_steps(work))
