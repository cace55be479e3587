"""How likely a text comes to be typed as it was: the forward process after swaps of neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indel.batch import Batch
from indel.process import Schedule
from indel.process.swaps import log_prob_swapped
from indel.vocabularies import Vocabulary


@dataclass(frozen=True)
class TypingChannel:
    """q∘S in closed form: any letters may be missing, wrong, too many or out of order.

    Paper: App. B.2 for q
    """

    vocabulary: Vocabulary
    schedule: Schedule
    t: int = 3
    """The noise that q assumes; at least 2, since what is inserted or deleted in step t itself
    shows as a mark and not in the letters."""
    t_bad: int = 8
    """The noise that it assumes where many words are wrong."""
    swap: float = 0.005
    """How likely two neighbors are swapped."""
    swap_bad: float = 0.02
    """The same where many words are wrong."""

    def log_probs(self, typed: str, texts: Sequence[str], *, bad: bool = False) -> list[float]:
        """log Σ_u S(u | text) q(typed | u) for each text."""
        if not texts:
            return []
        x_0 = Batch.from_lists([self.vocabulary.encode(text) for text in texts])
        x_t = Batch.from_lists([self.vocabulary.encode(typed)] * len(texts))
        t = min(self.t_bad if bad else self.t, self.schedule.num_steps)
        swap = self.swap_bad if bad else self.swap
        found: list[float] = log_prob_swapped(self.schedule, x_0, x_t, t, swap=swap).tolist()
        return found
