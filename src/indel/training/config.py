"""All settings of a training run, checked on construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args

import torch

from indel import checks
from indel.data import BatchStream, open_data
from indel.model import Denoiser, DenoiserConfig
from indel.model.config import Frozen
from indel.process.freezing import Freezing
from indel.training.former_names import with_new_names
from indel.training.model_section import ModelSection
from indel.training.process_section import ProcessSection
from indel.vocabularies import Vocabulary

OptimizerName = Literal["adam", "adamw", "muon"]
RateSchedule = Literal["constant", "reciprocal-square-root", "cosine", "flat"]
TimeChoice = Literal["uniform", "term-size", "low-noise"]
Precision = Literal["auto", "float32", "bfloat16"]
GIVEN_DATA = "python"
"""The name of data that was given in Python; its options say what identifies it."""


@dataclass(frozen=True)
class DataSection:
    """Which data, by the name and the options of `indel.data.open_data`."""

    name: str
    """Which data: arithmetic, text8, lines:FILE and so on, as `indel train` takes it."""
    options: dict[str, Any] = field(default_factory=dict)
    """What the data itself takes, such as path, vocabulary, held_out or max_length."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"data.name must be the name of a data set, got {self.name!r}")
        if not isinstance(self.options, dict) or "seed" in self.options:
            raise ValueError(
                f"data.options must be a table without a seed (set training.seed), "
                f"got {self.options!r}"
            )


@dataclass(frozen=True)
class OptimizerSection:
    """The optimizer and how its learning rate changes.

    Paper: App. C.2 and C.3
    """

    name: OptimizerName = "adam"
    """"adam", "adamw" or "muon", which takes the matrices and leaves the rest to AdamW."""
    learning_rate: float = 2e-4
    """Of Adam(W), also next to Muon."""
    embedding_learning_rate: float | None = None
    """Of the embeddings of tokens and times, by Adam(W); None: learning_rate."""
    muon_learning_rate: float = 0.02
    """Of Muon, for the matrices."""
    momentum: float = 0.95
    """Of Muon: the share of the direction before that each step keeps."""
    beta1: float = 0.9
    """Adam(W)'s, of the mean of the gradient."""
    beta2: float = 0.999
    """Adam(W)'s, of the mean of its square."""
    epsilon: float = 1e-8
    """Adam(W)'s, added to the root of that mean."""
    weight_decay: float = 0.0
    """Not for "adam"; of matrices only."""
    schedule: RateSchedule = "constant"
    """How the rates change after the warm-up: "constant", "reciprocal-square-root", "cosine" or
    "flat", which falls to zero at the end."""
    warm_up: int = 5000
    """The first steps, in which the rates grow from zero."""
    period: int = 100_000
    """Of the cosine; its first cycle starts with the warm-up."""
    cool_down: float = 0.4
    """Of "flat": the share of all steps, the last ones, in which the rates fall to zero."""
    clip: float = 1.0
    """The longest gradient; longer ones are shortened. 0: no limit."""
    average_decay: float = 0.0
    """Of the moving average of the weights (EMA); 0: none is kept."""

    def __post_init__(self) -> None:
        checks.choice("optimizer.name", self.name, get_args(OptimizerName))
        checks.choice("optimizer.schedule", self.schedule, get_args(RateSchedule))
        for name in ("learning_rate", "muon_learning_rate", "epsilon"):
            checks.number(f"optimizer.{name}", getattr(self, name), least=0.0, more=True)
        for name in ("momentum", "beta1", "beta2", "average_decay"):
            checks.number(f"optimizer.{name}", getattr(self, name), least=0.0, below=1.0)
        if self.embedding_learning_rate is not None:
            name, rate = "optimizer.embedding_learning_rate", self.embedding_learning_rate
            checks.number(name, rate, least=0.0, more=True)
        if self.cool_down != 1.0:
            checks.number("optimizer.cool_down", self.cool_down, least=0.0, below=1.0)
        for name in ("weight_decay", "clip"):
            checks.number(f"optimizer.{name}", getattr(self, name), least=0.0)
        checks.integer("optimizer.warm_up", self.warm_up, least=0)
        checks.integer("optimizer.period", self.period, least=1)
        if self.name == "adam" and self.weight_decay:
            raise ValueError(
                f"optimizer.weight_decay must be 0 for 'adam', got {self.weight_decay}; "
                "take 'adamw' or 'muon'"
            )


@dataclass(frozen=True)
class TrainingSection:
    """The loop."""

    steps: int = 1000
    """Updates of the weights."""
    batch_size: int = 32
    """Sequences a step, of all processes and micro-batches together."""
    accumulate: int = 1
    """Micro-batches that a process cuts its part of a batch into, to save memory."""
    seed: int = 0
    """Of weights, data and noise."""
    times: TimeChoice = "uniform"
    """How often each t is trained: alike, by the size of its term, or small t more, which then also
    counts more."""
    frozen: Frozen = "nothing"
    """What the model learns to take as given: "nothing", random "spans", or the "source" of a pair,
    which ends at its first tab. Then only the free tokens are trained."""
    frozen_share: float = 0.5
    """The share of the examples in which something is frozen; the others keep it a model of whole
    sequences."""
    drop_source: float = 0.0
    """The share of the frozen sources that are emptied, for guidance."""
    sort_by_length: bool = False
    """Whether batches hold sequences of like lengths, which leaves less padding."""
    edit_samples: int = 1
    """Edit summaries that the loss of one x_t averages over."""
    marginalize: bool = False
    """Whether the loss averages over all edit summaries exactly: slower, with less noise."""
    precision: Precision = "auto"
    """Of the network in training: "auto" is bfloat16 where the processor has it, or what
    `accelerate launch` was told, otherwise float32. The loss is never in bfloat16."""
    compile: bool = False
    """Whether torch.compile prepares the network."""
    bad_steps: int = 3
    """Steps with a loss or gradient that is no number which are left out before the run stops."""
    save_every: int = 500
    """Steps between checkpoints."""
    keep: int = 2
    """The newest checkpoints that stay; the best one stays too."""
    log_every: int = 10
    """Steps between records of the loss."""
    tensorboard: bool = True
    """Whether records are written for TensorBoard too."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "accumulate"):
            checks.integer(f"training.{name}", getattr(self, name), least=1)
        checks.integer("training.edit_samples", self.edit_samples, least=1, most=1000)
        for name in ("save_every", "keep", "log_every"):
            checks.integer(f"training.{name}", getattr(self, name), least=1)
        for name in ("seed", "bad_steps"):
            checks.integer(f"training.{name}", getattr(self, name), least=0)
        checks.choice("training.times", self.times, get_args(TimeChoice))
        checks.choice("training.precision", self.precision, get_args(Precision))
        checks.choice("training.frozen", self.frozen, get_args(Frozen))
        for name in ("frozen_share", "drop_source"):
            if getattr(self, name) != 1.0:
                checks.number(f"training.{name}", getattr(self, name), least=0.0, below=1.0)
        if self.drop_source and self.frozen != "source":
            raise ValueError(
                f"training.drop_source must be 0 unless training.frozen = 'source', got "
                f"{self.drop_source}"
            )
        for name in ("sort_by_length", "marginalize", "compile", "tensorboard"):
            checks.flag(f"training.{name}", getattr(self, name))
        if self.batch_size % self.accumulate:
            raise ValueError(
                f"training.batch_size must be a multiple of training.accumulate = "
                f"{self.accumulate}, got {self.batch_size}"
            )

    def freezing(self, vocabulary: Vocabulary) -> Freezing | None:
        """How the examples are frozen, if they are."""
        if self.frozen == "nothing":
            return None
        return Freezing.of(self.frozen, vocabulary, share=self.frozen_share, drop=self.drop_source)


@dataclass(frozen=True)
class ValidationSection:
    """What is measured during training, on the same data and with the same noise each time."""

    every: int = 500
    """Steps between validations."""
    examples: int = 128
    """Sequences whose bound is estimated."""
    num_times: int | None = None
    """The most t per sequence that the bound takes; None: all of them."""
    samples: int = 32
    """Sequences to generate; 0: none."""
    batch_size: int = 64
    """Sequences at a time."""

    def __post_init__(self) -> None:
        for name in ("every", "batch_size"):
            checks.integer(f"validation.{name}", getattr(self, name), least=1)
        # A standard error takes two.
        checks.integer("validation.examples", self.examples, least=2)
        checks.integer("validation.samples", self.samples, least=0)
        if self.num_times is not None:
            checks.integer("validation.num_times", self.num_times, least=1)


@dataclass(frozen=True)
class TrainingConfig:
    """All settings of a run.

    >>> TrainingConfig(DataSection("arithmetic"), training=TrainingSection(batch_size=0))
    Traceback (most recent call last):
        ...
    ValueError: training.batch_size must be an integer ≥ 1, got 0
    """

    data: DataSection
    process: ProcessSection | None = field(default_factory=ProcessSection)
    """None: the model was given in Python, with its forward process."""
    model: ModelSection | None = field(default_factory=ModelSection)
    """None: the model was given in Python."""
    optimizer: OptimizerSection = field(default_factory=OptimizerSection)
    training: TrainingSection = field(default_factory=TrainingSection)
    validation: ValidationSection = field(default_factory=ValidationSection)

    def open_data(self) -> BatchStream:
        """The data of the run."""
        if self.data.name == GIVEN_DATA:
            raise ValueError("the data of this run was given in Python: name what to use instead")
        return open_data(self.data.name, **self.data.options, seed=self.training.seed)

    def denoiser_config(self, data: BatchStream) -> DenoiserConfig:
        """The denoiser of the run, as a configuration."""
        if self.process is None or self.model is None:
            raise ValueError("the model of this run was given in Python: no settings describe it")
        schedule = self.process.schedule(data.vocabulary.size)
        config = self.model.denoiser_config(data, schedule)
        self.training.freezing(data.vocabulary)
        others = [
            self.process.schedule(data.vocabulary.size, number)
            for number in self.process.other_num_steps
        ]
        config = replace(
            config,
            frozen=self.training.frozen,
            drops_source=self.training.drop_source > 0,
            noise_levels=bool(others) and config.time_embedding,
            other_schedules=tuple(others),
        )
        if config.limit_length and config.max_length < data.max_length:
            raise ValueError(
                f"model.max_length must be at least the longest sequence of the data, "
                f"{data.max_length}, got {config.max_length}"
            )
        return config

    def denoiser(self, data: BatchStream) -> Denoiser:
        """The untrained denoiser of the run, a pure function of the config."""
        generator = torch.Generator().manual_seed(self.training.seed)
        # Layers draw throw-away weights before they get the generator's.
        with torch.random.fork_rng(devices=[]):
            return Denoiser(self.denoiser_config(data), generator=generator)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data from which `from_dict` makes an equal config."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrainingConfig:
        """The config of nested tables; unknown names are errors."""
        data = with_new_names(data)
        sections = {each.name: each for each in fields(cls)}
        for name in data:
            if name not in sections:
                hint = checks.closest(name, sections)
                raise ValueError(
                    f"there is no section {name!r}{hint}; known: {', '.join(sections)}"
                )
        built = {name: _section(name, _SECTIONS[name], values) for name, values in data.items()}
        if "data" not in built:
            raise ValueError("data.name must be given: the name of a data set")
        return cls(**built)


_SECTIONS: dict[str, type] = {
    "data": DataSection,
    "process": ProcessSection,
    "model": ModelSection,
    "optimizer": OptimizerSection,
    "training": TrainingSection,
    "validation": ValidationSection,
}


def _section(name: str, section: type, values: object) -> Any:
    if values is None and section in (ProcessSection, ModelSection):
        return None
    if not isinstance(values, Mapping):
        raise ValueError(f"{name} must be a table of settings, got {values!r}")
    known = [each.name for each in fields(section)]
    for key in values:
        if key not in known:
            hint = checks.closest(str(key), known)
            raise ValueError(f"there is no setting {name}.{key}{hint}; known: {', '.join(known)}")
    if section is DataSection and "name" not in values:
        raise ValueError("data.name must be given: the name of a data set")
    return section(**values)
