"""Figure 4: text is generated, and a badly typed sentence is repaired.

The paper shows a sentence that its text8 model of rate 0.6 generated over 32 steps, and what five
draws from x_10 make of "thisn sentsnetne wasstype vssry babdly", by this model and by the in-place
one. Here: the first sample, and five draws, of the models of Table 2 (first seed) at the scale
asked for; at scale `laptop` of the models that come with the package. Where T is not 32, x_10
becomes the x_t as far along. At scale `tiny` the models are not good for anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from indel.drawing.letter_rows import (
    Letter,
    LetterRow,
    Look,
    generation_rows,
    html_page,
    repair_row,
    rows_as_text,
)
from indel.drawing.terminal import step_name
from indel.experiments import text8_table
from indel.experiments.figure_models import shown_model
from indel.experiments.files import write_figure, write_text
from indel.experiments.paper_numbers import SENTENCE, rate_name
from indel.experiments.requests import Request
from indel.randomness import RowSeeds, seeds_for
from indel.sampling.generation import generate
from indel.text_repair.paper_way import paper_trajectories

if TYPE_CHECKING:
    from indel.model import Denoiser

RATE = 0.6
BUNDLED = {RATE: "text8", 0.0: "in-place"}
DRAWS = 5
NOTE = "grey: not as in $x_0$   ×: DEL, or taken out   +: INS   blue: put in   violet: changed"
_PAPER_STRENGTH, _PAPER_STEPS = 10, 32
_ROWS = 13
_BEND = 1.6

Sections = list[tuple[str, list[LetterRow]]]


def reproduce_figure4(request: Request) -> None:
    """Generate and repair; written as text, as HTML and as a picture.

    Paper: Fig. 4, App. C.3
    """
    from indel.drawing.letter_pictures import draw_sections

    runs = text8_table.planned_runs(replace(request, rates=tuple(BUNDLED), seeds=1))
    shown = {
        rate: shown_model(request, next(run for run in runs if run.rate == rate), name)
        for rate, name in BUNDLED.items()
    }
    strength = scaled_strength(shown[RATE].denoiser.schedule.num_steps)
    sections: Sections = [
        (f"Generation, {rate_name(RATE)}, to be read upwards", generated(shown[RATE].denoiser))
    ]
    sections += [
        (
            f"Repair, {rate_name(rate)}: {DRAWS} draws from {step_name(strength)}",
            repaired(model.denoiser, strength),
        )
        for rate, model in shown.items()
    ]
    config = {
        "figure": "figure4",
        "scale": request.scale,
        "models": {rate_name(rate): model.origin for rate, model in shown.items()},
        "steps": shown[RATE].denoiser.schedule.num_steps,
        "strength": strength,
        "sentence": SENTENCE,
    }
    stem = request.folder / "figure4"
    write_text(stem.with_suffix(".txt"), as_text(sections))
    write_text(stem.with_suffix(".html"), html_page("Text generation and repair", sections))
    write_figure(draw_sections(sections, NOTE), stem, config)


def scaled_strength(num_steps: int) -> int:
    """The paper's x_10 of 32 for another number of steps.

    >>> scaled_strength(32), scaled_strength(10)
    (10, 3)
    """
    return max(1, round(_PAPER_STRENGTH * num_steps / _PAPER_STEPS))


def generated(denoiser: Denoiser) -> list[LetterRow]:
    """x_0 at the top to x_T at the bottom, with more of the early steps, where the text settles."""
    noise = RowSeeds(seeds_for(0, "figure 4", 0, 1))
    samples = generate(denoiser, 1, generator=noise, keep_trajectories=True)
    assert samples.trajectories is not None
    last = denoiser.schedule.num_steps
    times = {round(last * (number / _ROWS) ** _BEND) for number in range(_ROWS + 1)}
    return generation_rows(samples.trajectories[0], denoiser.vocabulary, sorted(times))[::-1]


def repaired(denoiser: Denoiser, strength: int) -> list[LetterRow]:
    """The sentence, and below it what each draw makes of it."""
    typed = LetterRow("typed", tuple(Letter(sign, Look.SETTLED) for sign in SENTENCE))
    draws = paper_trajectories(denoiser, SENTENCE, strength=strength, draws=DRAWS)
    rows = (repair_row(draw, denoiser.vocabulary, len(SENTENCE)) for draw in draws)
    return [typed, *(row._replace(name=str(number)) for number, row in enumerate(rows, start=1))]


def as_text(sections: Sections) -> str:
    """Headings and rows; in a repaired sentence nothing marks what was taken out."""
    (heading, rows), *repairs = sections
    parts = [f"{heading}\n{rows_as_text(rows)}"]
    for heading, rows in repairs:
        parts.append(f"{heading}\n{rows_as_text([_without_marks(row) for row in rows])}")
    return "\n".join(parts)


def _without_marks(row: LetterRow) -> LetterRow:
    return row._replace(
        letters=tuple(each for each in row.letters if each.look is not Look.DELETED)
    )
