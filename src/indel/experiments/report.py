"""The report on all tables: a Markdown page made from their records alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from indel.experiments import arithmetic_table, text8_table
from indel.experiments.comparisons import DECISIVE, Comparison, Measured
from indel.experiments.files import markdown_table, read_json, write_picture, write_text
from indel.experiments.paper_numbers import (
    ARITHMETIC_EXAMPLES,
    RATES,
    TEXT8_EXAMPLES,
    rate_name,
)
from indel.experiments.report_details import ngrams_text, samples_text, steps_text
from indel.experiments.table_records import (
    Record,
    common_examples,
    papers_own_task,
    runs_by_rate,
    validated_at,
)
from indel.training import SCALES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTRODUCTION = """\
# Results

This page is written by `indel reproduce report` from the records in `results/`, which \
`indel reproduce table1` and `table2` leave behind; nothing here is typed by hand. What each table \
measures, and what the scales change, is said at the top of `indel.experiments.arithmetic_table` \
and `indel.experiments.text8_table`. Less is better everywhere. ± is the standard deviation over \
seeds; in the learning curves level lines are where the paper's own runs ended.

```sh
indel reproduce table1 --scale tiny                        # no data, no network
indel reproduce table2 --scale laptop --data text8.zip     # hours; --rates 0.6 for a part of it
indel reproduce all report --scale tiny                    # every table and figure, and this page
```

A command that was stopped goes on where it was, and what is finished is not made again.
"""


class Section(NamedTuple):
    """How one table is reported."""

    title: str
    header: tuple[str, ...]
    rows: Callable[[Record], list[list[str]]]
    measures: Mapping[str, Callable[[Record], dict[float, Measured]]]
    curves: Callable[[Record], Figure]
    about: Callable[[Record], str]
    panels: Mapping[str, tuple[str, float]]
    paper: Mapping[str, Mapping[float, float]]


def write_report(out: Path, page: Path) -> Path:
    """Write the page and its pictures from all records below `out`."""
    parts = [INTRODUCTION]
    for name, section in SECTIONS.items():
        for scale in reversed(SCALES):
            path = out / scale / f"{name}.json"
            if not path.is_file():
                continue
            record = read_json(path)
            image = page.parent / "images" / f"{name}-{scale}.png"
            write_picture(section.curves(record), image)
            parts.append(_section_text(section, record, f"images/{image.name}"))
            parts += [samples_text(record), steps_text(record)]
            if name == text8_table.NAME:
                parts.append(ngrams_text(out / scale))
    if len(parts) == 1:
        raise ValueError(
            f"there are no records below {out}: first make some, e.g. indel reproduce table1"
        )
    return write_text(page, "\n".join(part for part in parts if part))


def verdicts(record: Record, section: Section) -> list[tuple[str, float, Comparison]]:
    """Each insert/delete row against the in-place row, by measure."""
    found = []
    for name, read in section.measures.items():
        rows = read(record)
        baseline = rows.get(0.0)
        if baseline is not None:
            found += [
                (name, rate, Comparison.of(row, baseline)) for rate, row in rows.items() if rate
            ]
    return found


def _section_text(section: Section, record: Record, image: str) -> str:
    table = markdown_table(section.header, section.rows(record))
    about = (
        f"{section.about(record)} {_budgets(record, section)}{_distances(record, section)}"
        f"{_missing(record)}"
    )
    text = f"## {section.title}, scale {record['scale']}\n\n{about}\n\n{table}\n"
    compared = verdicts(record, section)
    if compared:
        text += f"Against in place:\n\n{_comparison_table(compared)}\n{_summary(compared)}\n\n"
    return text + f"![Learning curves]({image})\n"


def _comparison_table(compared: list[tuple[str, float, Comparison]]) -> str:
    return markdown_table(
        ("measure", "forward process", "difference", "standard error", "in standard errors", ""),
        [
            [
                name,
                rate_name(rate),
                f"{each.difference:+.3f}",
                f"{each.standard_error:.3f}",
                f"{each.number_of_errors:+.1f}",
                each.verdict,
            ]
            for name, rate, each in compared
        ],
    )


def _summary(compared: list[tuple[str, float, Comparison]]) -> str:
    """In words, for each measure: which rates are better than in place, and which are worse."""
    sentences = []
    for measure in dict.fromkeys(name for name, _, _ in compared):
        kinds: dict[str, list[str]] = {}
        for name, rate, each in compared:
            if name == measure:
                kinds.setdefault(each.verdict, []).append(f"{rate:g}")
        said = [f"{word} at {', '.join(rates)}" for word, rates in sorted(kinds.items())]
        sentences.append(f"**{measure}, insert/delete against in place: {'; '.join(said)}.**")
    basis = (
        "the standard error is that of the mean over the seeds"
        if all(each.over_seeds for _, _, each in compared)
        else "there is one seed in a row, so the standard error is over the sequences that were "
        "measured: it does not say how much another seed would differ"
    )
    return " ".join(sentences) + (
        f" Better or worse means by more than {DECISIVE:g} standard errors; {basis}."
    )


_ARITHMETIC = {
    "tiny": (
        "A smaller task than the paper's, so at most the order of the rows compares with the "
        "paper's. In place, the first step back settles many tokens blindly, which costs the more "
        "the longer the sequences and the more numbers there are; on so small a task it costs more "
        "than insertion and deletion do only if there are very few steps, and then samples are bad "
        "either way. The task was chosen for that: a win shows the mechanism and is no independent "
        "support for the paper. `python studies/ideal_arithmetic.py` prints what a perfect "
        "denoiser would reach: with inserts and deletes a better bound, but worse samples. So a "
        "better error rate below speaks of networks that have not learned everything."
    ),
    "laptop": (
        "The paper's data and T. What differs: the network does not start from nothing but from "
        "the exact posterior of a model by counts ([model.md](model.md#starting-from-counts)), "
        "which these sequences suit well, since two neighbors tell the next number; and a smaller "
        "network, small batches, Muon, few examples, one seed. Rows differ in the rate alone. "
        "`python studies/counts_alone.py arithmetic 0 0.4 0.6 0.8` prints what counts alone "
        "reach, `python studies/ideal_in_place.py` what a perfect in-place denoiser does, and "
        "[experiments.md](experiments.md) has what networks without counts came to."
    ),
    "paper": "The paper's data.",
}
"""What is trained on at each scale, and what differs from the paper."""
_TEXT8 = {
    "tiny": (
        "The sample of text8 in the package, in short chunks: this shows that all parts work, "
        "and does not compare with the paper."
    ),
    "laptop": (
        "The paper's data and T. What differs: the network starts from the exact posterior of a "
        "model by counts ([model.md](model.md#starting-from-counts)) and from the weights of the "
        "models that were bundled before, which had seen 224,000 chunks at rate 0.6 without counts "
        "and 57,600 (in place 51,200) with fewer contexts; it is smaller, and has small batches, "
        "Muon and one learning-rate schedule. `python studies/counts_alone.py "
        "text8 0 0.6 --data text8.zip` prints what counts alone reach."
    ),
    "paper": "The paper's data.",
}
"""The same for Table 2."""


def _about_arithmetic(record: Record) -> str:
    first = record["runs"][0]
    return (
        f"{_ARITHMETIC[record['scale']]} The entropy of the data, which no bound can fall below, "
        f"is {record['entropy']:.2f} nats. T = {first['num_steps']}, {first['parameters']:,} "
        f"parameters{_budget(record, ARITHMETIC_EXAMPLES)}. Bound and error rate are "
        f"{_arithmetic_measure(record)}."
    )


def _arithmetic_measure(record: Record) -> str:
    runs, first = record["runs"], record["runs"][0]
    if arithmetic_table.measured_once(record):
        return (
            f"those of the newest model on {record['measured_on']:,} test sequences and "
            f"{record['samples']:,} samples"
        )
    late = sum(run["late_validations"] for run in runs) / len(runs)
    return (
        f"means over the validations of the last tenth of training, {late:.3g} a run, each of "
        f"{first['validation_examples']:,} sequences and {first['validation_samples']:,} samples"
    )


def _about_text8(record: Record) -> str:
    first = record["runs"][0]
    times = "all t" if record["times"] is None else f"{record['times']} random t a chunk"
    return (
        f"{_TEXT8[record['scale']]} T = {first['num_steps']}, {first['parameters']:,} parameters"
        f"{_budget(record, TEXT8_EXAMPLES)}. The bound is that of the newest model on "
        f"{record['measured_on']:,} chunks of the validation set, {times}, with the length limit "
        f"corrected for."
    )


def _budget(record: Record, paper: int) -> str:
    """Examples, time and share of the paper's examples, where runs tell."""
    known = [run for run in record["runs"] if run.get("examples") and run.get("seconds")]
    if not known:
        return ""
    examples = max(run["examples"] for run in known)
    minutes = fmean(run["seconds"] for run in known) / 60
    share = examples / paper
    digits = max(0, 1 - math.floor(math.log10(100 * share)))
    return (
        f", {examples:,} examples a run ({100 * share:.{digits}f} % of the paper's), "
        f"{minutes:.3g} minutes each on average on the machine at hand"
    )


def _budgets(record: Record, section: Section) -> str:
    """Whether the rows compare, and if not, what they had come to after equally many examples."""
    budgets = {run.get("examples") for run in record["runs"]}
    if len(budgets) == 1:
        return "All rows had the same budget."
    unequal = ", ".join(
        f"{rate_name(rate)} {runs[0].get('examples') or 0:,}"
        for rate, runs in runs_by_rate(record).items()
    )
    text = f"**The rows did not have equal budgets**, in examples: {unequal}."
    examples = common_examples(record)
    if examples is None:
        return text
    for title, (name, factor) in section.panels.items():
        rows = validated_at(record, examples, name)
        found = ", ".join(f"{rate_name(rate)} {factor * value:.3f}" for rate, value in rows.items())
        text += f" After {examples:,} examples, which all rows have seen, {title}: {found}."
    return text


def _missing(record: Record) -> str:
    """The rows of the paper's table that this one lacks."""
    missing = [rate_name(rate) for rate in RATES if rate not in runs_by_rate(record)]
    return f" **Not run: {', '.join(missing)}.**" if missing else ""


def _distances(record: Record, section: Section) -> str:
    """How far each row is from the paper's own, where it is the same task."""
    if not papers_own_task(record):
        return ""
    text = ""
    for title, read in section.measures.items():
        found = ", ".join(
            f"{rate_name(rate)} {row.mean - section.paper[title][rate]:+.2f}"
            for rate, row in read(record).items()
            if rate in section.paper[title]
        )
        text += f" Over the paper's own runs, {title}: {found}."
    return text


SECTIONS = {
    arithmetic_table.NAME: Section(
        "Table 1: arithmetic sequences",
        arithmetic_table.HEADER,
        arithmetic_table.table_rows,
        {
            "bound (nats)": arithmetic_table.bounds,
            "error rate (%)": arithmetic_table.error_rates,
        },
        arithmetic_table.draw_curves,
        _about_arithmetic,
        arithmetic_table.PANELS,
        arithmetic_table.PAPER,
    ),
    text8_table.NAME: Section(
        "Table 2: text8",
        text8_table.HEADER,
        text8_table.table_rows,
        {"bits per character": text8_table.bits},
        text8_table.draw_curves,
        _about_text8,
        text8_table.PANELS,
        text8_table.PAPER,
    ),
}
