"""What MkDocs asks while it builds the site: pages that code writes, and links out of `docs/`."""

from __future__ import annotations

import re
import sys
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

TOOLS = Path(__file__).parent
ROOT = TOOLS.parents[1]
sys.path[:0] = [str(TOOLS), str(ROOT / "src")]

from command_reference import command_reference  # noqa: E402
from players import player_of, site_script, site_styles  # noqa: E402

from indel.training.settings_reference import settings_reference  # noqa: E402

FROM_ROOT = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files of the repository that are pages, too."""

_LINK = re.compile(r"(?<!!)\[([^]]*)\]\(([^)\s]+)\)")
_PROGRAM = re.compile(r"^```python\n(?=>>> )", re.MULTILINE)
_WRITTEN = re.compile(r"^<!-- (commands|settings|player) ?([\w-]*) -->$", re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the repository's own files, and what the player needs."""
    for name, page in FROM_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "styles/player.css", content=site_styles()))
    files.append(File.generated(config, "styles/player.js", content=site_script()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Write what is generated, and turn links of the repository into links of the site."""
    uri = page.file.src_uri
    own = next((name for name, target in FROM_ROOT.items() if target == uri), f"docs/{uri}")
    markdown = _WRITTEN.sub(lambda found: written(found[1], found[2]), markdown)
    markdown = _LINK.sub(lambda found: link(found[1], found[2], own), markdown)
    return _PROGRAM.sub("```pycon\n", markdown)


def written(kind: str, name: str) -> str:
    """What stands in the place of a mark."""
    if kind == "commands":
        return command_reference()
    return settings_reference() if kind == "settings" else player_of(name)


def link(text: str, target: str, page: str) -> str:
    """A link from a file of the repository, for the site; what is not on the site is named only.

    >>> link("the tests", "../tests/test_docs.py", "docs/process.md")
    'the tests (`tests/test_docs.py`)'
    >>> link("the log", "../../CHANGELOG.md", "docs/tutorials/own-process.md")
    '[the log](../changelog.md)'
    >>> link("Counts", "docs/process.md#counts", "CHANGELOG.md")
    '[Counts](process.md#counts)'
    """
    if "://" in target or target.startswith(("#", "mailto:")):
        return f"[{text}]({target})"
    path, sign, fragment = target.partition("#")
    file = normpath(str(PurePosixPath(page).parent / path))
    if not (ROOT / file).exists():
        raise PluginError(f"{page}: the link to {target} leads nowhere")
    on_site = FROM_ROOT.get(file) or (file[5:] if file.startswith("docs/") else None)
    if on_site is None:
        return text if text.strip("`") == file else f"{text} (`{file}`)"
    here = FROM_ROOT.get(page) or page.removeprefix("docs/")
    return f"[{text}]({relpath(on_site, str(PurePosixPath(here).parent))}{sign}{fragment})"
