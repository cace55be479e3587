"""What a denoiser is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from indel import checks
from indel.model.backbones import BackboneConfig, backbone_from_dict
from indel.model.edit_weights import EditWeightsName
from indel.model.positions import LONGEST
from indel.process import Schedule
from indel.process.freezing import FrozenKind
from indel.vocabularies import IntegerVocabulary, Vocabulary

MOST_COUNTS = 200_000_000
"""Contexts times tokens: counting takes a table of them."""

EmbeddingInit = Literal["normal", "sines", "whole-sines"]
Frozen = Literal["nothing", FrozenKind]

# What held for all models that were saved when there was no choice.
_BEFORE: dict[str, Any] = {
    "embedding_init": "normal",
    "trigrams": 0,
    "contexts": 0,
    "remembered_deletions": 2,
    "limit_length": True,
    "edit_weights": "normalized",
    "frozen": "nothing",
    "drops_source": False,
    "noise_levels": False,
    "other_schedules": (),
}


@dataclass(frozen=True)
class DenoiserConfig:
    """All that is needed to build a `Denoiser`, checked on construction."""

    backbone: BackboneConfig
    vocabulary: Vocabulary
    schedule: Schedule
    max_length: int
    """The longest x_t that is expected: the size of the table of lengths."""
    max_deletions: int | None = None
    """N, the most deletions in one slot that the second head tells apart; None: max_length."""
    time_embedding: bool = True
    """Whether the network is told t. The paper does not say."""
    embedding_init: EmbeddingInit = "normal"
    """Where the tokens' embeddings start: as noise (T5), or, for integers, as sines and cosines,
    whose wave lengths may be whole numbers."""
    trigrams: int = 0
    """The rows of a table with embeddings of a token between its neighbors; 0: there is none."""
    contexts: int = 0
    """The most contexts of a model of x_0 by counts, whose exact posterior given x_t the network
    corrects; 0: there is none."""
    remembered_deletions: int = 2
    """After so many deletions in one slot that posterior takes the context for forgotten."""
    limit_length: bool = True
    """Whether q is restricted to x_t of at most max_length tokens, in training and in the bound."""
    edit_weights: EditWeightsName = "normalized"
    """How q weighs the kinds of edits: `EditWeights.normalized` or `EditWeights.joint`."""
    frozen: Frozen = "nothing"
    """What the network has learned to take as given and is told: nothing, random spans, or the
    source of a pair (`process.freezing`)."""
    drops_source: bool = False
    """Whether it has learned to do without a source too, as guidance needs it."""
    noise_levels: bool = False
    """Whether the network is told how noisy x_t is (`model.noise_levels`), instead of t."""
    other_schedules: tuple[Schedule, ...] = ()
    """Other processes that it is trained for, each with its own number of steps."""

    def __post_init__(self) -> None:
        if self.vocabulary.size != self.schedule.vocab_size:
            raise ValueError(
                f"vocabulary and schedule must agree on the number of regular tokens, "
                f"got {self.vocabulary.size} and {self.schedule.vocab_size}"
            )
        checks.integer("max_length", self.max_length, least=1, most=LONGEST)
        if self.max_deletions is not None:
            checks.integer("max_deletions", self.max_deletions, least=0, most=LONGEST)
        checks.integer("trigrams", self.trigrams, least=0)
        checks.integer("contexts", self.contexts, least=0, most=MOST_COUNTS // self.vocabulary.size)
        checks.integer("remembered_deletions", self.remembered_deletions, least=0, most=LONGEST)
        if self.contexts and self.contexts < self.vocabulary.size + 1:
            raise ValueError(
                f"contexts must be 0 or at least {self.vocabulary.size + 1}, one for each token "
                f"and one for the start, got {self.contexts}"
            )
        checks.flag("time_embedding", self.time_embedding)
        checks.flag("limit_length", self.limit_length)
        checks.flag("noise_levels", self.noise_levels)
        checks.flag("drops_source", self.drops_source)
        self._check_schedules()
        if self.contexts and self.other_schedules:
            raise ValueError(
                "contexts cannot go with several numbers of steps: how far counts are trusted is "
                "learned for the times of one process; set contexts=0"
            )
        checks.choice("edit_weights", self.edit_weights, get_args(EditWeightsName))
        checks.choice("frozen", self.frozen, get_args(Frozen))
        if self.drops_source and self.frozen != "source":
            raise ValueError(f"drops_source needs frozen = 'source', got {self.frozen!r}")
        checks.choice("embedding_init", self.embedding_init, get_args(EmbeddingInit))
        if self.embedding_init != "normal":
            if not isinstance(self.vocabulary, IntegerVocabulary):
                raise ValueError(
                    f"embedding_init {self.embedding_init!r} needs a vocabulary of integers, "
                    f"got {type(self.vocabulary).__name__}"
                )
            if self.backbone.width % 2:
                raise ValueError(
                    f"embedding_init {self.embedding_init!r} needs an even width, "
                    f"got {self.backbone.width}"
                )

    def _check_schedules(self) -> None:
        every = (self.schedule, *self.other_schedules)
        steps = [schedule.num_steps for schedule in every]
        if len(set(steps)) < len(steps):
            raise ValueError(f"the processes must differ in their number of steps, got {steps}")
        for schedule in self.other_schedules:
            if schedule.vocab_size != self.schedule.vocab_size:
                raise ValueError(
                    f"all processes must have the same number of regular tokens, got "
                    f"{self.schedule.vocab_size} and {schedule.vocab_size}"
                )
        if self.other_schedules and self.time_embedding and not self.noise_levels:
            raise ValueError(
                "for several numbers of steps the network must be told the noise level, not t: "
                "set noise_levels"
            )
        if self.noise_levels and not self.time_embedding:
            raise ValueError("noise_levels needs time_embedding: there is nothing to be told")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data of everything but vocabulary and schedule, which have their own."""
        return {
            "backbone": self.backbone.to_dict(),
            "max_length": self.max_length,
            "max_deletions": self.max_deletions,
            "time_embedding": self.time_embedding,
            "embedding_init": self.embedding_init,
            "trigrams": self.trigrams,
            "contexts": self.contexts,
            "remembered_deletions": self.remembered_deletions,
            "limit_length": self.limit_length,
            "edit_weights": self.edit_weights,
            "frozen": self.frozen,
            "drops_source": self.drops_source,
            "noise_levels": self.noise_levels,
            "other_schedules": [schedule.to_dict() for schedule in self.other_schedules],
        }

    @classmethod
    def from_dict(cls, data: object, vocabulary: Vocabulary, schedule: Schedule) -> DenoiserConfig:
        """The configuration that `to_dict` described, now or before it had all of its fields."""
        names = ["backbone", "max_length", "max_deletions", "time_embedding"]
        values = checks.fields("a denoiser", data, names, defaults=_BEFORE)
        backbone = backbone_from_dict(values.pop("backbone"))
        others = values.pop("other_schedules")
        if not isinstance(others, list | tuple):
            raise ValueError(f"other_schedules must be a list, got {others!r:.80}")
        values["other_schedules"] = tuple(map(Schedule.from_dict, others))
        return cls(backbone, vocabulary, schedule, **values)
