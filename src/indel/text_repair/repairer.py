"""Repair as a function of a text, and as an object that repairs many texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from string import ascii_lowercase

from indel.loading import load, model_folder
from indel.model import Denoiser
from indel.sharing import ALONE, Processes
from indel.text_repair import defaults
from indel.text_repair.corrections import mend
from indel.text_repair.known_words import KnownWords
from indel.text_repair.letter_contexts import LetterContexts
from indel.text_repair.lines import Mender, Progress
from indel.text_repair.results import Repair
from indel.text_repair.shared_lines import SharedMender
from indel.text_repair.spelling import Spelling
from indel.text_repair.typing_channel import TypingChannel
from indel.text_repair.weights import RepairWeights


@dataclass(frozen=True)
class Repairer:
    """Mends texts with one model and one set of settings."""

    model: Denoiser | str | Path = defaults.MODEL
    """A denoiser, or what `indel.load` takes."""
    strength: int = defaults.STRENGTH
    """t, the time that a text is taken to be at: how noisy it is believed to be."""
    draws: int = 0
    """How often x_0 is drawn; 0: not at all, the network's guess of the edits is read off."""
    agreement: float = defaults.AGREEMENT
    """A correction is made if it is at least so likely; without known words, if that share of the
    draws agree on it."""
    seed: int = 0
    batch_size: int = defaults.BATCH_SIZE
    words: KnownWords | None = None
    """Words that help to judge spelling; None: those in the model's folder, if it has any."""
    weights: RepairWeights | None = None
    """How much each kind of evidence counts; None: what the folder says, or the defaults."""
    processes: Processes = ALONE
    """Who shares the lines of a text; by default nobody."""

    def __post_init__(self) -> None:
        if not 0 < self.agreement <= 1:
            raise ValueError(f"agreement must be above 0 and at most 1, got {self.agreement}")

    @cached_property
    def mender(self) -> Mender:
        """What mends letters; the model is opened when it is first needed."""
        if isinstance(self.model, Denoiser):
            denoiser, words, weights = self.model, None, RepairWeights()
        else:
            denoiser, words, weights = _opened(str(self.model))
        words, weights = self.words or words, self.weights or weights
        characters = getattr(denoiser.vocabulary, "characters", "")
        if not set(characters) >= set(ascii_lowercase + " "):
            raise ValueError(
                "a model that repairs text must know a–z and the space, this one has "
                f"{denoiser.vocabulary!r:.80}"
            )
        channel = TypingChannel(denoiser.vocabulary, denoiser.schedule)
        contexts, spelling = LetterContexts.of(denoiser), None
        if words:
            spelling = Spelling(channel, weights.words, words, contexts)
        elif weights.network is not None:
            spelling = Spelling(channel, weights.network, contexts=contexts)
        return Mender(
            denoiser, self.strength, self.draws, self.seed, self.batch_size, spelling=spelling
        )

    def __call__(self, texts: Sequence[str], *, progress: Progress | None = None) -> list[Repair]:
        """Repair each text; many at once take less time than one after the other.

        `progress` is given how many windows of text are done, and of how many; what it raises ends
        the work.
        """
        if isinstance(texts, str):
            raise TypeError("expected a sequence of texts, got a single text")
        mender = SharedMender(self.mender, self.processes)
        return mend(texts, mender, agreement=self.agreement, progress=progress)


def repair(
    text: str,
    *,
    model: Denoiser | str | Path = defaults.MODEL,
    strength: int = defaults.STRENGTH,
    draws: int = 0,
    agreement: float = defaults.AGREEMENT,
    seed: int = 0,
) -> Repair:
    """Mend a badly typed text: the best answer, its corrections, and what else it might be.

    log p(text | typed) = Σ weight · evidence + constant for each doubtful place: counts of words,
    the exact q(typed | text), and what the network says with the text as x_t for t = `strength`.
    Corrections that are ahead of what was typed by 2 · agreement − 1 are made.

    Args:
        text: Any text, of any length; case, punctuation and layout stay.
        model: A denoiser of letters, or what `indel.load` takes.
        strength: t, how noisy the text is believed to be.
        draws: How many x_0 ~ p_θ(x_0 | x_t) are drawn as evidence.
        agreement: How sure a correction must be against what was typed.
        seed: The same seed gives the same repair.

    Returns:
        `Repair`: `.text`, and the corrections with their alternatives.

    >>> repair("thisn sentsnetne", draws=2).text != ""
    True

    Reference: Johnson et al. 2021, Fig. 4; docs/repair.md
    """
    return Repairer(model, strength, draws, agreement, seed)([text])[0]


@lru_cache(maxsize=4)
def _opened(model: str) -> tuple[Denoiser, KnownWords | None, RepairWeights]:
    folder = model_folder(model)
    return load(folder), KnownWords.read(folder), RepairWeights.read(folder)
