"""Training that starts from the weights of a model."""

from __future__ import annotations

from indel.model import Denoiser
from indel.training.errors import TrainingError


def take_weights(denoiser: Denoiser, start: str) -> None:
    """Give a denoiser the weights of another one with the same network and vocabulary.

    The forward process may differ, but not its number of steps if the network is told t. Marks of
    frozen tokens, tables of lengths of other numbers of steps, and counts stay as they are where
    the other model has none; counts that it has come along if they are of as many contexts, and a
    table of groups of three tokens is left behind where this model has none.
    """
    try:
        found = Denoiser.from_pretrained(start)
    except (ValueError, FileNotFoundError) as error:
        raise TrainingError(f"model.start = {start!r}: {error}") from error
    for what in ("vocabulary", "backbone", "time_embedding", "trigrams"):
        theirs, ours = getattr(found.config, what), getattr(denoiser.config, what)
        if theirs != ours and (what, ours) != ("trigrams", 0):
            raise TrainingError(
                f"model.start = {start!r} has another {what} than this run: {theirs!r:.200}, "
                f"not {ours!r:.200}"
            )
    wanted = denoiser.state_dict()
    theirs = {**wanted, **found.state_dict()}
    if denoiser.prior is not None and found.config.contexts != denoiser.config.contexts:
        # Counts of other contexts; how far to trust counts comes along.
        theirs |= {f"prior.{name}": each for name, each in denoiser.prior.named_buffers()}
    may_differ = ("marks.", "other_lengths.", "prior.", "trigrams.")
    weights = {
        name: weight
        for name, weight in theirs.items()
        if name in wanted or not name.startswith(may_differ)
    }
    for name, weight in wanted.items():
        if weights[name].shape != weight.shape:
            raise TrainingError(
                f"model.start = {start!r} has {name} of shape {tuple(weights[name].shape)}, this "
                f"run needs {tuple(weight.shape)}: max_length, max_deletions and the number of "
                "steps must be those of that model"
            )
    denoiser.load_state_dict(weights)
