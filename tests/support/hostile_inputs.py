"""Values, configs, model folders and command lines that nobody should have to expect."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

from indel.training import load_config
from indel.training.config_files import flat_settings

VALUES: list[str] = [
    *("0", "-1", "1", "2", "3.5", "-0.5", "1e308", "1e-308", "nan", "inf", "-inf", "true", "false"),
    *("9" * 400, "-" + "9" * 400, "9" * 5000, str(2**31), str(2**32), str(2**62), str(2**63)),
    *(str(2**64), "1000000007", "[" * 1000 + "]" * 1000, "[" * 30 + "]" * 30, "[]", "{}", "{a=1}"),
    *("[1, 2]", '"text"', "''", "", "\x00", "\ud800", "ü", "none", "null", "1979-05-27", "0x10"),
    *('"' + "a" * 3000 + '"', "../../etc/passwd", "/dev/full", "-", "--", "{a={b={c={d=1}}}}"),
]
DATA_OPTIONS = ("numbers", "max_step", "min_length", "max_length", "chunk_length", "path", "cache")


def setting_names() -> list[str]:
    """All settings of a run and some that do not exist."""
    known = list(flat_settings(load_config("arithmetic", "tiny")))
    return [
        *known,
        *(f"data.options.{name}" for name in DATA_OPTIONS),
        *("data", "x", "training", "training.", ".steps", "model.x", "a.b.c.d", "data.options", ""),
    ]


def overrides(chance: random.Random, names: list[str]) -> list[str]:
    """One to three settings with values of any kind."""
    return [f"{chance.choice(names)}={chance.choice(VALUES)}" for _ in range(chance.randint(1, 3))]


JSON_VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 2, 3.5, 1e308, 10**400, -(10**400), 2**31, 2**62, 2**63, 10**9, 10**15),
    *("", "text", "\ud800", [], {}, [[]], [1, 2], {"kind": "x"}, {"kind": "hugging-face"}, "nan"),
]


def _replaced(chance: random.Random, data: Any) -> Any:
    """The data with one value, anywhere in it, replaced, removed or repeated."""
    if not isinstance(data, dict | list) or not data or chance.random() < 0.15:
        return chance.choice(JSON_VALUES)
    if isinstance(data, list):
        place = chance.randrange(len(data))
        return [_replaced(chance, x) if n == place else x for n, x in enumerate(data)]
    name = chance.choice(list(data))
    if chance.random() < 0.1:
        return {key: value for key, value in data.items() if key != name}
    return {**data, name: _replaced(chance, data[name])}


def damaged_folder(chance: random.Random, source: Path, target: Path) -> None:
    """A copy of the folder of a model in which one file is not what it should be."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    # Else the checksums alone would notice everything.
    (target / "checksums.json").unlink()
    path = target / chance.choice(["config.json", "vocabulary.json", "schedule.json"])
    match chance.randrange(8):
        case 0:
            path.write_bytes(chance.randbytes(chance.randrange(200)))
        case 1:
            depth = chance.choice([100, 1000, 100_000])
            path.write_text("[" * depth + "]" * depth)
        case 2:
            path.write_text('{"a":' * 1000 + "1" + "}" * 1000)
        case 3:
            weights = target / "model.safetensors"
            content = bytearray(weights.read_bytes())
            for _ in range(chance.randint(1, 20)):
                content[chance.randrange(len(content))] = chance.randrange(256)
            weights.write_bytes(content[: chance.choice([len(content), 8, 100, len(content) - 1])])
        case _:
            data = json.loads(path.read_text())
            for _ in range(chance.randint(1, 2)):
                data = _replaced(chance, data)
            # Python writes NaN and Infinity, and halves of characters escaped.
            path.write_text(json.dumps(data))


def command_line(
    chance: random.Random, options: dict[str, list[str]], files: list[str]
) -> list[str]:
    """A command with options and values, most of which do not go together."""
    command = chance.choice(list(options))
    words = [command]
    for _ in range(chance.randint(0, 5)):
        value = chance.choice([*VALUES, *files])
        option = chance.choice([*options[command], "--no-such-option"])
        words += chance.choice([[value], [option], [option, value], [f"{option}={value}"]])
    return [word.replace("\x00", "") for word in words]


def is_one_line(errors: str) -> bool:
    """Whether an error is one line of the program itself."""
    return bool(re.fullmatch(r"indel: .+\n", errors))
