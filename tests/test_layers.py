"""Which package may import which: arrows point one way, from what users see down to the process."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "indel"

FOUNDATION = {
    *("batch", "vocabularies", "randomness", "log_space", "levenshtein"),
    *("atomic_files", "extras", "checks", "sharing", "processor"),
}
ALLOWED: dict[str, set[str]] = {
    **{room: {"extras", "batch", "randomness", "checks"} for room in FOUNDATION},
    "native": {"atomic_files", "processor"},
    "process": FOUNDATION | {"native"},
    "model": FOUNDATION | {"native", "process", "pretrained"},
    "bound": FOUNDATION | {"process", "model"},
    "sampling": FOUNDATION | {"process", "model"},
    "data": FOUNDATION,
    # Pictures know results, not models.
    "drawing": FOUNDATION | {"process", "sampling"},
    "training": FOUNDATION | {"process", "model", "bound", "sampling", "data"},
    "comparison": FOUNDATION | {"process", "model", "bound", "sampling", "data", "training"},
    "pretrained": set(),
    "loading": FOUNDATION | {"model", "pretrained", "training"},
    "api": FOUNDATION | {"process", "model", "bound", "sampling", "data"},
    "molecules": FOUNDATION | {"process", "model", "bound", "sampling", "data", "drawing"},
    "text_repair": FOUNDATION | {"process", "model", "sampling", "data", "loading"},
}
"""What is not listed here (command, page, experiments, the front door …) is seen by users."""
FOR_USERS = {"__init__", "__main__", "cli", "commands", "web", "experiments", "comparison"}


def room_of(parts: tuple[str, ...]) -> str:
    """The package or module right below `indel`."""
    return parts[0].removesuffix(".py")


def imports_between_rooms() -> Iterator[tuple[str, str, str]]:
    """(importing room, imported room, where), imports inside of functions included."""
    for file in sorted(SOURCE.rglob("*.py")):
        room = room_of(file.relative_to(SOURCE).parts)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                from_top = node.module == "indel"
                names = [f"indel.{each.name}" for each in node.names] if from_top else [node.module]
            elif isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            for name in names:
                if name.startswith("indel."):
                    other = name.split(".")[1]
                    if other != room:
                        yield room, other, f"{file.relative_to(SOURCE)}:{node.lineno}"


def test_every_room_is_known() -> None:
    rooms = {
        room_of(path.relative_to(SOURCE).parts)
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py")))
    }
    assert rooms - FOR_USERS <= ALLOWED.keys(), "say in ALLOWED what a new package may import"
    assert ALLOWED.keys() <= rooms, "ALLOWED lists a package that is gone"


def test_arrows_point_one_way() -> None:
    wrong = [
        f"{where}: {room} must not import {other}"
        for room, other, where in imports_between_rooms()
        if room not in FOR_USERS and other not in ALLOWED[room]
    ]
    assert not wrong, "\n".join(wrong)


def test_there_is_no_cycle() -> None:
    allowed = {room: set(others) & ALLOWED.keys() for room, others in ALLOWED.items()}
    used: dict[str, set[str]] = {room: set() for room in allowed}
    for room, other, _ in imports_between_rooms():
        if room in used and other in used:
            used[room].add(other)
    while used:
        free = {room for room, others in used.items() if not others & used.keys()}
        assert free, f"these import each other in a circle: {sorted(used)}"
        used = {room: others for room, others in used.items() if room not in free}


@pytest.mark.parametrize("room", ["process", "model", "sampling", "bound", "data"])
def test_no_package_reaches_into_private_modules(room: str) -> None:
    """Names with a leading underscore stay in the package that has them."""
    for file in sorted((SOURCE / room).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("indel."):
                other = (node.module or "").split(".")[1]
                private = [each.name for each in node.names if each.name.startswith("_")]
                assert other == room or not private, f"{file.name}:{node.lineno} takes {private}"
