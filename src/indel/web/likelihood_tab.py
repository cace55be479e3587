"""Likelihood: how many bits each character costs under each model, by step and by part."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import gradio as gr

from indel.batch import Batch
from indel.bound.estimates import BoundEstimate
from indel.bound.likelihood import evaluate
from indel.model import Denoiser
from indel.web import html, request_limits
from indel.web.charts import bar_chart
from indel.web.events import Controls, publish, seed_field
from indel.web.jobs import Report, unwatched
from indel.web.models import Models
from indel.web.request_limits import LIMITS, SEEDS

EXAMPLE = (
    "the history of the city begins in the eleventh century when a small market town grew up "
    "around the castle"
)
LOOK = (
    "The fewer bits per character, the likelier the model finds the text: compare the two models, "
    "and a sentence with its own words shuffled."
)
EXAMPLES = {
    "like the training text": (EXAMPLE,),
    "the same words, shuffled": (
        "castle the grew small around begins up the history of city town the when a market in "
        "eleventh century the",
    ),
    "random letters": ("xq vzk jwpf bhd qqz mxr tlkp wvj zzf qhx",),
}
UNIT = "bits per character"
BY_STEP = (
    "Each bar is how far the model’s guess of x<sub>t−1</sub> from x<sub>t</sub> is from the "
    "truth, KL(q(x<sub>t−1</sub> | x<sub>t</sub>, x<sub>0</sub>) ‖ p<sub>θ</sub>); with ℓ, that of "
    "the length of x<sub>T</sub>, they add up to the bound. None is negative in the mean; a bar "
    "just below 0 is the noise of few chains."
)
PARTS = {
    "tokens": "to say which letters",
    "deletions": "to say where letters are missing",
    "forward": "given back: what the noise itself is known to do",
    "limit": "for keeping to the longest length",
    "length": "to say how long the noise is",
}


@dataclass(frozen=True)
class Bits:
    """A bound in bits per character, with what it is made of."""

    total: float
    error: float
    """The standard error over chains and pieces of text; NaN for one alone."""
    by_part: dict[str, float]
    by_step: list[float]
    """KL(q(x_{t−1}|x_t,x_0) ‖ p_θ(x_{t−1}|x_t)) at index t − 1."""
    letters: str
    """The text as the model sees it."""

    @classmethod
    def of(cls, estimate: BoundEstimate, letters: str) -> Bits:
        """From nats per sequence to bits per character."""
        unit = 1.0 / (math.log(2.0) * float(estimate.lengths.double().mean()))
        total = estimate.bits_per_token
        return cls(
            total.mean,
            total.standard_error,
            {name: part.mean * unit for name, part in estimate.by_part.items() if name in PARTS},
            [step.mean * unit for step in estimate.by_time],
            letters,
        )


@dataclass(frozen=True)
class LikelihoodTab:
    """What the tab does, and how it looks."""

    models: Models

    def likelihood(
        self, text: str, in_place: bool = False, chains: int = 4, seed: int = 0
    ) -> dict[str, Any]:
        """An upper bound on −log₂ p_θ(text) in bits per character, its parts and its steps."""
        model = self.models.of_text(in_place=request_limits.flag("in_place", in_place))
        bits = self._bits(unwatched, model, text, chains, seed)
        return {
            "bits_per_character": bits.total,
            "standard_error": None if math.isnan(bits.error) else bits.error,
            "by_part": bits.by_part,
            "by_step": bits.by_step,
            "letters": bits.letters,
        }

    def build(self, *, example: bool) -> None:
        """The contents of the tab, with the result of an example if asked for."""
        gr.HTML(html.look(LOOK))
        text = gr.Textbox(
            EXAMPLE,
            label=f"Text, up to {LIMITS.scored_letters} letters a–z",
            lines=4,
            elem_id="likelihood-text",
        )
        with gr.Accordion("Settings", open=False):
            chains = gr.Slider(
                1,
                LIMITS.chains,
                4,
                step=1,
                label="Chains",
                info="The bound is a mean over so many random chains: more of them, less noise.",
            )
            seed = seed_field()
        controls = Controls.make(EXAMPLES)
        (first,) = self._work(unwatched, EXAMPLE, 2, 0) if example else ("",)
        answer = gr.HTML(first, elem_id="likelihood-answer")
        controls.connect(self._work, inputs=[text, chains], seed=seed, outputs=[answer])
        publish(self.likelihood)

    def _work(self, report: Report, text: object, chains: object, seed: object) -> tuple[str]:
        sheets = [
            _sheet(name, self._bits(report, model, text, chains, seed))
            for name, model in (
                ("Insert and delete", self.models.text8),
                ("In place", self.models.in_place),
            )
        ]
        return (html.sheets(sheets),)

    def _bits(
        self, report: Report, model: Denoiser, text: object, chains: object, seed: object
    ) -> Bits:
        letters = request_limits.letters("the text", text, LIMITS.scored_letters)
        count = request_limits.whole("chains", chains, 1, LIMITS.chains)
        width = min(LIMITS.sequence_letters, model.config.max_length)
        # Words longer than a piece are cut; the space between two pieces is scored with neither.
        pieces = [model.vocabulary.encode(piece) for piece in wrap(letters, width)]

        def batches() -> Iterator[Batch]:
            for number in range(count * len(pieces)):
                report(number, count * len(pieces))
                yield Batch.from_lists([pieces[number % len(pieces)]])

        estimate = evaluate(
            model,
            batches(),
            seed=request_limits.whole("seed", seed, 0, SEEDS),
            progress=False,
        )
        return Bits.of(estimate, letters)


def _sheet(name: str, bits: Bits) -> str:
    error = "" if math.isnan(bits.error) else f" ± {bits.error:.2f}"
    parts = html.items((words, f"{bits.by_part[part]:.2f}") for part, words in PARTS.items())
    length = bits.by_part["length"]
    numbers = html.items(
        [(f"t = {t}", f"{bit:.3f}") for t, bit in enumerate(bits.by_step, start=1)]
        + [("length", f"{length:.3f}")]
    )
    return (
        f'<section class="paper"><h3>{name}</h3>'
        f'<p class="total">at most <b>{bits.total:.2f}</b>{error} bits per character</p>'
        f"<h3>By step</h3>{bar_chart(bits.by_step, length, unit=UNIT)}"
        f'<p class="quiet">{BY_STEP}</p>'
        f"<details><summary>The numbers</summary>{numbers}</details>"
        f'<h3>By part</h3>{parts}<p class="quiet">Scored as: {html.shown(bits.letters)}</p>'
        "</section>"
    )
