"""From work on a model to an event of the page, and to an endpoint of the API."""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component
from gradio.events import api

from indel.web import html, request_limits
from indel.web.jobs import Progress, in_steps
from indel.web.quiet import log_error
from indel.web.request_limits import LIMITS, SEEDS

# One group for all that computes: page and API together never run more than this at once.
GROUP = "computing"
UNEXPECTED = "something went wrong on the server; its log says where"

Examples = Mapping[str, Sequence[str | int | float]]
"""Values for the first inputs of a tab, by what a button for them says."""


@dataclass(frozen=True)
class Controls:
    """Examples to press, Run and Cancel, and the line that says how far the work is."""

    examples: dict[gr.Button, str]
    """Each with the JavaScript that fills its values in."""
    run: gr.Button
    cancel: gr.Button
    status: gr.HTML

    @classmethod
    def make(cls, examples: Examples) -> Controls:
        """Put them where the page is being built."""
        with gr.Row(elem_classes="examples"):
            gr.HTML('<p class="note">Try one of these:</p>', min_width=120)
            fill = {
                gr.Button(name, size="sm", min_width=60): f"() => {json.dumps(values)}"
                for name, values in examples.items()
            }
        with gr.Row():
            run = gr.Button("Run", variant="primary", min_width=120)
            cancel = gr.Button("Cancel", min_width=120, visible=False)
        return cls(fill, run, cancel, gr.HTML(html.note(""), elem_classes="status"))

    def connect(
        self,
        work: Callable[..., Sequence[Any]],
        *,
        inputs: Sequence[Component],
        seed: gr.Number,
        outputs: Sequence[Component],
        also: Sequence[gr.Textbox] = (),
    ) -> None:
        """Let Run, examples, and Enter in the text boxes `also`, do work(report, *inputs, seed)."""

        def event(given: object, *values: object) -> Iterator[list[Any]]:
            unchanged = [gr.skip()] * len(outputs)
            yield [html.bar(Progress(0, 0)), gr.Button(visible=True), *unchanged]
            try:
                number = chosen_seed(given)
                for news in in_steps(lambda report: work(report, *values, number)):
                    if isinstance(news, Progress):
                        yield [html.bar(news), gr.skip(), *unchanged]
                    else:
                        done = html.note(f"Done. The seed was {number}.")
                        yield [done, gr.Button(visible=False), *news.result]
            except Exception as error:
                yield [html.message(reason(error)), gr.Button(visible=False), *unchanged]

        settings: dict[str, Any] = {
            "fn": event,
            "inputs": [seed, *inputs],
            "outputs": [self.status, self.cancel, *outputs],
            "api_visibility": "private",
            # Shows the place in the queue until the first news.
            "show_progress": "minimal",
            "show_progress_on": self.status,
            "concurrency_limit": LIMITS.running,
            "concurrency_id": GROUP,
        }
        presses = [self.run.click, *(box.submit for box in also)]
        started = [gr.on(presses, trigger_mode="once", **settings)]
        for button, fill in self.examples.items():
            values = json.loads(fill.removeprefix("() => "))
            targets = list(inputs[: len(values)])
            filled = in_browser(
                button.click, fill if len(values) > 1 else f"{fill}[0]", [], targets
            )
            started.append(filled.then(**settings))
        # First the end of the run, then the word for it, or late news of the run would replace it.
        stopped = self.cancel.click(
            None, cancels=started, queue=False, api_visibility="private", show_progress="hidden"
        )
        answer = (
            f"() => [{json.dumps(html.note('Stopped.'))}, {{__type__: 'update', visible: false}}]"
        )
        in_browser(stopped.then, answer, [], [self.status, self.cancel])


def in_browser(
    trigger: Callable[..., Any], script: str, inputs: list[Component], outputs: list[Component]
) -> Any:
    """Let a script answer an event, without the server."""
    return trigger(
        None,
        inputs,
        outputs,
        js=script,
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
    log_error(error)
    return UNEXPECTED


def seed_field() -> gr.Number:
    """Where a tab asks for its seed."""
    return gr.Number(
        None,
        label="Seed",
        info="Leave it empty to draw anew with each run; the same seed gives the same result.",
        precision=0,
    )


def chosen_seed(given: object) -> int:
    """The seed that was given, or a random one."""
    return (
        secrets.randbelow(10**6) if given is None else request_limits.whole("seed", given, 0, SEEDS)
    )
