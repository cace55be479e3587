"""The network of the reverse process: x_t and t in, a guess of the edits that led there out."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from huggingface_hub import PyTorchModelHubMixin
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from indel.atomic_files import mode_of_the_umask
from indel.batch import Batch
from indel.model import saving
from indel.model.config import DenoiserConfig
from indel.model.count_prior import CountPrior, Guess
from indel.model.edit_posterior import HeldPlaces
from indel.model.edit_weights import EditWeights
from indel.model.frozen_marks import FrozenMarks
from indel.model.length import LengthTable
from indel.model.noise_levels import NoiseLevelEmbedding, noise_levels
from indel.model.presets import preset_config
from indel.model.sinusoids import sinusoids
from indel.model.sizes import check_size
from indel.model.trigrams import TrigramEmbedding
from indel.pretrained import MODELS, pretrained_folder
from indel.process import Schedule, checks
from indel.process.tables import JumpTables
from indel.vocabularies import Vocabulary

# At first p̃(n) ∝ (1+n)^−3.5. At rate 0.6, averaged over t, that costs 0.516 nats a slot on text8;
# the law of n itself has entropy 0.512, the best geometric law costs 0.529, a uniform one 4.85.
DELETIONS_EXPONENT = 3.5

_MODEL_CARD = """---
{{ card_data }}
---

A denoiser of [indel](https://arxiv.org/abs/2107.07675), diffusion over sequences that can insert,
delete and replace tokens. Vocabulary and noise schedule are in this repository:

    import indel
    model = indel.load("the name of this repository or folder")
"""


class DenoiserOutput(NamedTuple):
    """What the network thinks of the edits; meaningless but finite at padding."""

    logits_token: Float[Tensor, "batch length values"]
    """For each token of x_t: it comes from the regular token v of x_0 (0…K−1), or it was
    inserted (K). Row i belongs to token i; there is none for EOS."""
    logits_deletions: Float[Tensor, "batch length+1 counts"]
    """For each slot: n = 0…N tokens of x_0 were deleted right before token i, and in row |x_t|
    right before EOS."""


class Denoiser(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="indel",
    license="apache-2.0",
    tags=["discrete-diffusion"],
    paper_url="https://arxiv.org/abs/2107.07675",
    model_card_template=_MODEL_CARD,
):
    """p̃_θ(x̃_0, ã_{0→t} | x_t): a transformer over the tokens of x_t and EOS, with two heads.

    f_θ(x_t)[i] = E h_i / √width, E the embeddings of the regular tokens and INS;
    g_θ(x_t)[i] = W h_i + b, b_n = −3.5 log(1+n) at the start. `length` is the table p_θ(|x_T|).

    Paper: App. C.1

    >>> from indel import CharacterVocabulary
    >>> acgt, schedule = CharacterVocabulary("ACGT"), Schedule.paper(4, 10, 0.6)
    >>> denoiser = Denoiser.from_preset("tiny", acgt, schedule, max_deletions=8)
    >>> x_t = Batch.from_lists([acgt.encode("GATTACA"), [acgt.del_]])
    >>> output = denoiser(x_t, torch.tensor([3, 10]))
    >>> output.logits_token.shape, output.logits_deletions.shape
    (torch.Size([2, 7, 5]), torch.Size([2, 8, 9]))
    """

    def __init__(self, config: DenoiserConfig, *, generator: torch.Generator | None = None) -> None:
        """Start from T5's initial weights, drawn by the generator (default: torch's own)."""
        check_size(config)
        super().__init__()
        # The mixin would write its own idea of the configuration; `_save_pretrained` writes ours.
        self._hub_mixin_config = None
        self.config = config
        self.vocabulary = config.vocabulary
        self.schedule = config.schedule
        self.max_deletions = (
            config.max_length if config.max_deletions is None else config.max_deletions
        )
        width = config.backbone.width
        self.embedding = nn.Embedding(config.vocabulary.augmented_size, width)
        self.time_embedding: nn.Embedding | NoiseLevelEmbedding | None = None
        if config.noise_levels:
            self.time_embedding = NoiseLevelEmbedding(noise_levels(config.schedule), width)
        elif config.time_embedding:
            self.time_embedding = nn.Embedding(config.schedule.num_steps, width)
        self.trigrams = (
            TrigramEmbedding(
                config.vocabulary.augmented_size, config.vocabulary.eos, config.trigrams, width
            )
            if config.trigrams
            else None
        )
        self.prior = (
            CountPrior(
                config.vocabulary.size,
                config.contexts,
                config.schedule.num_steps,
                width,
                remembered=config.remembered_deletions,
                max_length=config.max_length,
            )
            if config.contexts
            else None
        )
        self.marks = None if config.frozen == "nothing" else FrozenMarks(width)
        backbone = config.backbone.build(max_length=config.max_length, generator=generator)
        if not isinstance(backbone, nn.Module):
            raise TypeError(f"a backbone must be a torch.nn.Module, got {type(backbone).__name__}")
        self.backbone = backbone
        self.deletions_head = nn.Linear(width, self.max_deletions + 1)
        self.length = LengthTable(config.max_length)
        self.other_lengths = nn.ModuleList(
            LengthTable(config.max_length) for _ in config.other_schedules
        )
        self._initialise(generator)

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator | None) -> None:
        nn.init.normal_(self.embedding.weight, generator=generator)
        if self.config.embedding_init != "normal":
            size, whole = self.vocabulary.size, self.config.embedding_init == "whole-sines"
            waves = sinusoids(size, self.embedding.embedding_dim, whole=whole)
            self.embedding.weight[:size] = waves
        if self.time_embedding is not None:
            nn.init.normal_(self.time_embedding.weight, generator=generator)
        width = self.embedding.embedding_dim
        nn.init.normal_(self.deletions_head.weight, std=width**-0.5, generator=generator)
        if self.prior is not None:
            # The counts know how many deletions to expect; the network only corrects them.
            nn.init.zeros_(self.prior.inputs.weight)
            nn.init.zeros_(self.deletions_head.bias)
            return
        counts = torch.arange(self.max_deletions + 1)
        self.deletions_head.bias.copy_(-DELETIONS_EXPONENT * torch.log1p(counts))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embedding.weight.device

    @property
    def length_limit(self) -> int | None:
        """The longest x_t of the forward process that this model is trained for; None: any."""
        return self.config.max_length if self.config.limit_length else None

    @property
    def step_choices(self) -> tuple[int, ...]:
        """The numbers of steps that this model is trained for, the usual one first."""
        every = (self.config.schedule, *self.config.other_schedules)
        return tuple(schedule.num_steps for schedule in every)

    def with_steps(self, num_steps: int) -> Denoiser:
        """The model of the process with so many steps: the same weights, its own lengths.

        It shares them: what trains one trains the other.
        """
        if num_steps not in self.step_choices:
            raise ValueError(
                f"this model was trained for {' or '.join(map(str, self.step_choices))} steps, "
                f"got {num_steps}"
            )
        which = self.step_choices.index(num_steps)
        if which == 0:
            return self
        schedule = self.config.other_schedules[which - 1]
        other = copy.copy(self)
        other.config = replace(self.config, schedule=schedule, other_schedules=())
        other.schedule = schedule
        # A copy of its own, so that this one keeps its parts.
        other._modules = dict(self._modules)
        other.length = cast("LengthTable", self.other_lengths[which - 1])
        other.other_lengths = nn.ModuleList()
        if isinstance(self.time_embedding, NoiseLevelEmbedding):
            other.time_embedding = self.time_embedding.at(noise_levels(schedule))
        return other

    def edit_weights(self, jump: JumpTables) -> EditWeights:
        """How q weighs the kinds of edits in p_θ(x_{t−1} | x_t), for the tables of a schedule."""
        return EditWeights.named(self.config.edit_weights, jump)

    @classmethod
    def from_preset(
        cls,
        name: str,
        vocabulary: Vocabulary,
        schedule: Schedule,
        *,
        generator: torch.Generator | None = None,
        **overrides: Any,
    ) -> Denoiser:
        """A new denoiser of a named size: tiny, small, paper-arithmetic or paper-text8.

        Args:
            name: The size.
            vocabulary: What the tokens are.
            schedule: The forward process that it reverses.
            generator: Draws the initial weights; None: torch's own.
            overrides: Fields of `DenoiserConfig` or of its backbone's config.

        Returns:
            The denoiser, in training mode.

        >>> import indel
        >>> acgt, schedule = indel.CharacterVocabulary("ACGT"), indel.Schedule.paper(4, 10, 0.6)
        >>> Denoiser.from_preset("tiny", acgt, schedule, max_length=32).config.max_length
        32

        Reference: Johnson et al. 2021, App. C.1; docs/model.md
        """
        return cls(preset_config(name, vocabulary, schedule, **overrides), generator=generator)

    def forward(
        self,
        x_t: Batch,
        t: Int[Tensor, " batch"] | int,
        frozen: Bool[Tensor, "batch length"] | None = None,
        *,
        open_slots: Bool[Tensor, "batch slots"] | None = None,
        start: bool = False,
    ) -> DenoiserOutput:
        """Logits of the edits, from x_t without its INS (`x_t.without(vocabulary.ins)`).

        A model trained for it, or one with counts, is told which tokens are frozen; with `start` it
        sees these alone and is asked how many DELs of x_T lie in the gaps between them
        (`model.gap_network`). Counts need to know which slots lie in gaps.

        Paper: App. C.1
        """
        t = checks.times(t, x_t, first=1, last=self.schedule.num_steps)
        tokens, mask = self._closed_by_eos(x_t)
        embedded = self.embedding(tokens)
        if self.trigrams is not None:
            embedded = embedded + self.trigrams(tokens)
        if self.time_embedding is not None:
            embedded = embedded + self.time_embedding(t - 1)[:, None]
        if frozen is not None:
            if self.marks is not None:
                embedded = embedded + self.marks(frozen, start=start)
            elif self.prior is None or start:
                raise ValueError("this model was not trained with frozen tokens")
        if self.prior is None:
            return self._heads(self.backbone(embedded, mask))
        guess = self._counted(self.prior, x_t, t, frozen, open_slots, start)
        told = self.prior.features(guess)
        learned = self._heads(self.backbone(embedded + told, mask))
        return DenoiserOutput(
            self.prior.combined(0, t, guess.source[:, :-1], learned.logits_token),
            self.prior.combined(1, t, guess.deletions, learned.logits_deletions),
        )

    def _counted(
        self,
        prior: CountPrior,
        x_t: Batch,
        t: Int[Tensor, " batch"],
        frozen: Bool[Tensor, "batch length"] | None,
        open_slots: Bool[Tensor, "batch slots"] | None,
        start: bool,
    ) -> Guess:
        tables = self.schedule.tables(x_t.device)
        weights = self.edit_weights(tables.jump)
        if frozen is None:
            return cast("Guess", prior(tables, weights, x_t, t, self.max_deletions))
        if open_slots is None:
            raise ValueError("with frozen tokens the counts must be told open_slots, the gaps")
        held = HeldPlaces(frozen & x_t.mask, open_slots)
        if start:
            return prior.start(self.schedule, x_t, held, self.max_deletions)
        return cast("Guess", prior(tables, weights, x_t, t, self.max_deletions, held))

    def _heads(self, hidden: Float[Tensor, "batch slots width"]) -> DenoiserOutput:
        return DenoiserOutput(self._token_head(hidden[:, :-1]), self.deletions_head(hidden))

    if TYPE_CHECKING:

        def __call__(
            self,
            x_t: Batch,
            t: Tensor | int,
            frozen: Tensor | None = None,
            *,
            open_slots: Tensor | None = None,
            start: bool = False,
        ) -> DenoiserOutput: ...

    def _closed_by_eos(
        self, x_t: Batch
    ) -> tuple[Int[Tensor, "batch length"], Bool[Tensor, "batch length"]]:
        """The tokens with EOS at position |x_t| of each row, and what is not padding."""
        vocabulary = self.vocabulary
        allowed = (x_t.tokens < vocabulary.size) | (x_t.tokens == vocabulary.del_)
        if not bool(allowed.all()):
            row, position = (~allowed).nonzero()[0].tolist()
            token = x_t.tokens[row, position].item()
            raise ValueError(
                f"x_t: token {token} at row {row}, position {position} must be regular (0…"
                f"{vocabulary.size - 1}) or DEL = {vocabulary.del_}; INS = {vocabulary.ins} is "
                f"taken out first: x_t.without(vocabulary.ins)"
            )
        positions = torch.arange(x_t.width + 1, device=x_t.device)
        # Padding is embedded as EOS too, but masked: only the first EOS is seen.
        ended = positions >= x_t.lengths[:, None]
        tokens = functional.pad(x_t.tokens, (0, 1)).masked_fill(ended, vocabulary.eos)
        mask = positions <= x_t.lengths[:, None]
        return tokens, mask

    def _token_head(
        self, hidden: Float[Tensor, "batch length width"]
    ) -> Float[Tensor, "batch length values"]:
        """The logits of the K regular tokens and INS; DEL and EOS are no values."""
        values = self.embedding.weight[: self.vocabulary.size + 1]
        # T5's scale, which lets an embedding of variance 1 serve as an output matrix.
        return functional.linear(hidden * self.embedding.embedding_dim**-0.5, values)

    def _save_pretrained(self, save_directory: Path) -> None:
        saving.write_config(save_directory, self.config)
        with mode_of_the_umask(save_directory / saving.WEIGHTS):
            super()._save_pretrained(save_directory)
        saving.write_checksums(save_directory)

    @classmethod
    def from_pretrained(  # type: ignore[override]  # a folder says all: no arguments of __init__
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        force_download: bool = False,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        revision: str | None = None,
        map_location: str | torch.device = "cpu",
    ) -> Denoiser:
        """Load what `save_pretrained` wrote: a bundled model, a folder or a repository on the Hub.

        A name that is neither a bundled model nor a folder is looked for on the Hub. The denoiser
        is in evaluation mode. Nothing is unpickled and no code is run. `indel.load` also takes runs
        and checkpoints.

        Args:
            pretrained_model_name_or_path: The name or folder.
            force_download: Whether files of the Hub are fetched again.
            token: Of the Hub, for private repositories.
            cache_dir: Where files of the Hub are kept.
            local_files_only: Whether the Hub must not be asked.
            revision: A branch, tag or commit of the repository.
            map_location: The device of the weights.

        Returns:
            The denoiser.

        >>> Denoiser.from_pretrained("arithmetic").vocabulary.size
        512

        Reference: docs/model.md
        """
        name = pretrained_model_name_or_path
        # A Path is always a folder, also one that has the name of a bundled model.
        bundled = isinstance(name, str) and name in MODELS
        folder = pretrained_folder(str(name)) if bundled else Path(name)
        if not folder.is_dir():
            folder = saving.download(
                pretrained_model_name_or_path,
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                token=token,
                local_files_only=local_files_only,
            )
        config = saving.read_config(folder)
        saving.check_checksums(folder)
        # The initial weights are overwritten; drawing them must not move torch's generator.
        with torch.random.fork_rng(devices=[]):
            denoiser = cls(config)
        saving.read_weights(folder, denoiser)
        return denoiser.to(map_location).eval()
