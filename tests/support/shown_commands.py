"""The shell commands that the Markdown files show, and the files that they speak of."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
PROTEINS = [f"MKT{first}{second}QR{first}" for first in "ACDEFGHI" for second in "LMNPSVWY"]
SPACERS = [a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT"]
GENES = [f"TATAATCG{each}AGGAGGTTACATGGCGAAACTGTGA" for each in SPACERS]
TYPED = "Teh frist line of a lettre.\n"
MOLECULES = "".join(
    f"{'C' * carbons}{end}\n" for carbons in range(1, 9) for end in ("O", "N", "=O")
)
PAIRS = "teh frist word\tthe first word\nthe histroy of rome\tthe history of rome\n"


class Shown(NamedTuple):
    """One line of a block of shell."""

    page: str
    words: list[str]
    output: str | None = None
    """The file that standard output goes to."""

    def __str__(self) -> str:
        return shlex.join(self.words)

    @property
    def indel(self) -> list[str] | None:
        """What is said to the command `indel`, directly or by Accelerate's launcher."""
        for start in (["indel"], ["-m", "indel.cli"], ["-m", "indel"]):
            for place in range(len(self.words) - len(start) + 1):
                if self.words[place : place + len(start)] == start:
                    return self.words[place + len(start) :]
        return None


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def shown_commands(page: Path) -> Iterator[Shown]:
    """All commands of a page, in their order; of a session in a console what follows a $."""
    for language, block in re.findall(
        r"^```(sh|console)\n(.*?)^```",
        page.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    ):
        lines = block.replace("\\\n", " ").splitlines()
        if language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        for line in lines:
            is_function = re.match(r"\w+\(\) \{", line)
            # What bash reads as a tab; shlex knows no $'…'.
            line = re.sub(r"\$'[^']*'", lambda quoted: quoted[0][1:].replace("\\t", "\t"), line)
            words = line.split() if is_function else shlex.split(line, comments=True)
            output = None
            if ">" in words:
                output = words[words.index(">") + 1]
                words = words[: words.index(">")]
            if words:
                yield Shown(str(page.relative_to(ROOT)), words, output)


def named_commands(page: Path) -> list[list[str]]:
    """The words of commands within sentences, which are often only parts of a command."""
    spans = re.findall(r"`((?:indel|python) [^`]+)`", page.read_text(encoding="utf-8"))
    return [span.split() for span in spans]


def make_files(folder: Path, *, molecules: bool) -> None:
    """The files that the commands read, small; some are shown on the pages themselves."""
    import datasets

    from indel.pretrained import pretrained_folder

    (folder / "proteins.txt").write_text("".join(f"{each}\n" for each in PROTEINS))
    rows = "".join(f"{number},{each}\n" for number, each in enumerate(PROTEINS))
    (folder / "proteins.csv").write_text(f"name,sequence\n{rows}")
    (folder / "book.txt").write_text("It was the best of times, it was the worst of times. " * 80)
    datasets.Dataset.from_dict({"text": PROTEINS}).save_to_disk(str(folder / "NAME"))
    (folder / "dna.txt").write_text("".join(f"{each}\n" for each in GENES))
    (folder / "letter.txt").write_text(TYPED)
    (folder / "pairs.tsv").write_text(PAIRS)
    (folder / "words.tsv").write_text("".join(f"{each}\t{each[::-1]}\n" for each in PROTEINS))
    (folder / "reactions.tsv").write_text(
        "".join(f"CCO.{acid}C(=O)O\t{acid}C(=O)OCC\n" for acid in MOLECULES.split())
    )
    labelled = [f"{label}\t{each}\n" for label in ("positive", "negative") for each in PROTEINS]
    (folder / "labels.tsv").write_text("".join(labelled))
    (folder / "mine.smi").write_text(MOLECULES)
    (folder / "broken.smi").write_text("CC(=O\nc1ccccc\n")
    (folder / "made.smi").write_text(MOLECULES)
    make_moses(folder / "FOLDER")
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs/comparison.md", folder / "docs")
    old, new = ("CCO", "CCN") if molecules else ("the history of rome", "the histroy of rome")
    (folder / "old.txt").write_text(f"{old}\n")
    (folder / "new.txt").write_text(f"{new}\n")
    (config,) = (each for each in blocks(ROOT / "docs/training.md", "toml") if "my.toml" in each)
    (folder / "my.toml").write_text(config)
    (reward,) = re.findall(
        r"^>>> (def shortness.*?)^>>> ", (ROOT / "docs/infilling.md").read_text(), re.S | re.M
    )
    (folder / "rewards.py").write_text(re.sub(r"^\.\.\. ?", "", reward, flags=re.MULTILINE))
    shutil.copytree(pretrained_folder("text8"), folder / "a-model")


def make_moses(folder: Path) -> None:
    """The molecules of MOSES that are in the package, in tables as it has them."""
    from indel.data import MosesSample

    whole, scaffolds = MosesSample(), MosesSample(scaffolds=True)
    folder.mkdir()
    for name, molecules in (
        ("train", [*whole.texts("train"), *whole.texts("valid")]),
        ("test", whole.texts("test")),
        ("test_scaffolds", scaffolds.texts("test")),
    ):
        rows = "".join(f"{each},{name}\n" for each in molecules)
        (folder / f"{name}.csv").write_text(f"SMILES,SPLIT\n{rows}")
