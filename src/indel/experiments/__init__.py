"""Every table and figure of the paper, as `indel reproduce` makes them."""

from collections.abc import Callable

from indel.experiments.arithmetic_generation import reproduce_figure1
from indel.experiments.arithmetic_table import reproduce_table1
from indel.experiments.forward_chain import reproduce_figure2
from indel.experiments.letter_ngrams import reproduce_ngrams
from indel.experiments.noise_schedule import reproduce_figure7
from indel.experiments.requests import Interrupted, Request
from indel.experiments.text8_table import reproduce_table2
from indel.experiments.text_generation import reproduce_figure4
from indel.experiments.transducer_figures import (
    reproduce_figure3,
    reproduce_figure5,
    reproduce_figure6,
)

EXPERIMENTS: dict[str, Callable[[Request], None]] = {
    "table1": reproduce_table1,
    "table2": reproduce_table2,
    "ngrams": reproduce_ngrams,
    "figure1": reproduce_figure1,
    "figure2": reproduce_figure2,
    "figure3": reproduce_figure3,
    "figure4": reproduce_figure4,
    "figure5": reproduce_figure5,
    "figure6": reproduce_figure6,
    "figure7": reproduce_figure7,
}
"""By the name that the command takes."""

__all__ = ["EXPERIMENTS", "Interrupted", "Request"]
