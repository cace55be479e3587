"""Figure 1: an arithmetic sequence comes to be, step by step.

The paper shows a sequence that its model of rate 0.6 generated over ten steps. Here it is the
sequence with the fewest wrong steps among the first sixteen samples of the model of Table 1 (rate
0.6, first seed) at the scale asked for, the longest of equally good ones; at scale `laptop` of the
model that comes with the package. It is drawn twice: with whole numbers, and as `figure1-mod10`
with the last digit alone, as in the paper.
"""

from __future__ import annotations

from dataclasses import replace

from indel.data import ArithmeticData
from indel.experiments import arithmetic_table
from indel.experiments.figure_models import shown_model
from indel.experiments.files import write_figure
from indel.experiments.requests import Request
from indel.randomness import RowSeeds, seeds_for
from indel.sampling.generation import generate

RATE = 0.6
CANDIDATES = 16


def reproduce_figure1(request: Request) -> None:
    """Generate, choose and draw.

    Paper: Fig. 1
    """
    from indel.drawing.number_grids import figure1

    run = arithmetic_table.planned_runs(replace(request, rates=(RATE,), seeds=1))[0]
    denoiser, origin = shown_model(request, run, "arithmetic")
    seeds = seeds_for(0, "figure 1", 0, CANDIDATES)
    samples = generate(denoiser, CANDIDATES, generator=RowSeeds(seeds), keep_trajectories=True)
    assert samples.trajectories is not None
    data = run.config.open_data()
    assert isinstance(data, ArithmeticData)
    errors = data.error_rates(samples.x)
    lengths = samples.x.lengths
    best = min(range(CANDIDATES), key=lambda row: (float(errors[row]), -int(lengths[row])))
    config = {
        "figure": "figure1",
        "scale": request.scale,
        "model": origin,
        "rate": RATE,
        "steps": denoiser.schedule.num_steps,
        "sample": best,
        "of": CANDIDATES,
        "error rate of this one": float(errors[best]),
        "mean error rate of all": float(errors.double().mean()),
    }
    for name, last_digits in (("figure1", False), ("figure1-mod10", True)):
        figure = figure1(samples.trajectories[best], denoiser.vocabulary, last_digits=last_digits)
        write_figure(figure, request.folder / name, config)
