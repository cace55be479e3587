"""The Markdown files are true: examples run, files and dependencies listed there exist.

python tests/test_docs.py    writes the README's map of the package anew
"""

from __future__ import annotations

import ast
import doctest
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
MAP_START, MAP_END = "<!-- map: python tests/test_docs.py writes it -->\n", "<!-- end of map -->\n"


def read(path: str | Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


# ---------------------------------------------------------------- examples


def examples(text: str, name: str) -> doctest.DocTest:
    """All fenced blocks of Python of a page, one after the other; the rest becomes blank lines."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            line = ""
        kept.append(line if inside else "")
    return doctest.DocTestParser().get_doctest("\n".join(kept) + "\n", {}, name, name, 0)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run(page: Path) -> None:
    test = examples(read(page), name_of(page))
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=failures.append)
    assert not failures, "".join(failures)


def test_pages_for_users_have_examples() -> None:
    for page in (
        *("README.md", "CONTRIBUTING.md"),
        *("docs/process.md", "docs/model.md", "docs/training.md"),
    ):
        assert examples(read(page), page).examples, page


def test_every_block_of_python_is_an_example() -> None:
    for page in PAGES:
        for block in re.findall(r"^```python\n(.*?)^```", read(page), re.MULTILINE | re.DOTALL):
            assert block.startswith(">>> "), f"{name_of(page)}: not run:\n{block}"


# ---------------------------------------------------------------- files


def package_map() -> str:
    """Each module of the package with the first paragraph of its docstring."""
    folders: dict[Path, list[str]] = {}
    for path in sorted((ROOT / "src/indel").rglob("*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        about = " ".join(docstring.partition("\n\n")[0].split()).rstrip(".")
        relative = path.relative_to(ROOT)
        folders.setdefault(relative.parent, []).append(f"- `{relative.as_posix()}` — {about}\n")
    parts = [f"`{folder.as_posix()}/`\n\n{''.join(lines)}" for folder, lines in folders.items()]
    return MAP_START + "\n" + "\n".join(parts) + "\n" + MAP_END


def test_map_lists_what_the_package_holds() -> None:
    readme = read("README.md")
    found = readme[readme.index(MAP_START) : readme.index(MAP_END) + len(MAP_END)]
    # First the files, whose absence says more than a difference of two long texts.
    existing = {p.relative_to(ROOT).as_posix() for p in (ROOT / "src/indel").rglob("*.py")}
    assert {path for path, _ in mapped(found)} == existing, "run: python tests/test_docs.py"
    assert found == package_map(), "docstrings have changed; run: python tests/test_docs.py"


def test_every_module_says_what_it_is() -> None:
    assert not [path for path, about in mapped(package_map()) if not about]


def test_everything_on_the_map_exists() -> None:
    listed = [path for path, _ in mapped(read("README.md").partition("## Map")[2])]
    assert len(set(listed)) == len(listed)
    for path in listed:
        assert (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file(), path


def mapped(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^- `([^`]+)` —(.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_files_lead_somewhere(page: Path) -> None:
    headings = {anchor(line) for line in read(page).splitlines() if line.startswith("#")}
    for target in re.findall(r"\]\(([^)\s]+)\)", read(page)):
        if "://" not in target:
            path, _, fragment = target.partition("#")
            assert (page.parent / path).exists(), target
            assert not fragment or path or fragment in headings, target


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lstrip("# ").lower()).replace(" ", "-")


def test_every_make_target_named_exists_and_is_explained() -> None:
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", read(page), re.MULTILINE))
        assert {one or other for one, other in named} <= targets, name_of(page)
    assert targets == set(re.findall(r"^\| `make ([a-z-]+)` \|", read("CONTRIBUTING.md"), re.M))


# ---------------------------------------------------------------- dependencies


def declared() -> dict[str, set[str]]:
    """The packages of each group in pyproject.toml, without their versions."""
    project = tomllib.loads(read("pyproject.toml"))
    groups = {
        "dependencies": project["project"]["dependencies"],
        "build-system": project["build-system"]["requires"],
        **project["project"]["optional-dependencies"],
    }
    names = {group: {re.split(r"[^\w.-]", each)[0] for each in groups[group]} for group in groups}
    return {group: {canonical(name) for name in names[group]} - {"indel"} for group in groups}


def canonical(name: str) -> str:
    return name.lower().replace("-", "_")


def explained() -> dict[str, set[str]]:
    """The packages under each heading of docs/dependencies.md."""
    sections = re.split(r"^## ", read("docs/dependencies.md"), flags=re.MULTILINE)[1:]
    listed = {}
    for section in sections:
        lines = re.findall(r"^\| `([^`]+)` \| (.+) \|$", section, re.MULTILINE)
        assert all(about.endswith(".") for _, about in lines), section
        listed[section.partition("\n")[0].strip("`")] = {canonical(name) for name, _ in lines}
    return listed


def imported() -> Iterator[str]:
    """The packages of others that the modules of indel import, wherever in the file."""
    for path in (ROOT / "src/indel").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names):
                    yield from (name.name.partition(".")[0] for name in names)
                case ast.ImportFrom(module=str(module)):
                    yield module.partition(".")[0]
                case ast.Call(ast.Attribute(attr="import_module"), [ast.Constant(str(module))]):
                    yield module.partition(".")[0]


def test_every_dependency_is_explained_and_nothing_else() -> None:
    listed = explained()
    listed.pop("Not declared")
    assert listed == declared()


def test_everything_imported_is_declared_or_said_not_to_be() -> None:
    others = {canonical(name) for name in imported()} - sys.stdlib_module_names - {"indel"}
    known = set().union(*declared().values())
    assert others - known == explained()["Not declared"]


if __name__ == "__main__":
    readme = read("README.md")
    head, tail = readme.partition(MAP_START)[0], readme.partition(MAP_END)[2]
    (ROOT / "README.md").write_text(head + package_map() + tail, encoding="utf-8")
