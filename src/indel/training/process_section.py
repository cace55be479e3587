"""The settings of the forward process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from indel import checks
from indel.process import AbsorbingTransition, Schedule, Transition, UniformTransition

TransitionName = Literal["uniform", "absorbing"]


@dataclass(frozen=True)
class ProcessSection:
    """The forward process: the paper's schedule.

    Paper: App. C.2
    """

    num_steps: int = 10
    """T, the steps of the forward process."""
    other_num_steps: Sequence[int] = ()
    """Other numbers of steps that the same model is trained for, in turn; the network is then told
    the noise level instead of t."""
    rate: float = 0.6
    """r, the insert/delete rate; 0 is the in-place baseline."""
    transition: TransitionName = "uniform"
    """What a replaced token becomes: "uniform", any token, or "absorbing", always the same one."""
    absorbing_token: int | None = None
    """The token that "absorbing" turns all others into; None: the last regular one."""
    delete_inserted: float | None = None
    """How likely a fresh insert is deleted; None: as likely as any token."""

    def __post_init__(self) -> None:
        if not isinstance(self.other_num_steps, list | tuple):
            raise ValueError(
                f"process.other_num_steps must be a list such as [8, 128], got "
                f"{self.other_num_steps!r}"
            )
        # A list in a file.
        object.__setattr__(self, "other_num_steps", tuple(self.other_num_steps))
        for number in (self.num_steps, *self.other_num_steps):
            checks.integer("process.num_steps", number, least=2, most=10_000)
        if self.rate != 1.0:
            checks.number("process.rate", self.rate, least=0.0, below=1.0)
        checks.choice("process.transition", self.transition, get_args(TransitionName))
        if self.absorbing_token is not None:
            checks.integer("process.absorbing_token", self.absorbing_token, least=0)
        if self.delete_inserted not in (None, 1.0):
            checks.number("process.delete_inserted", self.delete_inserted, least=0.0, below=1.0)

    def schedule(self, vocab_size: int, num_steps: int | None = None) -> Schedule:
        """The schedule for a vocabulary, of the usual number of steps or of another one."""
        return Schedule.paper(
            vocab_size,
            num_steps or self.num_steps,
            self.rate,
            transition=self._transition,
            delete_inserted=self.delete_inserted,
        )

    def _transition(self, vocab_size: int, prob_keep: float) -> Transition:
        if self.transition == "uniform":
            return UniformTransition(vocab_size, prob_keep)
        token = vocab_size - 1 if self.absorbing_token is None else self.absorbing_token
        return AbsorbingTransition(vocab_size, prob_keep, token)
