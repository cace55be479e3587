"""The outputs that pages show below their programs: compare them with what is printed, or renew.

python docs/tools/shown_outputs.py             whether what is printed has the form of what is shown
python docs/tools/shown_outputs.py --write     write what is printed into the pages, and figures
                                               that programs draw into docs/images
python docs/tools/shown_outputs.py --write docs/quickstart.md     of this page alone

Samples depend on the weights of the models in the package and, in their last digits, on the
machine: so the form is compared, lines and numbers but not letters.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from datetime import date
from io import StringIO
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"^```python\n(?P<program>(?!>>> ).*?)^```\n"
    r'(?:\n```text title="Output"\n(?P<output>.*?)^```\n)?',
    re.MULTILINE | re.DOTALL,
)
_NOTE = re.compile(r"^\*Outputs of .*\*$", re.MULTILINE)


class Block(NamedTuple):
    """A program of a page, and what the page says that it prints."""

    program: str
    output: str | None


def blocks(text: str) -> list[Block]:
    """The programs of a page, which run one after the other.

    >>> blocks('```python\\nprint(1)\\n```\\n\\n```text title="Output"\\n1\\n```\\n')
    [Block(program='print(1)\\n', output='1\\n')]
    """
    return [Block(found["program"], found["output"]) for found in _BLOCK.finditer(text)]


def pages() -> list[Path]:
    """The pages that show outputs."""
    every = sorted((ROOT / "docs").rglob("*.md"))
    return [page for page in every if any(block.output for block in blocks(page.read_text()))]


def printed(programs: list[str], name: str, folder: Path) -> list[str]:
    """What each program prints, with the names of those before it, in a folder."""
    names: dict[str, object] = {"__name__": "__main__"}
    outputs = []
    with chdir(folder):
        for program in programs:
            heard = StringIO()
            with redirect_stdout(heard):
                exec(compile(program, name, "exec"), names)
            outputs.append("".join(f"{line.rstrip()}\n" for line in heard.getvalue().splitlines()))
    return outputs


def differences(shown: str, new: str) -> list[str]:
    """Where the form of two outputs differs: the number of lines, and which lines have numbers.

    >>> differences("2.1 bits\\nabc\\n", "3.0 bits\\nxyz\\n")
    []
    >>> differences("2.1 bits\\n", "two bits\\n")
    ["'2.1 bits' has a number, 'two bits' has none"]
    """
    lines, others = shown.splitlines(), new.splitlines()
    if len(lines) != len(others):
        return [f"{len(lines)} lines are shown, {len(others)} are printed"]
    return [
        f"{line!r} has a number, {other!r} has none"
        for line, other in zip(lines, others, strict=True)
        if re.search(r"\d", line) and not re.search(r"\d", other)
    ]


def renewed(text: str, outputs: list[str]) -> str:
    """The page with these outputs, and with the day and the machine they are of."""
    each = iter(outputs)

    def with_output(found: re.Match[str]) -> str:
        output, whole = next(each), found[0]
        if found["output"] is None:
            return whole
        start, end = (place - found.start() for place in found.span("output"))
        return whole[:start] + output + whole[end:]

    return _NOTE.sub(note(), _BLOCK.sub(with_output, text))


def note() -> str:
    """Where outputs come from."""
    cores, threads = os.cpu_count(), os.environ.get("OMP_NUM_THREADS", "all")
    return (
        f"*Outputs of {date.today():%Y-%m-%d}: `python docs/tools/shown_outputs.py --write`, "
        f"{platform.machine()}, {cores} cores, threads per process: {threads}; "
        "the seeds of the program.*"
    )


def main() -> None:
    """Compare or write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write what is printed")
    parser.add_argument("pages", nargs="*", type=Path)
    asked = parser.parse_args()
    wrong = 0
    for page in asked.pages or pages():
        text = page.read_text(encoding="utf-8")
        found = blocks(text)
        with tempfile.TemporaryDirectory() as folder:
            outputs = printed([block.program for block in found], str(page), Path(folder))
            if asked.write:
                # Read again: somebody may have edited the page while its programs ran.
                text = page.read_text(encoding="utf-8")
                page.write_text(renewed(text, outputs), encoding="utf-8")
                for figure in Path(folder).glob("*.png"):
                    shutil.copy(figure, ROOT / "docs/images")
                print(f"{page} is up to date")
                continue
        for block, output in zip(found, outputs, strict=True):
            for each in [] if block.output is None else differences(block.output, output):
                wrong += 1
                print(f"{page}: {each}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    main()
