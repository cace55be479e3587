"""Molecules: make them, grow them from a scaffold, find relatives of one, mend a broken string."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from indel.model import Denoiser
from indel.molecules.chemistry import parsed
from indel.molecules.growing import grown_panel
from indel.molecules.lineage import changed_atoms
from indel.molecules.mending import mend
from indel.molecules.pictures import Panel, drawn
from indel.molecules.relatives import relatives
from indel.molecules.rewards import qed
from indel.randomness import RowSeeds, seeds_for
from indel.sampling.particles import sample_held
from indel.sampling.patterns import EVERYTHING, Pattern
from indel.sampling.renoising import mutate
from indel.sampling.rewards import Steering
from indel.web import html, request_limits
from indel.web.events import Controls, publish, seed_field
from indel.web.jobs import Report, unwatched
from indel.web.request_limits import LIMITS, SEEDS

EDITS = (1, 4)
SPARE = 2
"""So many times as many strings are drawn as are shown: not each of them is a molecule."""
STRENGTH = 10.0
LOOK = (
    "Nothing: molecules that the model makes up. A string with gaps <b>{}</b>: molecules that grow "
    "from it. A molecule: relatives of it, 1 to 4 edits away. A broken string: what it may have "
    "been. Two strings are drawn for each that is shown, and molecules come first. New atoms are "
    "blue, replaced ones purple."
)
EXAMPLES = {
    "make": ("",),
    "grow": ("c1ccc({})cc1{}",),
    "relatives": ("CC(=O)Oc1ccccc1C(=O)O",),
    "mend": ("CC(=O)Oc1ccccc1C(=OO",),
}


@dataclass(frozen=True)
class MoleculesTab:
    """What the tab does, and how it looks."""

    model: Denoiser

    def molecules(
        self, text: str = "", samples: int = 4, particles: int = 1, seed: int = 0
    ) -> dict[str, Any]:
        """Molecules for a pattern, a molecule or a broken string; with particles of large QED."""
        panels = self._panels(unwatched, text, samples, particles, seed)
        smiles = [panel.smiles for panel in panels]
        return {
            "smiles": smiles,
            "valid": [parsed(each) is not None for each in smiles],
            "qed": qed(smiles),
            "notes": [panel.caption for panel in panels],
        }

    def build(self, *, example: bool) -> None:
        """The contents of the tab, with the result of an example if asked for."""
        gr.HTML(html.look(LOOK))
        text = gr.Textbox(
            EXAMPLES["relatives"][0],
            label=f"SMILES, up to {LIMITS.molecule_letters} characters",
            elem_id="molecules-text",
        )
        with gr.Accordion("Settings", open=False):
            samples = gr.Slider(1, LIMITS.molecules, 4, step=1, label="Molecules")
            particles = gr.Slider(
                1,
                LIMITS.molecule_particles,
                1,
                step=1,
                label="Particles",
                info="More than one: what is made or grown is chosen by its QED among so many.",
            )
            seed = seed_field()
        controls = Controls.make(EXAMPLES)
        first = self._work(unwatched, EXAMPLES["relatives"][0], 2, 1, 0)[0] if example else ""
        answer = gr.HTML(first, elem_id="molecules-answer")
        controls.connect(
            self._work,
            inputs=[text, samples, particles],
            seed=seed,
            outputs=[answer],
            also=[text],
        )
        publish(self.molecules)

    def _work(
        self, report: Report, text: object, samples: object, particles: object, seed: object
    ) -> tuple[str]:
        panels = self._panels(report, text, samples, particles, seed)
        return (html.sheets(map(_paper, panels)),)

    def _panels(
        self, report: Report, text: object, samples: object, particles: object, seed: object
    ) -> list[Panel]:
        given = request_limits.text("the string", text, LIMITS.molecule_letters).strip()
        rows = request_limits.whole("molecules", samples, 1, LIMITS.molecules)
        many = request_limits.whole("particles", particles, 1, LIMITS.molecule_particles)
        number = request_limits.whole("seed", seed, 0, SEEDS)
        if not given or "{" in given:
            # With particles one string each is chosen already.
            drawn = rows * SPARE if many == 1 else rows
            return _molecules_first(self._grown(report, given, drawn, many, number))[:rows]
        if parsed(given) is None:
            return [self._mended(given, number)]
        return _molecules_first(self._relatives(given, rows * SPARE, number))[:rows]

    def _grown(
        self, report: Report, given: str, rows: int, particles: int, seed: int
    ) -> list[Panel]:
        pattern = Pattern.parse(given, self.model.vocabulary) if given else EVERYTHING
        last = self.model.schedule.num_steps
        found = sample_held(
            self.model,
            pattern,
            rows,
            generator=RowSeeds(seeds_for(seed, "infill", 0, rows)),
            particles=particles,
            steering=Steering(qed, STRENGTH) if particles > 1 else None,
            watch=lambda t: report(last - t, last),
        )
        return [grown_panel(found, row, mark=bool(given)) for row in range(len(found.x))]

    def _relatives(self, given: str, rows: int, seed: int) -> list[Panel]:
        found = mutate(
            self.model,
            self.model.vocabulary.encode(given),
            rows,
            edits=EDITS,
            generator=RowSeeds(seeds_for(seed, "mutate", 0, rows)),
        )
        shown = []
        for each in relatives(given, found.texts):
            new = changed_atoms(given, each.smiles)[1] if each.valid else []
            shown.append(Panel(each.smiles, str(each), new))
        return shown

    def _mended(self, given: str, seed: int) -> Panel:
        found = mend(self.model, given, draws=LIMITS.molecule_draws, seed=seed)
        if found.smiles is None:
            return Panel(given, "not mended")
        try:
            new = changed_atoms(given, found.smiles)[1]
        except ValueError:  # a string that is not made of tokens
            new = []
        edits = f"{found.votes} of {LIMITS.molecule_draws} draws, edits: {found.edits}"
        return Panel(found.smiles, edits, new)


def _molecules_first(panels: list[Panel]) -> list[Panel]:
    return sorted(panels, key=lambda panel: parsed(panel.smiles) is None)


def _paper(panel: Panel) -> str:
    return (
        f'<section class="paper">{drawn(panel)}<p class="mono">{html.shown(panel.smiles)}</p>'
        f"{html.note(panel.caption)}</section>"
    )
