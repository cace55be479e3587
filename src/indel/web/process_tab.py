"""Process: how noise takes a sentence apart, the schedule of the noise, and the edits summed up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr
import torch

from indel.batch import Batch
from indel.drawing.terminal import edit_columns, step_name
from indel.process import Edits, Schedule, corrupt_chain, summarize
from indel.sampling.trajectories import Trajectory
from indel.vocabularies import CharacterVocabulary
from indel.web import html, request_limits
from indel.web.charts import line_chart
from indel.web.events import Controls, in_browser, publish, seed_field
from indel.web.grids import Grid, letter_look
from indel.web.jobs import Report, unwatched
from indel.web.players import downloads, player
from indel.web.request_limits import LIMITS, SEEDS
from indel.web.summaries import counted, summary_svg

EXAMPLE = "this sentence was typed very badly"
LOOK = (
    "See noise take a sentence apart: letters are deleted, inserted and replaced, until nothing "
    "but a length is left. The model learns to go the other way."
)
EXAMPLES = {
    "a sentence": (EXAMPLE, 0.6),
    "in place: nothing moves": (EXAMPLE, 0.0),
    "much comes and goes": ("the quick brown fox jumps over the lazy dog", 1.0),
}
VOCABULARY = CharacterVocabulary.text8()


@dataclass(frozen=True)
class Chain:
    """A forward chain of one sentence and the edits until one of its steps."""

    schedule: Schedule
    states: list[Batch]
    at: int
    edits: Edits

    @property
    def trajectory(self) -> Trajectory:
        """The same with tokens that can be followed; backwards, as all trajectories."""
        states = [state.to_lists()[0] for state in reversed(self.states)]
        return Trajectory.of(range(len(states) - 1, -1, -1), states, vocab_size=VOCABULARY.size)


class ProcessTab:
    """What the tab does, and how it looks."""

    def process(
        self, text: str, rate: float = 0.6, steps: int = 10, at: int = 5, seed: int = 0
    ) -> dict[str, Any]:
        """A chain x_0, …, x_T of the forward process, its schedule, and the edits until step `at`.

        `source` has for each token of x_at its place in x_0, or −1 if it was inserted; `deletions`
        has how many tokens were lost before each token of x_at and before the end.
        """
        chain = _draw(text, rate, steps, at, seed)
        levels = chain.schedule.describe()
        return {
            "tokens": [
                [VOCABULARY.symbol(token) for token in state.to_lists()[0]]
                for state in chain.states
            ],
            "source": chain.edits.source[0].tolist(),
            "deletions": chain.edits.deletions[0].tolist(),
            "insert": [level.insert for level in levels],
            "delete": [level.delete for level in levels],
            "unchanged": [level.unchanged for level in levels],
        }

    def build(self, *, example: bool) -> None:
        """The contents of the tab, with the result of an example if asked for."""
        gr.HTML(html.look(LOOK))
        text = gr.Textbox(
            EXAMPLE,
            label=f"Sentence, up to {LIMITS.sequence_letters} letters a–z",
            lines=1,
            elem_id="process-text",
        )
        with gr.Row():
            rate = gr.Slider(0, 1, 0.6, step=0.05, label="Rate", info="0 is the in-place process.")
            steps = gr.Slider(2, LIMITS.steps, 10, step=1, label="T", info="The number of steps.")
            at = gr.Slider(
                0, 10, 5, step=1, label="t", info="The edits are summed up until this step."
            )
        shorter = "(T, t) => ({__type__: 'update', maximum: T, value: Math.min(T, t)})"
        in_browser(steps.change, shorter, [steps, at], [at])
        with gr.Accordion("Settings", open=False):
            seed = seed_field()
        controls = Controls.make(EXAMPLES)
        first = self._work(unwatched, EXAMPLE, 0.6, 10, 5, 0) if example else ("", "", "")
        shown = gr.HTML(first[0], elem_id="process-player")
        files = gr.HTML(first[1])
        pictures = gr.HTML(first[2], elem_id="process-pictures")
        controls.connect(
            self._work,
            inputs=[text, rate, steps, at],
            seed=seed,
            outputs=[shown, files, pictures],
            also=[text],
        )
        publish(self.process)

    def _work(
        self, report: Report, text: object, rate: object, steps: object, at: object, seed: object
    ) -> tuple[str, str, str]:
        chain = _draw(text, rate, steps, at, seed)
        report(1, 3)
        grid = Grid.forwards(chain.trajectory, letter_look(VOCABULARY))
        files = downloads(grid, "forward process")
        report(2, 3)
        x_t = chain.states[chain.at]
        name = f"The edits from {step_name(0)} to {step_name(chain.at)}"
        columns = edit_columns(chain.states[0], x_t, chain.edits, VOCABULARY)
        pictures = _sheet(name, summary_svg(columns, t=chain.at) + html.note(counted(columns)))
        pictures += _schedule_sheet(chain.schedule)
        return player(grid, "The forward process, step by step"), files, pictures


def _draw(text: object, rate: object, steps: object, at: object, seed: object) -> Chain:
    letters = request_limits.letters("the sentence", text, LIMITS.sequence_letters)
    last = request_limits.whole("T", steps, 2, LIMITS.steps)
    schedule = Schedule.paper(VOCABULARY.size, last, request_limits.share("the rate", rate))
    chosen = request_limits.whole("t", at, 0, last)
    generator = torch.Generator().manual_seed(request_limits.whole("seed", seed, 0, SEEDS))
    x_0 = Batch.from_lists([VOCABULARY.encode(letters)])
    states = corrupt_chain(schedule, x_0, generator=generator)
    return Chain(schedule, states, chosen, summarize(states[: chosen + 1], VOCABULARY.size))


def _schedule_sheet(schedule: Schedule) -> str:
    """What a step does to a token, and what all steps until t have left of x_0.

    Paper: Fig. 7
    """
    levels = schedule.describe()
    times = [level.t for level in levels]
    step = {
        "kept": [level.copy for level in levels],
        "replaced": [level.replace for level in levels],
        "deleted": [level.delete for level in levels],
        "inserted before it": [level.insert for level in levels],
    }
    left = {
        "never deleted": [1.0, *(level.survived for level in levels)],
        "and never replaced": [1.0, *(level.unchanged for level in levels)],
    }
    charts = [
        f'<section><p class="quiet">{name}</p>{chart}</section>'
        for name, chart in (
            ("A token in step t is …", line_chart(times, step, unit="probability")),
            ("A token of x₀ after step t is …", line_chart([0, *times], left, unit="probability")),
        )
    ]
    return f'<section class="paper"><h3>The noise schedule</h3>{html.sheets(charts)}</section>'


def _sheet(name: str, drawing: str) -> str:
    return (
        f'<section class="paper"><h3>{name}</h3><div class="scrolled" tabindex="0" '
        f'role="group" aria-label="{name}">{drawing}</div></section>'
    )
