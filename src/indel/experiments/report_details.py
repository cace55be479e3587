"""Parts of the report besides the paper's tables: samples, steps of the bound, letter n-grams."""

from __future__ import annotations

from pathlib import Path

from indel.experiments.files import markdown_table, read_json
from indel.experiments.paper_numbers import rate_name
from indel.experiments.table_records import Record, runs_by_rate

MEASURES = {
    "error_rate": "wrong steps",
    "valid_rate": "valid sequences",
    "known_words": "words of the training text",
    "known_words_of_text": "the same in real text",
}


def samples_text(record: Record) -> str:
    """A row for each rate with what is known of its samples, as the first seed has it."""
    rows = {rate: runs[0]["final"] for rate, runs in runs_by_rate(record).items()}
    names = [name for name in MEASURES if any(name in final for final in rows.values())]
    if not names:
        return ""
    table = markdown_table(
        ("forward process", *(MEASURES[name] for name in names)),
        [
            [rate_name(rate), *(_percent(final.get(name)) for name in names)]
            for rate, final in rows.items()
        ],
    )
    return f"How good samples are, in percent with standard errors over samples:\n\n{table}\n"


def steps_text(record: Record) -> str:
    """The divergence of each step for each rate, as the first seed has it."""
    rows = {rate: runs[0]["final"].get("steps") for rate, runs in runs_by_rate(record).items()}
    known = {rate: steps for rate, steps in rows.items() if steps}
    if not known:
        return ""
    longest = max(map(len, known.values()))
    table = markdown_table(
        ("t", *map(rate_name, known)),
        [
            [
                str(t + 1),
                *(f"{steps[t][0]:.2f}" if t < len(steps) else "–" for steps in known.values()),
            ]
            for t in range(longest)
        ],
    )
    return f"KL(q(x_{{t−1}}|x_t,x_0) ‖ p_θ) of each step, in nats per sequence:\n\n{table}\n"


def ngrams_text(folder: Path) -> str:
    """Letter n-grams on the same text, if they were counted."""
    path = folder / "ngrams.json"
    if not path.is_file():
        return ""
    record = read_json(path)
    bits = record["bits_per_character"]
    table = markdown_table(
        tuple(f"groups of {order}" for order in range(1, len(bits) + 1)),
        [[f"{each:.3f}" for each in bits]],
    )
    return (
        "For comparison, interpolated counts of letters (Witten–Bell) of the training part, "
        f"{record['train_characters']:,} characters, on the whole test part, in bits per "
        f"character (`{record['command']}`):\n\n{table}\n"
    )


def _percent(measured: list[float] | None) -> str:
    return "–" if measured is None else f"{100 * measured[0]:.1f} ± {100 * measured[1]:.1f}"
