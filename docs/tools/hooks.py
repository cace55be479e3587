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
from players import player_of, repairs_table, site_script, site_styles  # noqa: E402

from indel.training.settings_reference import settings_reference  # noqa: E402

FROM_ROOT = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files of the repository that are pages, too."""

_LINK = re.compile(r"(?<!!)\[([^]]*)\]\(([^)\s]+)\)")
_SYMBOL = re.compile(r"(?<!\w)(\w[\u0300-\u036f]*)_(?:\{([^{}]{1,16})\}|(\d+|\w))(?!\w)")
"""A letter with an index, such as x_t, p_θ, x_10 or x_{t−1}."""
_FIGURE = re.compile(r'<p>(<img [^>]*?src="([^"]+)"[^>]*>)</p>')
_SHORT_CODE = re.compile(r"<code>(?=[^<]{1,24}</code>)")
_PROGRAM = re.compile(r"^```python\n(?=>>> )", re.MULTILINE)
_WRITTEN = re.compile(r"^<!-- (commands|settings|player|repairs) ?([\w-]*) -->$", re.MULTILINE)


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


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Set the indices of formulas in sentences, keep names whole, and let figures be enlarged."""
    return with_links_to_figures(_SHORT_CODE.sub('<code class="short">', with_indices(html)))


def with_links_to_figures(html: str) -> str:
    """A figure of its own is a link to its file: on a phone its letters are small.

    >>> with_links_to_figures('<p><img alt="" src="a.png" /></p>')
    '<p><a href="a.png"><img alt="" src="a.png" /></a></p>'
    """
    return _FIGURE.sub(r'<p><a href="\2">\1</a></p>', html)


def with_indices(html: str) -> str:
    """x_t as x with an index, outside of code.

    >>> with_indices("<p>p_θ(x_{t−1} | x_t)</p><code>x_t</code>")
    '<p>p<sub>θ</sub>(x<sub>t−1</sub> | x<sub>t</sub>)</p><code>x_t</code>'
    >>> with_indices("max_length and n_obs")
    'max_length and n_obs'
    """
    parts = re.split(r"(<(pre|code|script)\b.*?</\2>|<[^>]*>)", html, flags=re.DOTALL)
    # Three for each split: the text, the tag or block, and the name within it.
    parts[::3] = [
        _SYMBOL.sub(lambda found: f"{found[1]}<sub>{found[2] or found[3]}</sub>", part)
        for part in parts[::3]
    ]
    del parts[2::3]
    return "".join(parts)


def written(kind: str, name: str) -> str:
    """What stands in the place of a mark."""
    match kind:
        case "commands":
            return command_reference()
        case "settings":
            return settings_reference()
        case "repairs":
            return repairs_table()
        case _:
            return player_of(name)


def link(text: str, target: str, page: str) -> str:
    """A link from a file of the repository, for the site; what is not on the site is named only.

    >>> link("the tests", "../tests/test_docs.py", "docs/process.md")
    'the tests (`tests/test_docs.py`)'
    >>> link("the log", "../../CHANGELOG.md", "docs/tutorials/own-process.md")
    '[the log](../changelog.md)'
    >>> link("docs/process.md", "docs/process.md#counts", "CHANGELOG.md")
    '[The forward process, for a reader of the code](process.md#counts)'
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
    if text.endswith(".md") and text.rpartition("/")[2] == PurePosixPath(file).name:
        text = title_of(ROOT / file)
    here = FROM_ROOT.get(page) or page.removeprefix("docs/")
    return f"[{text}]({relpath(on_site, str(PurePosixPath(here).parent))}{sign}{fragment})"


def title_of(page: Path) -> str:
    """The heading of a page."""
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
