"""The reward that a command names: a function in a module of the user's."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from indel.sampling.rewards import Reward


def open_reward(name: str) -> Reward:
    """The function named MODULE:FUNCTION, from the working folder or anything installed.

    The module is imported, so its code runs: the user names it, nothing else ever does.
    """
    module, _, function = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), function)):
        raise ValueError(f"--reward takes MODULE:FUNCTION, such as rewards:shortness, got {name!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), function, None)
    except Exception as error:  # whatever a module of the user's raises
        raise ValueError(
            f"--reward {name}: importing {module!r} failed: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise ValueError(f"--reward {name}: module {module!r} has no function {function!r}")
    reward: Reward = found
    return reward
