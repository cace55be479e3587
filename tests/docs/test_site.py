"""The site: every public name, command and setting is on it, and it builds strictly, offline."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

import indel
import indel.process
from indel.cli import run
from indel.training.settings_reference import sections, settings_reference
from support.programs import environment

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "tools"))

from command_reference import command_reference, commands  # noqa: E402
from hooks import FROM_ROOT, link, on_page_markdown, with_indices  # noqa: E402


def directives(page: str) -> list[str]:
    """The names whose docstrings a page shows."""
    return re.findall(r"^::: (\S+)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)


# ---------------------------------------------------------------- the reference


def test_every_public_name_is_in_the_reference() -> None:
    shown = directives("reference/python.md")
    assert {f"indel.{name}" for name in indel.__all__} - {"indel.process"} <= set(shown)
    assert len(shown) == len(set(shown))


def test_every_name_of_the_process_is_in_the_reference() -> None:
    shown = {name.rpartition(".")[2] for name in directives("reference/process.md")}
    at_the_door = {name.rpartition(".")[2] for name in directives("reference/python.md")}
    assert set(indel.process.__all__) == shown | (set(indel.process.__all__) & at_the_door)


def test_every_public_name_has_a_docstring() -> None:
    for home in (indel, indel.process):
        for name in home.__all__:
            found = getattr(home, name)
            if inspect.isclass(found) or callable(found):
                assert (found.__doc__ or "").strip(), name


def test_what_is_returned_is_in_the_reference() -> None:
    """A class of indel that a function of the front door returns is described, too."""
    shown = {name.rpartition(".")[2] for name in directives("reference/python.md")}
    for name in indel.__all__:
        if inspect.isfunction(found := getattr(indel, name)):
            returned = str(found.__annotations__.get("return", "None"))
            for each in re.findall(r"\b[A-Z]\w+", returned):
                known = {"None", "Float", "Tensor", "Path", "Any", "Randomness"}
                assert each in shown | known, f"{name} returns {each}"


# ---------------------------------------------------------------- commands and settings


def help_of(name: str) -> str:
    """What `indel NAME --help` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "indel", name, "--help"],
        env=environment(COLUMNS="200"),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("name", ["sample", "train"])
def test_a_command_is_described_as_its_help_says(name: str) -> None:
    written = command_reference()
    section = written.partition(f"## indel {name}\n")[2].partition("\n## ")[0]
    options = set(re.findall(r"(?<!\S)--[a-z][\w-]*", help_of(name))) - {"--help"}
    assert len(options) > 5
    assert options <= set(re.findall(r"--[a-z][\w-]*", section))


def test_every_command_has_a_section_with_a_sentence() -> None:
    written = command_reference()
    names = [name for name, _, _ in commands()]
    assert re.findall(r"^## indel (\S+)$", written, re.MULTILINE) == names
    assert {"train", "sample", "infill", "repair", "evaluate", "serve"} <= set(names)
    for name in names:
        about = written.partition(f"## indel {name}\n\n")[2].partition("\n")[0]
        assert about.endswith("."), name


def test_help_settings_prints_the_page_of_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--help-settings"]) == 0
    page = (DOCS / "reference/settings.md").read_text(encoding="utf-8")
    shown = _rendered(page, "reference/settings.md")
    assert capsys.readouterr().out.strip() in shown


def test_every_setting_is_a_sentence_with_values_and_default() -> None:
    names = [name for name, _, _ in sections()]
    assert set(names) == {"data", "process", "model", "optimizer", "training", "validation"}
    written = settings_reference()
    for _, about, inside in sections():
        assert about.endswith(".")
        for each in inside:
            assert each.text.endswith("."), each
            assert f"`{each.name}` ({each.kind}" in written


def test_the_settings_of_a_preset_are_all_described() -> None:
    from indel.training import config_to_toml, load_config

    known = {each.name for _, _, inside in sections() for each in inside}
    section = ""
    for line in config_to_toml(load_config("arithmetic", "tiny")).splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not section.startswith("data.options"):
            assert f"{section}.{line.partition(' = ')[0]}" in known, line


# ---------------------------------------------------------------- links


class _Page:
    """What MkDocs hands to the hooks, as far as they look."""

    def __init__(self, uri: str) -> None:
        self.file = type("File", (), {"src_uri": uri})()


def _rendered(text: str, uri: str) -> str:
    return on_page_markdown(text, _Page(uri), None, None)  # type: ignore[arg-type]


def test_links_out_of_the_pages_are_turned_or_named() -> None:
    assert link("tests", "../tests/test_docs.py", "docs/a.md") == "tests (`tests/test_docs.py`)"
    assert link("it", "CHANGELOG.md", "CONTRIBUTING.md") == "[it](changelog.md)"
    assert link("it", "https://x.org", "docs/a.md") == "[it](https://x.org)"
    with pytest.raises(Exception, match="nowhere"):
        link("it", "nowhere.md", "docs/a.md")


def test_indices_are_set_in_sentences_alone() -> None:
    assert with_indices("<a href='x_t'>x_t</a>") == "<a href='x_t'>x<sub>t</sub></a>"
    assert with_indices("<pre>x_t</pre>") == "<pre>x_t</pre>"


def nav_pages(entries: object) -> list[str]:
    """The files that the navigation names."""
    if isinstance(entries, str):
        return [entries]
    inside = entries.values() if isinstance(entries, dict) else entries
    return [page for each in inside for page in nav_pages(each)]  # type: ignore[attr-defined]


class _Loader(yaml.SafeLoader):
    """Reads a config without making the objects that its tags name."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def test_every_page_is_in_the_navigation_once() -> None:
    config = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _Loader)
    named = nav_pages(config["nav"])
    there = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    assert sorted(named) == sorted([*there, *FROM_ROOT.values()])


# ---------------------------------------------------------------- the build


class _Resources(HTMLParser):
    """What a browser would fetch to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "link" and values.get("rel") in ("canonical", "next", "prev"):
            return
        name = {"script": "src", "img": "src", "iframe": "src", "link": "href"}.get(tag, "")
        if values.get(name):
            self.fetched.append(str(values[name]))


@pytest.mark.slow
def test_the_site_builds_strictly_and_asks_no_other_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        resources = _Resources()
        resources.feed(page.read_text(encoding="utf-8"))
        assert resources.fetched
        for each in resources.fetched:
            assert "//" not in each.partition("?")[0], f"{page.name} fetches {each}"
            if page.name != "404.html":
                assert (page.parent / each.partition("?")[0].partition("#")[0]).exists(), each
    whole = (site / "reference/python.html").read_text(encoding="utf-8")
    for name in indel.__all__:
        assert name == "process" or f'id="indel.{name}"' in whole, name
    assert "<indel-player" in (site / "gallery.html").read_text(encoding="utf-8")
