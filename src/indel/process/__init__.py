"""The forward process q: fixed, exact, without a network."""

from indel.process.alignments import (
    EditMarginals,
    edit_marginals,
    log_prob,
    most_likely_edits,
    sample_edits,
)
from indel.process.corruption import Corruption, corrupt, corrupt_chain, corrupt_step
from indel.process.edits import INSERTED, Edits, step_parents, summarize
from indel.process.jumps import Jump
from indel.process.posteriors import Posterior, posterior
from indel.process.probabilities import log_prob_edits, log_prob_step, log_prob_within
from indel.process.schedules import NoiseLevel, Schedule, paper_noise
from indel.process.steps import Step
from indel.process.transitions import (
    AbsorbingTransition,
    GaussianTransition,
    IdentityTransition,
    MatrixTransition,
    MixtureTransition,
    NeighborTransition,
    Transition,
    UniformTransition,
    qwerty_neighbors,
)

__all__ = [
    "INSERTED",
    "AbsorbingTransition",
    "Corruption",
    "EditMarginals",
    "Edits",
    "GaussianTransition",
    "IdentityTransition",
    "Jump",
    "MatrixTransition",
    "MixtureTransition",
    "NeighborTransition",
    "NoiseLevel",
    "Posterior",
    "Schedule",
    "Step",
    "Transition",
    "UniformTransition",
    "corrupt",
    "corrupt_chain",
    "corrupt_step",
    "edit_marginals",
    "log_prob",
    "log_prob_edits",
    "log_prob_step",
    "log_prob_within",
    "most_likely_edits",
    "paper_noise",
    "posterior",
    "qwerty_neighbors",
    "sample_edits",
    "step_parents",
    "summarize",
]
