"""Watch: how the model takes noise away, step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from indel.batch import Batch
from indel.model import Denoiser
from indel.randomness import RowSeeds, seeds_for
from indel.sampling.generation import Samples, denoise_from, generate
from indel.sampling.trajectories import Trajectory
from indel.web import html, request_limits
from indel.web.events import Controls, publish, seed_field
from indel.web.grids import Grid, Look, letter_look, number_look
from indel.web.jobs import Report, unwatched
from indel.web.models import Models
from indel.web.players import downloads, player
from indel.web.request_limits import LIMITS, SEEDS

LOOK = (
    "See a text come out of nothing: letters arrive where a + has opened a place, change, and go, "
    "until words can be read."
)
EXAMPLES = {
    "a text out of nothing": ("text8", ""),
    "a badly typed sentence": ("text8", "thisn sentsnetne wasstype vssry babdly"),
    "numbers out of nothing": ("arithmetic", ""),
}
Reader = Callable[[str, object, int], list[int]]
"""Makes tokens of what was typed: from a name for messages, the input, and the most tokens."""


@dataclass(frozen=True)
class Watched:
    """A model, how its tokens look, and how they are typed."""

    denoiser: Denoiser
    look: Look
    read: Reader


@dataclass(frozen=True)
class WatchTab:
    """What the tab does, and how it looks."""

    models: Models

    @property
    def choices(self) -> dict[str, Watched]:
        """By the names that the page and the API give them."""
        numbers = self.models.arithmetic
        return {
            "text8": _of_letters(self.models.text8),
            "in-place": _of_letters(self.models.in_place),
            "arithmetic": Watched(
                numbers,
                number_look(numbers.vocabulary),
                lambda name, value, most: request_limits.numbers(
                    name, value, numbers.vocabulary.size, most
                ),
            ),
        }

    def watch(
        self, model: str = "text8", start: str = "", t: int = 10, seed: int = 0
    ) -> dict[str, Any]:
        """The states from x_t to x_0: of `start` as x_t, or of nothing but a length as x_T.

        Tokens with the same identity are one token at different times.
        """
        watched = self._chosen(model)
        trajectory = self._draw(unwatched, watched, start, t, seed)
        symbol = watched.denoiser.vocabulary.symbol
        return {
            "times": trajectory.times,
            "tokens": [[symbol(token) for token in state] for state in trajectory.states],
            "identities": trajectory.identities,
            "result": watched.look.text(trajectory.states[-1]),
        }

    def build(self, *, example: bool) -> None:
        """The contents of the tab, with the result of an example if asked for."""
        gr.HTML(html.look(LOOK))
        names = [
            ("Text", "text8"),
            ("Text, in-place model", "in-place"),
            ("Numbers", "arithmetic"),
        ]
        model = gr.Radio(names, value="text8", label="What is made")
        start = gr.Textbox(
            label="Start from", placeholder="nothing", lines=1, elem_id="watch-start"
        )
        gr.Markdown(
            "Leave it empty to start from nothing but a length, *x*<sub>T</sub>. Or type what is "
            f"taken to be *x*<sub>t</sub>: up to {LIMITS.sequence_letters} letters, or numbers "
            "with spaces between."
        )
        with gr.Accordion("Settings", open=False):
            steps = max(each.denoiser.schedule.num_steps for each in self.choices.values())
            t = gr.Slider(
                1,
                steps,
                min(10, steps),
                step=1,
                label="t",
                info="How noisy what you type is taken to be.",
            )
            seed = seed_field()
        controls = Controls.make(EXAMPLES)
        first = self._work(unwatched, "text8", "", 1, 0) if example else ("", "")
        shown = gr.HTML(first[0], elem_id="watch-player")
        files = gr.HTML(first[1], elem_id="watch-files")
        controls.connect(
            self._work,
            inputs=[model, start, t],
            seed=seed,
            outputs=[shown, files],
            also=[start],
        )
        publish(self.watch)

    def _work(
        self, report: Report, model: object, start: object, t: object, seed: object
    ) -> tuple[str, str]:
        watched = self._chosen(model)
        grid = Grid.backwards(self._draw(report, watched, start, t, seed), watched.look)
        return player(grid, "Denoising, step by step"), downloads(grid, "denoising")

    def _chosen(self, model: object) -> Watched:
        if not isinstance(model, str) or model not in self.choices:
            raise ValueError(f"model must be one of {', '.join(self.choices)}, got {model!r:.40}")
        return self.choices[model]

    def _draw(
        self, report: Report, watched: Watched, start: object, t: object, seed: object
    ) -> Trajectory:
        denoiser = watched.denoiser
        last = denoiser.schedule.num_steps
        number = request_limits.whole("seed", seed, 0, SEEDS)
        noise = RowSeeds(seeds_for(number, "watch", 0, 1))
        total = last

        def callback(time: int, x_t: Batch) -> None:
            report(total - time, total)

        if isinstance(start, str) and not start.strip():
            samples = generate(
                denoiser, 1, generator=noise, callback=callback, keep_trajectories=True
            )
        else:
            total = request_limits.whole("t", t, 1, last)
            most = min(LIMITS.sequence_letters, denoiser.config.max_length)
            x_t = Batch.from_lists([watched.read("the start", start, most)])
            samples = denoise_from(
                denoiser, x_t, total, generator=noise, callback=callback, keep_trajectories=True
            )
        return _only(samples)


def _only(samples: Samples) -> Trajectory:
    assert samples.trajectories is not None
    return samples.trajectories[0]


def _of_letters(denoiser: Denoiser) -> Watched:
    vocabulary = denoiser.vocabulary

    def read(name: str, value: object, most: int) -> list[int]:
        return vocabulary.encode(request_limits.letters(name, value, most))

    return Watched(denoiser, letter_look(vocabulary), read)
