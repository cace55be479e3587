"""The run-time type checker of the tests: beartype, with an int accepted as a float.

Checking takes longer than most of the functions that are checked, and a loop calls them with the
same shapes again and again. So in each test the first calls of each function are checked.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype

CALLS = 3
"""How many calls of each function are checked in each test."""

checker = beartype(conf=BeartypeConf(is_pep484_tower=True))
_always = jaxtyping.jaxtyped
_tests = 0


def next_test() -> None:
    """From here on the first calls are checked again."""
    global _tests
    _tests += 1


def at_first(given: Any = None, *, typechecker: Callable[..., Any]) -> Any:
    """Stands for `jaxtyping.jaxtyped`, which the import hook puts before functions and classes."""
    if given is None:
        return functools.partial(at_first, typechecker=typechecker)
    if inspect.isclass(given):
        if dataclasses.is_dataclass(given) and not hasattr(given.__init__, "checked_at_first"):
            given.__init__ = _checked_at_first(given.__init__, typechecker)  # type: ignore[misc]
        return given
    if not inspect.isfunction(given):
        return _always(given, typechecker=typechecker)
    return _checked_at_first(given, typechecker)


def _checked_at_first(function: Callable[..., Any], typechecker: Callable[..., Any]) -> Any:
    checked: Callable[..., Any] | None = None
    test, left = -1, 0

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked, test, left
        if test != _tests:
            test, left = _tests, CALLS
        if not left:
            return function(*args, **kwargs)
        left -= 1
        if checked is None:
            # Made when it is needed: that takes longer than the import of a module.
            checked = _always(function, typechecker=typechecker)
        return checked(*args, **kwargs)

    call.checked_at_first = True  # type: ignore[attr-defined]
    return call
