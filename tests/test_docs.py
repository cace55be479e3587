"""The Markdown files are true: examples run, files and dependencies listed there exist."""

from __future__ import annotations

import ast
import doctest
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.denoisers import letter_denoiser

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]


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


USERS = ("tour", "process", "model", "training")


def test_pages_for_users_have_examples() -> None:
    for page in ("CONTRIBUTING.md", *(f"docs/{name}.md" for name in USERS)):
        assert examples(read(page), page).examples, page


# The program of the README is the first one of the tour: another test compares them. Programs with
# outputs are run by tests/docs/test_shown_outputs.py.
PROGRAMS = [
    page for page in PAGES if page.name != "README.md" and 'title="Output"' not in read(page)
]


@pytest.mark.parametrize("quickly", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("page", PROGRAMS, ids=name_of)
def test_programs_run(page: Path, quickly: bool, tmp_path: Path, monkeypatch) -> None:
    """Blocks without prompts are one program; quickly: with tiny networks and two steps."""
    if program := "\n".join(plain_blocks(page)):
        monkeypatch.chdir(tmp_path)
        if quickly:
            program = re.sub(r"\bsteps=[\d_]+", "steps=2", program).replace('"small"', '"tiny"')
            program = program.replace('indel.load("text8")', 'indel.load("./a-model")')
            letter_denoiser(4).save_pretrained(tmp_path / "a-model")
        exec(compile(program, name_of(page), "exec"), {})


def plain_blocks(page: Path) -> list[str]:
    blocks = re.findall(r"^```python\n(.*?)^```", read(page), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if not block.startswith(">>> ")]


def test_the_readme_opens_with_the_first_program_of_the_tour() -> None:
    (block,) = plain_blocks(ROOT / "README.md")
    assert block.removeprefix("import indel\n\n") in plain_blocks(ROOT / "docs/tour.md")


def test_a_list_of_strings_and_a_schedule_of_ones_own_take_ten_lines() -> None:
    (program,) = plain_blocks(ROOT / "docs/training.md")
    for part in ("words = [", "indel.Schedule([", "indel.train(", "indel.generate("):
        assert part in program, part
    assert len([line for line in program.splitlines() if line]) <= 10


# ---------------------------------------------------------------- files


def test_the_tree_lists_every_package_and_nothing_else() -> None:
    tree = re.search(r"^```text\n(.*?)^```", read("README.md"), re.MULTILINE | re.DOTALL)
    assert tree is not None
    inside = re.findall(r"^[├└]── (\S+)  +\S", tree[1], re.MULTILINE)
    packages = {f"{path.parent.name}/" for path in (ROOT / "src/indel").glob("*/__init__.py")}
    assert {name for name in inside if name.endswith("/")} == packages
    outside = re.findall(r"^(\w\S+/)", tree[1], re.MULTILINE)
    for path in (*outside, *(f"src/indel/{name}" for name in inside)):
        assert (ROOT / path).exists(), path


def test_the_readme_is_short() -> None:
    assert len(read("README.md").splitlines()) <= 150


def test_every_module_says_what_it_is() -> None:
    for path in (ROOT / "src/indel").rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_files_lead_somewhere(page: Path) -> None:
    check_links(page, read(page))


def check_links(page: Path, text: str) -> None:
    """Every linked file exists, and every linked heading is in its file."""
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in target:
            path, _, fragment = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), target
            assert not fragment or fragment in anchors(file), target


def test_a_link_that_leads_nowhere_is_seen() -> None:
    page = ROOT / "docs/tour.md"
    for target in ("nowhere.md", "#nowhere", "training.md#nowhere"):
        with pytest.raises(AssertionError, match="nowhere"):
            check_links(page, f"[here]({target})")
    check_links(page, "[here](training.md#config)")


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    return {anchor(line) for line in read(page).splitlines() if line.startswith("#")}


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
    for other in ("Not declared", "Written by hand"):
        listed.pop(other)
    assert listed == declared()


def test_everything_imported_is_declared_or_said_not_to_be() -> None:
    others = {canonical(name) for name in imported()} - sys.stdlib_module_names - {"indel"}
    known = set().union(*declared().values())
    assert others - known == explained()["Not declared"]
