"""Where a config comes from (preset, TOML file, single settings) and how it is written."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from indel.atomic_files import whole_file
from indel.training.config import TrainingConfig, TrainingSection
from indel.training.presets import recipe, training_preset

TOML_NAME = "config.toml"
JSON_NAME = "config.json"


def load_config(
    task: str | None = None,
    scale: str = "laptop",
    *,
    file: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> TrainingConfig:
    """The preset of a task and scale, changed by a TOML file, changed by single settings.

    Overrides are dotted names and values, such as {"training.steps": 100}. Without a task the
    file must say everything that has no default, as the files that `config_to_toml` writes do; the
    optimizer's defaults are then those of data of one's own, scaled to the number of steps.

    >>> config = load_config("arithmetic", "tiny", overrides={"training.batch_size": 8})
    >>> config.training.batch_size
    8
    """
    changes: dict[str, Any] = {}
    if file is not None:
        _merge(changes, _read_toml(Path(file)))
    for name, value in (overrides or {}).items():
        _merge(changes, _nested(name, value))
    settings: dict[str, Any] = {}
    if task is not None:
        _merge(settings, training_preset(task, scale, steps=_steps(changes)))
    else:
        steps = _steps(changes) or TrainingSection.steps
        settings["optimizer"] = recipe(steps)["optimizer"]
    data = changes.get("data")
    if isinstance(data, Mapping) and data.get("name", task) != task:
        settings["data"] = {}  # options of a preset are for its own data
    _merge(settings, changes)
    try:
        return TrainingConfig.from_dict(settings)
    except ValueError as error:
        if file is None:
            raise
        raise ValueError(f"{error} (after reading {file})") from None


def changed(config: TrainingConfig, overrides: Mapping[str, Any]) -> TrainingConfig:
    """A config with single settings changed; names are dotted."""
    settings = json.loads(json.dumps(config.to_dict()))
    for name, value in overrides.items():
        _merge(settings, _nested(name, value))
    return TrainingConfig.from_dict(settings)


def parse_value(text: str) -> Any:
    """What a value on a command line means: as in TOML if it is that, and else the text itself.

    >>> parse_value("1e-3"), parse_value("true"), parse_value("uniform")
    (0.001, True, 'uniform')
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:  # no TOML, or an integer of thousands of digits
        return text
    except RecursionError:
        raise ValueError(f"a value is nested too deeply: {text[:40]}…") from None


def config_to_toml(config: TrainingConfig) -> str:
    """The whole config as TOML; a setting that is None, which TOML lacks, is left out."""
    return "\n".join(_tables("", config.to_dict())).strip() + "\n"


def write_config_files(config: TrainingConfig, folder: Path) -> None:
    """Write the config of a run as TOML and as JSON, each whole or not at all."""
    texts = {TOML_NAME: config_to_toml(config), JSON_NAME: json.dumps(config.to_dict(), indent=2)}
    for name, text in texts.items():
        with whole_file(folder / name) as file:
            file.write(f"{text.rstrip()}\n".encode())


def flat_settings(config: TrainingConfig) -> dict[str, Any]:
    """Dotted names and values of all settings."""
    return {
        f"{section}.{name}": value
        for section, values in config.to_dict().items()
        for name, value in (values or {}).items()
    }


def _steps(settings: Mapping[str, Any]) -> int | None:
    """The number of steps asked for, if it is one; what is wrong with it is found out later."""
    training = settings.get("training")
    steps = training.get("steps") if isinstance(training, Mapping) else None
    return steps if type(steps) is int and steps > 0 else None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no config file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the config file {path}: {error}") from None
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path} is not TOML: {error}") from None


def _nested(dotted: str, value: Any) -> dict[str, Any]:
    section, _, rest = dotted.partition(".")
    if not rest:
        raise ValueError(
            f"a setting is written section.name, such as training.steps; got {dotted!r}"
        )
    # The options of data are a table of their own.
    inner, _, option = rest.partition(".")
    return {section: {inner: {option: value}} if option else {inner: value}}


def _merge(settings: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for name, value in changes.items():
        if isinstance(value, Mapping):
            table = settings.setdefault(name, {})
            if not isinstance(table, dict):
                raise ValueError(f"{name} is one value, not a table; got {dict(value)!r}")
            _merge(table, value)
        else:
            settings[name] = value


def _tables(name: str, table: Mapping[str, Any]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    lines = [f"\n[{name}]"] if name and (plain or not table) else []
    lines += [f"{_key(key)} = {_toml(value)}" for key, value in plain.items() if value is not None]
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            lines += _tables(f"{name}.{_key(key)}" if name else _key(key), value)
    return lines


def _key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else _toml(name)


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if not isinstance(value, str | int | float):
        raise ValueError(f"a setting must be text, a number, true, false or a list; got {value!r}")
    # JSON's texts, numbers and truth values are TOML's too, but for one character.
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")
