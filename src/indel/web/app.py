"""The page as a whole: five tabs, one more for molecules if there is a model, one queue."""

from __future__ import annotations

import gradio as gr

from indel.web.fill_tab import FillTab
from indel.web.likelihood_tab import LikelihoodTab
from indel.web.models import Models
from indel.web.molecules_tab import MoleculesTab
from indel.web.process_tab import ProcessTab
from indel.web.repair_tab import RepairTab
from indel.web.request_limits import LIMITS
from indel.web.watch_tab import WatchTab

HEAD = """# indel
Diffusion over sequences that can insert, delete and replace tokens: mend a badly typed text, or \
watch a model make one out of noise."""


def build_app(models: Models, *, waiting: int = LIMITS.waiting, examples: bool = True) -> gr.Blocks:
    """The page and its API for the models given; so many requests may wait.

    With `examples` each tab shows a result from the start, which is worked out here.
    """
    page = gr.Blocks(title="indel", analytics_enabled=False)
    with page:
        gr.Markdown(HEAD)
        with gr.Tab("Repair"):
            RepairTab(models).build(example=examples)
        with gr.Tab("Watch"):
            WatchTab(models).build(example=examples)
        with gr.Tab("Fill"):
            FillTab(models).build(example=examples)
        with gr.Tab("Process"):
            ProcessTab().build(example=examples)
        with gr.Tab("Likelihood"):
            LikelihoodTab(models).build(example=examples)
        if models.molecules is not None:
            with gr.Tab("Molecules"):
                MoleculesTab(models.molecules).build(example=examples)
    page.queue(max_size=waiting, api_open=False)
    return page
