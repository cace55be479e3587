"""The tab for molecules: one box for four kinds of requests."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from indel.molecules.chemistry import parsed
from indel.web.jobs import unwatched
from indel.web.models import Models
from indel.web.molecules_tab import SPARE, MoleculesTab
from indel.web.request_limits import LIMITS
from support.molecule_models import ASPIRIN, chain_denoiser, molecule_denoiser
from support.programs import environment


@pytest.fixture(scope="module")
def tab() -> MoleculesTab:
    return MoleculesTab(molecule_denoiser())


def test_molecules_are_made_up(tab: MoleculesTab) -> None:
    found = tab.molecules("", samples=3, seed=5)
    assert len(found["smiles"]) == 3
    assert found == tab.molecules("", samples=3, seed=5)
    assert found["valid"] == [parsed(each) is not None for each in found["smiles"]]


def test_molecules_come_first_among_those_that_are_drawn(tab: MoleculesTab) -> None:
    found = tab.molecules("CC{1}", samples=8, seed=5)["valid"]
    drawn = [panel.smiles for panel in tab._grown(unwatched, "CC{1}", 8 * SPARE, 1, 5)]
    molecules = sum(parsed(each) is not None for each in drawn)
    assert 0 < molecules < len(drawn)
    assert found == [place < molecules for place in range(8)]


def test_molecules_grow_from_a_scaffold(tab: MoleculesTab) -> None:
    found = tab.molecules("c1ccc({,2})cc1{,2}", samples=2, particles=2)
    assert all(each.startswith("c1ccc(") for each in found["smiles"])


def test_a_molecule_has_relatives(tab: MoleculesTab) -> None:
    found = tab.molecules(ASPIRIN, samples=3)
    assert ASPIRIN not in found["smiles"]
    for valid, note in zip(found["valid"], found["notes"], strict=True):
        assert note.startswith("similarity") == valid


def test_a_broken_string_is_mended() -> None:
    tab = MoleculesTab(chain_denoiser())
    found = tab.molecules("C(", samples=3, seed=0)
    assert len(found["smiles"]) == 1
    assert found["valid"] == [found["notes"] != ["not mended"]]
    hopeless = MoleculesTab(molecule_denoiser()).molecules("(((((((((((((((((((((")
    assert hopeless["notes"] == ["not mended"]


def test_what_is_typed_is_shown_as_text(tab: MoleculesTab) -> None:
    (shown,) = tab._work(unwatched, "<script>(((((((((((", 1, 1, 0)
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    (shown,) = tab._work(unwatched, ASPIRIN, 2, 1, 0)
    assert shown.count("<section") == 2
    assert re.search(r"<svg[^>]*>", shown)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"text": "C" * (LIMITS.molecule_letters + 1)}, "at most 200 are taken here"),
        ({"text": "C{"}, "{"),
        ({"text": "C[Si]C"}, "[Si]"),
        ({"text": "C" * 80}, "at most 64"),
        ({"samples": 0}, "molecules must lie in 1…8"),
        ({"particles": 99}, "particles must lie in 1…8"),
        ({"seed": -1}, "seed must lie in"),
    ],
)
def test_bad_requests_get_one_sentence(
    tab: MoleculesTab, fields: dict[str, object], reason: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as error:
        tab.molecules(**fields)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


PROGRAM = """
from dataclasses import replace
import gradio as gr
from indel.web.app import build_app
from support.molecule_models import molecule_denoiser
from support.page_models import page_models

models = page_models()
for each in (models, replace(models, molecules=molecule_denoiser())):
    page = build_app(each, examples=False)
    print(*(block.label for block in page.blocks.values() if isinstance(block, gr.Tab)))
"""


def test_the_page_has_the_tab_only_with_a_model() -> None:
    # Gradio leaves an event loop behind, so this is a process of its own.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 0, done.stderr
    without, with_molecules = done.stdout.splitlines()
    assert "Molecules" not in without
    assert with_molecules == f"{without} Molecules"


def test_another_model_is_refused(models: Models) -> None:
    with pytest.raises(ValueError, match="must be one of SMILES"):
        replace(models, molecules=models.arithmetic)
