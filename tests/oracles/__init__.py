"""Exact values of the forward process, computed without anything from `indel`.

`steps` is the definition of one step, `jumps` and `edits` sum over all chains without a cut,
`enumeration` lists chains one by one and is what the other two are checked against.
"""

from .edits import OraclePosterior, edit_probs, posterior_given_edits, posterior_marginal
from .enumeration import ChainList, enumerate_chains, push_forward, source_of_chain
from .jumps import jump_parameters, jump_prob
from .steps import OracleStep, Tokens, step_prob

__all__ = [
    "ChainList",
    "OraclePosterior",
    "OracleStep",
    "Tokens",
    "edit_probs",
    "enumerate_chains",
    "jump_parameters",
    "jump_prob",
    "posterior_given_edits",
    "posterior_marginal",
    "push_forward",
    "source_of_chain",
    "step_prob",
]
