"""docs/results.md is what `indel reproduce report` makes from the records in results/."""

from __future__ import annotations

from pathlib import Path

from indel.experiments.report import write_report

ROOT = Path(__file__).parents[1]


def test_the_page_says_what_the_records_say(tmp_path: Path) -> None:
    page = write_report(ROOT / "results", tmp_path / "results.md")
    shown = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8") == shown, "run: indel reproduce report"
