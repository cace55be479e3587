"""Molecules that grew from a pattern, as pictures."""

from __future__ import annotations

from collections.abc import Sequence

from indel.drawing.terminal import Fate
from indel.molecules.chemistry import parsed
from indel.molecules.lineage import atom_fates
from indel.molecules.pictures import Panel
from indel.molecules.rewards import qed
from indel.sampling.particles import HeldSamples
from indel.vocabularies.smiles import syntax_problem


def grown_panel(samples: HeldSamples, row: int, *, mark: bool = True) -> Panel:
    """One sample with its QED; atoms that the model wrote are marked as new."""
    text = samples.texts[row]
    fates = [
        Fate.KEPT if frozen else Fate.INSERTED
        for token, frozen in zip(
            samples.x.to_lists()[row], samples.frozen[row].tolist(), strict=False
        )
        for _ in samples.vocabulary.text([token])
    ]
    atoms: Sequence[Fate] = atom_fates(text, fates) if mark and syntax_problem(text) is None else ()
    about = "not valid" if parsed(text) is None else f"QED {qed([text])[0]:.2f}, valid"
    return Panel(text, about, atoms)
