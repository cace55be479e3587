"""Likelihood: how many bits a character costs under each model, by part and by step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import gradio as gr

from indel.batch import Batch
from indel.bound_estimates import BoundEstimate
from indel.likelihood import evaluate
from indel.model import Denoiser
from indel.plots.colours import DELETE, INSERT
from indel.web import html, limits
from indel.web.events import Controls, publish, seed_field
from indel.web.jobs import Report, unwatched
from indel.web.limits import LIMITS, SEEDS
from indel.web.models import Models

EXAMPLE = (
    "the history of the city begins in the eleventh century when a small market town grew up "
    "around the castle"
)
HEIGHT = 120
PARTS = {
    "tokens": "which letters",
    "deletions": "where letters are missing",
    "forward": "given back, as the noise is known",
    "limit": "the limit on the length",
    "length": "the length of the noise",
}


@dataclass(frozen=True)
class Bits:
    """A bound in bits a character, with what it is made of."""

    total: float
    error: float
    """The standard error over chains and pieces of text; NaN for one alone."""
    by_part: dict[str, float]
    by_step: list[float]
    """Of L_{t−1} at index t − 1."""
    letters: str
    """The text as the model sees it."""

    @classmethod
    def of(cls, estimate: BoundEstimate, letters: str) -> Bits:
        """From nats a sequence to bits a character."""
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
        """An upper bound on −log₂ p_θ(text) in bits a character, its parts and its steps."""
        model = self.models.of_text(in_place=limits.flag("in_place", in_place))
        bits = self._bits(unwatched, model, text, chains, seed)
        return {
            "bits_per_character": bits.total,
            "standard_error": None if math.isnan(bits.error) else bits.error,
            "by_part": bits.by_part,
            "by_step": bits.by_step,
            "letters": bits.letters,
        }

    def build(self) -> None:
        """The contents of the tab."""
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
        controls = Controls.make()
        answer = gr.HTML(elem_id="likelihood-answer")
        controls.connect(self._work, inputs=[text, chains, seed], outputs=[answer])
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
        letters = limits.letters("the text", text, LIMITS.scored_letters)
        count = limits.whole("chains", chains, 1, LIMITS.chains)
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
            seed=limits.whole("seed", seed, 0, SEEDS),
            progress=False,
        )
        return Bits.of(estimate, letters)


def _sheet(name: str, bits: Bits) -> str:
    error = "" if math.isnan(bits.error) else f" ± {bits.error:.2f}"
    parts = html.items((words, f"{bits.by_part[part]:.2f}") for part, words in PARTS.items())
    numbers = html.items((f"t = {t}", f"{bit:.3f}") for t, bit in enumerate(bits.by_step, start=1))
    return (
        f'<section class="paper"><h3>{name}</h3>'
        f'<p class="total">at most <b>{bits.total:.2f}</b>{error} bits a character</p>'
        f"{parts}<h3>By step, t = 1 … {len(bits.by_step)}</h3>"
        f"{_bars(bits.by_step)}<details><summary>The numbers</summary>{numbers}</details>"
        f"{html.note(f'Scored as: {bits.letters}')}</section>"
    )


def _bars(values: Sequence[float]) -> str:
    """One bar a step, in proportion; a step that gives bits back hangs below the line."""
    # What a model cannot say at all costs infinitely many bits, which no bar can show.
    values = [value if math.isfinite(value) else 0.0 for value in values]
    high, low = max(0.0, *values), min(0.0, *values)
    scale = HEIGHT / max(high - low, 1e-9)
    zero = high * scale
    bars = "".join(
        f'<rect x="{10 * t}" y="{zero - max(value, 0.0) * scale:.1f}" width="9" '
        f'height="{abs(value) * scale:.1f}" fill="{INSERT if value >= 0 else DELETE}">'
        f"<title>t = {t + 1}: {value:.3f} bits</title></rect>"
        for t, value in enumerate(values)
    )
    width = 10 * len(values)
    return (
        f'<svg class="bars" viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="bits of each step, from {low:.3f} to {high:.3f}">{bars}'
        f'<path d="M0 {zero:.1f}H{width}" stroke="#000000" stroke-width="0.5"/></svg>'
    )
