"""Packages that only some users need, each installed by an extra of indel."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


class MissingExtraError(ImportError):
    """A package is not installed; the message names the extra that installs it."""


def require(what: str, package: str, extra: str) -> Any:
    """The package, imported, for what needs it.

    >>> require("arithmetic", "math", "numbers").pi > 3
    True
    >>> require("this page", "no_such_package", "web")
    Traceback (most recent call last):
        ...
    indel.extras.MissingExtraError: this page needs the package no_such_package: \
pip install "indel[web]"
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise _missing(what, error.name or package, extra) from error


def require_installed(what: str, package: str, extra: str) -> None:
    """Like `require`, without importing the package, which may take seconds.

    >>> require_installed("this page", "no_such_package", "web")
    Traceback (most recent call last):
        ...
    indel.extras.MissingExtraError: this page needs the package no_such_package: \
pip install "indel[web]"
    """
    if not installed(package):
        raise _missing(what, package, extra)


def installed(package: str) -> bool:
    """Whether a package can be imported, without importing it.

    >>> installed("math"), installed("no_such_package")
    (True, False)
    """
    try:
        return find_spec(package) is not None
    except ImportError:
        return False


def _missing(what: str, package: str, extra: str) -> MissingExtraError:
    return MissingExtraError(
        f'{what} needs the package {package}: pip install "indel[{extra}]"', name=package
    )
