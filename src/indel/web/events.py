"""From work on a model to an event of the page, and to an endpoint of the API."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component
from gradio.events import api

from indel.web import html
from indel.web.jobs import Progress, in_steps
from indel.web.limits import LIMITS, SEEDS

# One group for all that computes: page and API together never run more than this at once.
GROUP = "computing"
UNEXPECTED = "something went wrong on the server; its log says where"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Controls:
    """The buttons Run and Cancel, and the line that says how far the work is."""

    run: gr.Button
    cancel: gr.Button
    status: gr.HTML

    @classmethod
    def make(cls) -> Controls:
        """Put them where the page is being built."""
        with gr.Row():
            run = gr.Button("Run", variant="primary", min_width=120)
            cancel = gr.Button("Cancel", min_width=120)
        return cls(run, cancel, gr.HTML(html.note(""), elem_classes="status"))

    def connect(
        self,
        work: Callable[..., Sequence[Any]],
        *,
        inputs: Sequence[Component],
        outputs: Sequence[Component],
        also: Sequence[gr.Textbox] = (),
    ) -> None:
        """Let Run, and Enter in the text boxes `also`, do work(report, *inputs)."""

        def event(*values: object) -> Iterator[list[Any]]:
            unchanged = [gr.skip()] * len(outputs)
            yield [html.bar(Progress(0, 0)), *unchanged]
            try:
                for news in in_steps(lambda report: work(report, *values)):
                    if isinstance(news, Progress):
                        yield [html.bar(news), *unchanged]
                    else:
                        yield [html.note("Done."), *news.result]
            except Exception as error:
                yield [html.message(reason(error)), *unchanged]

        started = gr.on(
            [self.run.click, *(box.submit for box in also)],
            event,
            list(inputs),
            [self.status, *outputs],
            api_visibility="private",
            # Shows the place in the queue until the first news.
            show_progress="minimal",
            show_progress_on=self.status,
            concurrency_limit=LIMITS.running,
            concurrency_id=GROUP,
            trigger_mode="once",
        )
        # First the end of the run, then the word for it, or late news of the run would replace it.
        self.cancel.click(
            None, cancels=[started], queue=False, api_visibility="private", show_progress="hidden"
        ).then(
            lambda: html.note("Stopped."),
            None,
            self.status,
            queue=False,
            api_visibility="private",
            show_progress="hidden",
        )


def publish(work: Callable[..., dict[str, Any]]) -> None:
    """Make a function an endpoint of the API: its parameters are fields of a JSON object."""

    @functools.wraps(work)
    def endpoint(*values: object, **named: object) -> dict[str, Any]:
        try:
            return work(*values, **named)
        except Exception as error:
            raise gr.Error(reason(error), print_exception=False) from None

    api(
        endpoint,
        api_name=work.__name__,
        concurrency_limit=LIMITS.running,
        concurrency_id=GROUP,
    )


def reason(error: Exception) -> str:
    """What the user is told; of anything that is not the user's mistake, only the log knows more.

    The log gets the kind and the place of an error, but not its message, which may quote the text.
    """
    if isinstance(error, ValueError):
        return str(error)
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else "nowhere"
    log.error("%s at %s", type(error).__name__, where)
    return UNEXPECTED


def seed_field() -> gr.Number:
    """Where a tab asks for its seed."""
    return gr.Number(0, label="Seed", precision=0, minimum=0, maximum=SEEDS)
