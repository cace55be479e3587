"""Fill: a text with gaps in, texts without out, and how many particles each was chosen from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from indel.randomness import RowSeeds, seeds_for
from indel.sampling.particles import HeldSamples, sample_held
from indel.sampling.patterns import Pattern
from indel.web import html, request_limits
from indel.web.events import Controls, publish, seed_field
from indel.web.jobs import Report, unwatched
from indel.web.models import Models
from indel.web.request_limits import LIMITS, SEEDS

EXAMPLE = "{} the capital of {3,9} is paris {}"
LOOK = (
    "<b>{}</b> is a gap of any length, <b>{3}</b> one of 3 letters, <b>{2,8}</b> one of 2 to 8; a "
    "text without a gap is continued. What the model writes is marked, all else stays as it is."
)
EXAMPLES = {
    "a gap": (EXAMPLE,),
    "a beginning": ("in the year {}",),
    "two gaps of six letters": ("{} the {6} of the {6} was built in one nine two three {}",),
}


@dataclass(frozen=True)
class FillTab:
    """What the tab does, and how it looks."""

    models: Models

    def fill(
        self, text: str, samples: int = 2, particles: int = 4, seed: int = 0
    ) -> dict[str, Any]:
        """Texts in which the gaps of the text are filled, and what is in each gap."""
        found = self._filled(unwatched, text, samples, particles, seed)
        return {
            "texts": found.texts,
            "gaps": [list(gaps) for gaps in found.gaps],
            "effective_particles": found.effective.T.tolist(),
        }

    def build(self, *, example: bool) -> None:
        """The contents of the tab, with the result of an example if asked for."""
        gr.HTML(html.look(LOOK))
        text = gr.Textbox(
            EXAMPLE,
            label=f"Text with gaps, up to {LIMITS.sequence_letters} characters",
            lines=2,
            elem_id="fill-text",
        )
        with gr.Accordion("Settings", open=False):
            samples = gr.Slider(1, LIMITS.fill_samples, 2, step=1, label="Samples")
            particles = gr.Slider(
                1,
                LIMITS.fill_particles,
                4,
                step=1,
                label="Particles",
                info="Each sample is chosen from so many: they look ahead to what must follow.",
            )
            seed = seed_field()
        controls = Controls.make(EXAMPLES)
        (first,) = self._work(unwatched, EXAMPLE, 1, 2, 0) if example else ("",)
        answer = gr.HTML(first, elem_id="fill-answer")
        controls.connect(self._work, inputs=[text, samples, particles], seed=seed, outputs=[answer])
        publish(self.fill)

    def _work(
        self, report: Report, text: object, samples: object, particles: object, seed: object
    ) -> tuple[str]:
        found = self._filled(report, text, samples, particles, seed)
        papers = [
            f'<section class="paper">{_marked(found, row)}'
            f"{html.note(_particles(found, row))}</section>"
            for row in range(len(found.x))
        ]
        return (html.sheets(papers),)

    def _filled(
        self, report: Report, text: object, samples: object, particles: object, seed: object
    ) -> HeldSamples:
        model = self.models.text8
        given = request_limits.text("the text", text, LIMITS.sequence_letters).lower()
        pattern = Pattern.parse(given, model.vocabulary)
        if not any(gap is not None for gap in pattern.gaps):
            pattern = Pattern.parse(given + "{}", model.vocabulary)
        rows = request_limits.whole("samples", samples, 1, LIMITS.fill_samples)
        number = request_limits.whole("seed", seed, 0, SEEDS)
        last = model.schedule.num_steps
        return sample_held(
            model,
            pattern,
            rows,
            generator=RowSeeds(seeds_for(number, "infill", 0, rows)),
            particles=request_limits.whole("particles", particles, 1, LIMITS.fill_particles),
            watch=lambda t: report(last - t, last),
        )


def _marked(found: HeldSamples, row: int) -> str:
    """The text of a row, with what is in the gaps underlined."""
    pieces: list[str] = []
    tokens = found.x.to_lists()[row]
    for token, frozen in zip(tokens, found.frozen[row].tolist(), strict=False):
        letter = html.shown(found.vocabulary.text([token]))
        pieces.append(letter if frozen else f"<ins>{letter}</ins>")
    joined = "".join(pieces).replace("</ins><ins>", "").replace("</bdi><bdi>", "")
    return f'<div class="mended filled">{joined}</div>'


def _particles(found: HeldSamples, row: int) -> str:
    least = float(found.effective[:, row].min())
    times = int(found.resampled[:, row].sum())
    return f"effective particles: at least {least:.1f}; resampled {times} times"
