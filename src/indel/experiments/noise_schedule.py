"""Figure 7: the noise schedule of arithmetic sequences at rate 0.6.

512 numbers and ten steps, as in the paper, at every scale: nothing is trained.
"""

from __future__ import annotations

from indel.experiments.files import write_figure
from indel.experiments.requests import Request
from indel.process import Schedule

NUMBERS, STEPS, RATE = 512, 10, 0.6


def reproduce_figure7(request: Request) -> None:
    """Draw what each step does, and what is left of x_0.

    Paper: Fig. 7
    """
    from indel.drawing.noise_curves import figure7

    config = {"figure": "figure7", "numbers": NUMBERS, "steps": STEPS, "rate": RATE}
    figure = figure7(Schedule.paper(NUMBERS, STEPS, RATE))
    write_figure(figure, request.folder / "figure7", config)
