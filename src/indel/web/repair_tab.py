"""Repair: badly typed text in, mended text out, with what the draws say about each edit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import gradio as gr

from indel.model import Denoiser
from indel.text_repair import defaults
from indel.text_repair.repairer import Repairer
from indel.text_repair.results import Repair
from indel.web import html, request_limits
from indel.web.events import Controls, publish, seed_field
from indel.web.jobs import Report, unwatched
from indel.web.models import Models
from indel.web.request_limits import LIMITS, SEEDS

EXAMPLE = "thisn sentsnetne wasstype vssry babdly"
LOOK = (
    "Type or paste text. Point at a marked word to see how sure the model is of it, and what else "
    "the word might be."
)
EXAMPLES = {
    "badly typed": (EXAMPLE,),
    "letters missing": ("The wether in the nothern montains is oftn cold and wet.",),
    "nothing wrong": ("The museum was opened to the public in the summer of 1923.",),
}
SHOWN_ALTERNATIVES = 3
# Small, so that a run is soon at a point where it can be stopped.
BATCH_SIZE = 8


@dataclass(frozen=True)
class RepairTab:
    """What the tab does, and how it looks."""

    models: Models

    def repair(
        self,
        text: str,
        strength: int = defaults.STRENGTH,
        draws: int = defaults.DRAWS,
        in_place: bool = False,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Mend a text: the best answer, its corrections, doubts and alternatives."""
        model = self.models.of_text(in_place=request_limits.flag("in_place", in_place))
        return asdict(self._repair(unwatched, model, text, strength, draws, seed))

    def build(self, *, example: bool) -> None:
        """The contents of the tab, with the result of an example if asked for."""
        gr.HTML(html.look(LOOK))
        text = gr.Textbox(
            EXAMPLE,
            label=f"Text, up to {LIMITS.repair_letters:,} characters",
            lines=4,
            elem_id="repair-text",
        )
        with gr.Accordion("Settings", open=False):
            last = min(
                self.models.text8.schedule.num_steps, self.models.in_place.schedule.num_steps
            )
            strength = gr.Slider(
                1,
                last,
                defaults.STRENGTH,
                step=1,
                label="Strength",
                info="The step that the text is taken to be at: the higher, the more is changed.",
            )
            draws = gr.Slider(
                1,
                LIMITS.repair_draws,
                defaults.DRAWS,
                step=1,
                label="Draws",
                info="So many repairs are drawn, each a vote on how to write each word.",
            )
            compare = gr.Checkbox(True, label="Show the in-place model beside it")
            seed = seed_field()
        controls = Controls.make(EXAMPLES)
        shown, mended = self._example() if example else ("", "")
        answer = gr.HTML(shown, elem_id="repair-answer")
        plain = gr.Textbox(
            mended,
            label="Mended text",
            lines=3,
            interactive=False,
            buttons=["copy"],
            elem_id="repair-plain",
        )
        controls.connect(
            self._work,
            inputs=[text, strength, draws, compare],
            seed=seed,
            outputs=[answer, plain],
        )
        publish(self.repair)

    def _example(self) -> tuple[str, str]:
        return self._work(unwatched, EXAMPLE, defaults.STRENGTH, defaults.DRAWS, True, 0)

    def _work(
        self,
        report: Report,
        text: object,
        strength: object,
        draws: object,
        compare: bool,
        seed: object,
    ) -> tuple[str, str]:
        best = self._repair(report, self.models.text8, text, strength, draws, seed)
        sheets = [_sheet("Insert and delete", best)]
        if compare:
            other = self._repair(report, self.models.in_place, text, strength, draws, seed)
            sheets.append(_sheet("In place: letters can only be replaced", other))
        return html.sheets(sheets), best.text

    def _repair(
        self,
        report: Report,
        model: Denoiser,
        text: object,
        strength: object,
        draws: object,
        seed: object,
    ) -> Repair:
        checked = request_limits.text("the text", text, LIMITS.repair_letters)
        if not checked.strip():
            raise ValueError("the text is empty; type or paste some words")
        repairer = Repairer(
            model,
            strength=request_limits.whole("strength", strength, 1, model.schedule.num_steps),
            draws=request_limits.whole("draws", draws, 1, LIMITS.repair_draws),
            seed=request_limits.whole("seed", seed, 0, SEEDS),
            batch_size=BATCH_SIZE,
            words=self.models.words,
        )
        # A text that is shorter than a window is filled up.
        work = max(len(checked), LIMITS.sequence_letters) * repairer.draws * repairer.strength
        if work > LIMITS.repair_work:
            raise ValueError(
                f"letters × draws × strength is {work:,} and may be {LIMITS.repair_work:,}: "
                "shorten the text, or lower draws or strength"
            )
        report(0, 0)
        return repairer([checked], progress=report)[0]


def _sheet(name: str, repair: Repair) -> str:
    others = [
        (html.shown(choice.text), html.shown(html.percent(choice.probability)))
        for choice in repair.alternatives[:SHOWN_ALTERNATIVES]
    ]
    changes = f"corrections: {len(repair.corrections)}, doubts: {len(repair.doubts)}"
    more = f"<h3>Or else</h3>{html.items(others)}" if others else ""
    return (
        f'<section class="paper"><h3>{name}</h3>{html.repaired(repair)}'
        f"{html.note(changes)}{more}</section>"
    )
