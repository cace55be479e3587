"""What a trained model says about itself: how it was made and how well it does."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from indel.bound.estimates import BoundEstimate
from indel.model import Denoiser
from indel.training import TrainingConfig, config_to_toml

CONFIG = "training.toml"
CURVE = "curve.png"


@dataclass(frozen=True)
class Origin:
    """The run that a model comes from."""

    config: TrainingConfig
    steps: int
    seconds: float
    records: Sequence[Mapping[str, Any]]

    @property
    def examples(self) -> int:
        """Sequences seen."""
        return self.steps * self.config.training.batch_size


@dataclass(frozen=True)
class Measured:
    """The bound on data that was not trained on."""

    estimate: BoundEstimate
    command: str
    tokens: int | None
    """In one sequence, where all have equally many."""


def public_config(config: TrainingConfig) -> str:
    """The config as TOML, without the place of the data on the machine that trained."""
    data = config.to_dict()
    data["data"]["options"].pop("path", None)
    return config_to_toml(TrainingConfig.from_dict(data))


def model_card(title: str, denoiser: Denoiser, origin: Origin, measured: Measured) -> str:
    """The card as Markdown; every number comes from the run's files or was measured just now."""
    section, process = origin.config.training, origin.config.process
    rate = "" if process is None else f", insert/delete rate {process.rate:g}"
    bits, bits_error = measured.estimate.bits_per_token
    nats, nats_error = measured.estimate.nats_per_sequence
    parameters = sum(weight.numel() for weight in denoiser.parameters())
    facts = {
        "data": f"{origin.config.data.name}, its training part",
        "forward process": f"T = {denoiser.schedule.num_steps}{rate}",
        "parameters": f"{parameters:,}",
        **_start(denoiser, origin),
        "command": f"`indel train --config {CONFIG} --data …` ({CONFIG} is beside this card)",
        "updates": f"{origin.steps:,} of {section.batch_size} sequences, seed {section.seed}",
        "seen": f"{origin.examples:,} sequences{_tokens(origin, measured)}",
        "hours": f"{origin.seconds / 3600:.2f}",
        "bits per token": f"{bits:.4f} ± {bits_error:.4f}",
        "nats per sequence": f"{nats:.2f} ± {nats_error:.2f}",
        "measured by": f"`{measured.command}`",
        "made with": f"torch {torch.__version__}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {datetime.now(UTC):%Y-%m-%d}",
    }
    return (
        f"{_opening(title)} The bound on the log-likelihood is that of held-out data, with its "
        f"standard error; lower is better.\n\n{_table(facts)}\n"
        f"![The loss during training and the bound on validation data]({CURVE})\n"
    )


def plain_card(title: str, denoiser: Denoiser) -> str:
    """The card of a model of which nothing is known but itself."""
    facts = {
        "tokens": f"{denoiser.vocabulary.size:,}, {type(denoiser.vocabulary).__name__}",
        "forward process": f"T = {denoiser.schedule.num_steps}",
        "longest sequence": f"{denoiser.config.max_length:,} tokens",
        "parameters": f"{sum(weight.numel() for weight in denoiser.parameters()):,}",
    }
    return f"{_opening(title)} How good it is was not measured for this card.\n\n{_table(facts)}"


def usage(repository: str) -> str:
    """The section of a card on how to use a model that lies on the Hub."""
    return (
        "## Use\n\n```sh\npip install indel\n"
        f"indel sample {repository}\n```\n\n"
        "```python\nimport indel\n\n"
        f'model = indel.load("{repository}")\n'
        'print(*indel.generate(model, 3, seed=0).texts, sep="\\n")\n```\n'
    )


def _opening(title: str) -> str:
    return (
        f"---\nlibrary_name: indel\ntags: [discrete-diffusion]\n---\n\n# {title}\n\n"
        "A denoiser of indel, diffusion over sequences that can insert, delete and replace "
        "tokens ([paper](https://arxiv.org/abs/2107.07675))."
    )


def _table(facts: Mapping[str, str]) -> str:
    rows = "".join(f"| {name} | {value} |\n" for name, value in facts.items())
    return f"| | |\n|---|---|\n{rows}"


def _start(denoiser: Denoiser, origin: Origin) -> dict[str, str]:
    """What training began with, besides random weights."""
    found, model = {}, origin.config.model
    if denoiser.prior is not None:
        contexts = int((denoiser.prior.last >= 0).sum())
        found["counts"] = f"{contexts:,} contexts, whose exact posterior the network corrects"
    if model is not None and model.start is not None:
        found["started from"] = f"the weights of {Path(model.start).name}"
    return found


def _tokens(origin: Origin, measured: Measured) -> str:
    return "" if measured.tokens is None else f", {origin.examples * measured.tokens:,} tokens"


def draw_curve(origin: Origin, path: Path) -> None:
    """The training loss, averaged over a fiftieth of the run, and the bound on validation data."""
    from indel.drawing.learning_curves import Curve, draw_learning_curves

    batch = origin.config.training.batch_size
    train = [record for record in origin.records if record["kind"] == "train"]
    size = max(1, len(train) // 50)
    chunks = [train[start : start + size] for start in range(0, len(train), size)]
    loss = Curve(
        [chunk[-1]["step"] * batch for chunk in chunks],
        [sum(record["loss"] for record in chunk) / len(chunk) for chunk in chunks],
    )
    validation = [record for record in origin.records if record["kind"] == "validation"]
    bound = Curve(
        [record["step"] * batch for record in validation],
        [record["bits_per_token"] for record in validation],
    )
    figure = draw_learning_curves(
        {"training loss": {"loss": [loss]}, "validation, bits per token": {"bound": [bound]}}
    )
    figure.axes[0].set_ylim(bottom=None, auto=True)
    figure.savefig(path, dpi=90)
