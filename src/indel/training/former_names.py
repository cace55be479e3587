"""Settings of earlier versions: what they are called now."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger(__name__)


def with_new_names(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of earlier versions under today's names."""
    return _limit_of_the_model(_american(data))


_AMERICAN = (
    ((), "optimiser", "optimizer"),
    (("training",), "marginalise", "marginalize"),
    (("data", "options"), "normalise", "normalize"),
)
"""Names of earlier versions: in which table, what they were and what they are."""


def _american(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """British names of earlier versions become American."""
    for table, former, now in _AMERICAN:
        data = _renamed(data, table, former, now)
    return data


def _renamed(
    data: Mapping[str, Any], table: tuple[str, ...], former: str, now: str
) -> Mapping[str, Any]:
    """With what is called `former` in a table under its name of now; tables are merged."""
    if table:
        inner = data.get(table[0])
        if not isinstance(inner, Mapping):
            return data
        return {**data, table[0]: _renamed(inner, table[1:], former, now)}
    if former not in data:
        return data
    _log.warning("%r of a config is called %r now", former, now)
    rest = {name: value for name, value in data.items() if name != former}
    old, new = data[former], data.get(now, {})
    both = isinstance(old, Mapping) and isinstance(new, Mapping)
    return {**rest, now: {**new, **old} if both else old}


def _limit_of_the_model(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The length limit, once a setting of training, is one of the model."""
    training, model = data.get("training"), data.get("model")
    if not isinstance(training, Mapping) or "limit_length" not in training:
        return data
    rest = {name: value for name, value in training.items() if name != "limit_length"}
    limited = {**(model or {}), "limit_length": training["limit_length"]}
    return {**data, "training": rest, "model": limited}
