"""Figures 3, 5 and 6: the transducers of the forward process.

Drawn from the machines that the code composes and marginalizes, with symbols as weights: in words
(3), in formulas (5), and the composition without x_{t−1} (6). Scales do not differ.
"""

from __future__ import annotations

from indel.experiments.files import write_figure
from indel.experiments.requests import Request


def reproduce_figure3(request: Request) -> None:
    """One step, a jump and their composition in words.

    Paper: Fig. 3
    """
    from indel.drawing.transducers import figure3

    write_figure(figure3(), request.folder / "figure3", {"figure": "figure3"})


def reproduce_figure5(request: Request) -> None:
    """One step, a jump and their composition with all weights.

    Paper: Fig. 5
    """
    from indel.drawing.transducers import figure5

    write_figure(figure5(), request.folder / "figure5", {"figure": "figure5"})


def reproduce_figure6(request: Request) -> None:
    """The composition without x_{t−1}, and without its middle state.

    Paper: Fig. 6
    """
    from indel.drawing.transducers import figure6

    write_figure(figure6(), request.folder / "figure6", {"figure": "figure6"})
