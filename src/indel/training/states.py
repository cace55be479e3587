"""The state of model and optimizers as named whole tensors, however many processes share it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)

_GATHERED = StateDictOptions(full_state_dict=True, cpu_offload=True)
_SCATTERED = StateDictOptions(full_state_dict=True)
_SEPARATOR = "/"


def gather_weights(model: nn.Module, prefix: str) -> dict[str, Tensor]:
    """All weights by their name without the prefix; with several processes, on the first alone."""
    weights = get_model_state_dict(model, options=_GATHERED)
    return {name.removeprefix(prefix): _whole(value) for name, value in weights.items()}


def scatter_weights(model: nn.Module, weights: dict[str, Tensor], prefix: str) -> None:
    """Give each process its part of all weights."""
    named: dict[str, Any] = {prefix + name: value for name, value in weights.items()}
    set_model_state_dict(model, named, options=_SCATTERED)


def gather_optimizers(
    model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]
) -> dict[str, Tensor]:
    """What the optimizers remember of each parameter."""
    state: Any = get_optimizer_state_dict(model, optimizers, options=_GATHERED)
    return {
        f"{name}{_SEPARATOR}{quantity}": _whole(value)
        for name, quantities in state.get("state", {}).items()
        for quantity, value in quantities.items()
    }


def scatter_optimizers(
    model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], saved: dict[str, Tensor]
) -> None:
    """Let the optimizers remember again what `gather_optimizers` read off them."""
    # Learning rates are set anew in each step: the groups stay as they are.
    state: Any = get_optimizer_state_dict(model, optimizers, options=_SCATTERED)
    by_name: dict[str, dict[str, Tensor]] = {}
    for key, value in saved.items():
        name, _, quantity = key.rpartition(_SEPARATOR)
        by_name.setdefault(name, {})[quantity] = value
    state["state"] = by_name
    set_optimizer_state_dict(model, optimizers, optim_state_dict=state, options=_SCATTERED)


def _whole(value: Any) -> Tensor:
    """A copy on the CPU that shares no memory: training goes on while it is written."""
    return torch.as_tensor(value).detach().to("cpu", copy=True).contiguous()
