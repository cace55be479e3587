"""Docstrings as the reference shows them: examples and formulas are blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_FORMULA = re.compile(r"[=≤∝~→↦]")
_SECTION = re.compile(r"^(Args|Returns|Raises|Yields):$")


class Blocks(griffe.Extension):
    """Marks what is no prose, so that Markdown leaves it as it is."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of any object."""
        if obj.docstring is not None:
            obj.docstring.value = with_blocks(obj.docstring.value)


def with_blocks(docstring: str) -> str:
    """The docstring, with a fence around each example and each formula.

    >>> with_blocks("Add.\\n\\nx = y + z\\n\\nPaper: Eq. (1)").splitlines()[2:5]
    ['```text', 'x = y + z', '```']
    >>> with_blocks("Add.\\n\\n>>> 1 + 1\\n2").splitlines()[2:]
    ['```pycon', '>>> 1 + 1', '2', '```']
    """
    paragraphs = re.split(r"\n{2,}", docstring.strip("\n"))
    return "\n\n".join([*paragraphs[:1], *(_block(each) for each in _joined(paragraphs[1:]))])


def _joined(paragraphs: list[str]) -> list[str]:
    """Neighboring examples are one."""
    joined: list[str] = []
    for each in paragraphs:
        if each.startswith(">>> ") and joined and joined[-1].startswith(">>> "):
            joined[-1] += f"\n{each}"
        else:
            joined.append(each)
    return joined


def _block(paragraph: str) -> str:
    first = paragraph.partition("\n")[0]
    if paragraph.startswith(">>> "):
        return f"```pycon\n{paragraph}\n```"
    is_prose = paragraph.rstrip().endswith((".", ":")) or first.startswith((" ", "-", "|"))
    is_labeled = re.match(r"(Paper|Reference): ", paragraph) is not None
    if _FORMULA.search(paragraph) and not (is_prose or is_labeled or _SECTION.match(first)):
        return f"```text\n{paragraph}\n```"
    return paragraph
