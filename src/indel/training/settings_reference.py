"""What each setting of a run means: `indel train --help-settings` and the page of the settings."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from indel.data.registry import data_options
from indel.training.config import TrainingConfig

_KINDS: dict[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
    dict: "a table",
    Sequence: "a list",
}


class Setting(NamedTuple):
    """One setting, as a config names it."""

    name: str
    kind: str
    """What values it takes."""
    default: str | None
    """As TOML writes it; None: it must be given."""
    text: str


def sections() -> Iterator[tuple[str, str, list[Setting]]]:
    """The name of each section of a config, what it is, and its settings."""
    for name, hint in get_type_hints(TrainingConfig).items():
        # A section that may be left out is a union with None.
        section: Any = next(each for each in (*get_args(hint), hint) if inspect.isclass(each))
        texts, hints = _field_docstrings(section), get_type_hints(section)
        found = [
            Setting(
                f"{name}.{each.name}", _kind(hints[each.name]), _default(each), texts[each.name]
            )
            for each in fields(section)
        ]
        about = (inspect.getdoc(section) or "").partition("\n\n")[0]
        yield name, _in_toml(about), found


def settings_reference() -> str:
    """All settings, as text that reads alike in a terminal and as Markdown.

    >>> print(settings_reference()[:300].partition("`data.options`")[0].rstrip())
    ## data
    <BLANKLINE>
    Which data, by the name and the options of `indel.data.open_data`.
    <BLANKLINE>
    `data.name` (a text; must be given)
    :   Which data: arithmetic, text8, lines:FILE and so on, as `indel train` takes it.
    """
    parts = []
    for name, about, settings in sections():
        parts.append(f"## {name}\n\n{about}\n")
        for each in settings:
            default = "must be given" if each.default is None else f"default: {each.default}"
            parts.append(f"`{each.name}` ({each.kind}; {default})\n:   {each.text}\n")
        if name == "data":
            parts += [_options_of_data()]
    return "\n".join(parts)


def _options_of_data() -> str:
    """The keys of `data.options`, for each data."""
    lines = []
    for name, options in data_options().items():
        shown = ", ".join(f"{key} = {_written(value)}" for key, value in options.items())
        lines.append(f"- `{name}`: {shown}.\n")
    return "The options by data, with their defaults:\n\n" + "".join(lines)


def _field_docstrings(section: type) -> dict[str, str]:
    """The string right below each field, which Python itself does not keep."""
    (definition,) = ast.parse(inspect.getsource(section)).body
    assert isinstance(definition, ast.ClassDef)
    texts = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = _in_toml(" ".join(text.split()))
    return texts


def _in_toml(text: str) -> str:
    """A file of settings knows no None."""
    return text.replace("None:", "unset:")


def _kind(hint: Any) -> str:
    """What values a type allows, in words.

    >>> _kind(Literal["adam", "muon"]), _kind(int | None)
    ('"adam" or "muon"', 'an integer')
    """
    if get_origin(hint) is Literal:
        return " or ".join(json.dumps(each) for each in get_args(hint))
    for each in get_args(hint) if NoneType in get_args(hint) else (hint,):
        kind = _KINDS.get(get_origin(each) or each)
        if kind is not None:
            return kind
    raise TypeError(f"there is no word for the values of {hint!r}")


def _default(field: Field[Any]) -> str | None:
    if field.default_factory is not MISSING:
        return _written(field.default_factory())
    return None if field.default is MISSING else _written(field.default)


def _written(value: object) -> str:
    """As TOML writes it."""
    return "unset" if value is None else json.dumps(value)
