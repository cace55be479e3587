"""Chains and edit summaries drawn for the terminal."""

from collections import Counter
from functools import cache
from itertools import pairwise

import pytest
import torch
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from indel import Batch, CharacterVocabulary, IntegerVocabulary, Vocabulary
from indel.drawing.terminal import (
    Fate,
    column_order,
    edit_columns,
    render_chain,
    render_legend,
    render_summary,
    trace,
)
from indel.process import Edits, Schedule, corrupt_chain, summarize

LETTERS = CharacterVocabulary("abcdefghij")


def figure_2() -> list[Batch]:
    """The chain of the paper's Figure 2, with + for INS and × for DEL."""
    ids = {"+": LETTERS.ins, "×": LETTERS.del_} | {c: i for i, c in enumerate("abcdefghij")}
    rows = ("abcdef", "ab+cd×f", "a+×hijf+", "aghi+×f×")
    return [Batch.from_lists([[ids[sign] for sign in row]]) for row in rows]


@cache
def random_chains(text: str = "the cat sat on the mat") -> list[tuple[list[Batch], Vocabulary]]:
    """Chains of a process that inserts, deletes and replaces a lot."""
    vocabulary = CharacterVocabulary.text8()
    schedule = Schedule.paper(vocabulary.size, 6, 0.8)
    x_0 = Batch.from_lists([vocabulary.encode(text)])
    return [
        (
            corrupt_chain(schedule, x_0, generator=torch.Generator().manual_seed(seed)),
            vocabulary,
        )
        for seed in range(6)
    ]


def spelled(batch: Batch, vocabulary: Vocabulary) -> str:
    signs = {vocabulary.ins: "+", vocabulary.del_: "×"}
    (row,) = batch.to_lists()
    return "".join(signs.get(k) or vocabulary.symbol(k).replace("␣", "·") for k in row)


def summary_of(chain: list[Batch], vocabulary: Vocabulary, width: int = 500) -> Text:
    edits = summarize(chain, vocabulary.size)
    t = len(chain) - 1
    return render_summary(chain[0], chain[-1], edits, vocabulary, t=t, width=width)


def style_of(text: Text, offset: int) -> set[str]:
    style = text.get_style_at_offset(Console(), offset)
    attributes = ("bold", "dim", "underline", "strike", "reverse")
    found = {name for name in attributes if getattr(style, name)}
    return found | ({style.color.name} if style.color else set())


def test_the_papers_chain() -> None:
    assert render_chain(figure_2(), LETTERS, width=80).plain.splitlines() == [
        "  x₀  abcdef",
        "  x₁  ab+cd×f",
        "  x₂  a+×hijf+",
        "  x₃  aghi+×f×",
    ]


def test_the_papers_chain_with_marks() -> None:
    assert render_chain(figure_2(), LETTERS, width=80, marks=True).plain.splitlines() == [
        "  x₀  abcdef",
        "  x₁  ab+cd×f",
        "  x₂  a+×hijf+",
        "         +~~",
        "  x₃  aghi+×f×",
        "       ++~",
    ]


def test_the_papers_chain_aligned() -> None:
    assert render_chain(figure_2(), LETTERS, width=80, aligned=True).plain.splitlines() == [
        "  x₀  a b c def",
        "  x₁  a b+c d×f",
        "  x₂  a+×hi j f+",
        "  x₃  ag hi+× f×",
    ]


def test_the_papers_edit_summary() -> None:
    # App. B: "'b' and 'h' form a deletion-insertion pair".
    assert summary_of(figure_2(), LETTERS).plain.splitlines() == [
        "  x₀  a bc def",
        "      |+~~+××|+",
        "  x₃  aghi+× f×",
        "",
        "      | 2 kept   ~ 2 replaced   + 3 inserted   × 2 deleted",
    ]


def test_a_letter_that_comes_back_is_as_in_x_0() -> None:
    chain = [Batch.from_lists([[token]]) for token in (0, 1, 0)]
    assert [row[0].fate for row in trace(chain, LETTERS)] == [
        Fate.KEPT,
        Fate.REPLACED,
        Fate.KEPT,
    ]


def test_rows_spell_their_sequences() -> None:
    for chain, vocabulary in random_chains():
        lines = render_chain(chain, vocabulary, width=500).plain.splitlines()
        assert [line.split("  ")[-1] for line in lines] == [
            spelled(batch, vocabulary) for batch in chain
        ]


def test_aligned_rows_spell_their_sequences_and_letters_stay_in_their_columns() -> None:
    for chain, vocabulary in random_chains():
        lines = render_chain(chain, vocabulary, width=500, aligned=True).plain.splitlines()
        rows = [line[6:] for line in lines]
        assert [row.replace(" ", "") for row in rows] == [
            spelled(batch, vocabulary) for batch in chain
        ]
        for before, after in pairwise(rows):
            for above, below in zip(before.ljust(500), after.ljust(500), strict=True):
                # A token has a child unless it is DEL, and a child has a parent unless it is INS.
                assert (above in " ×") == (below in " +"), (before, after)


def test_column_order_agrees_with_every_row() -> None:
    for chain, vocabulary in random_chains():
        table = trace(chain, vocabulary)
        order = column_order(table)
        assert len(order) == len(set(order))
        for row in table:
            assert [line for line in order if line in row] == list(row)


def test_summaries_spell_both_sequences_and_mark_each_edit() -> None:
    for chain, vocabulary in random_chains():
        for t in range(len(chain)):
            edits = summarize(chain[: t + 1], vocabulary.size)
            above, signs, below, *_ = summary_of(chain[: t + 1], vocabulary).plain.splitlines()
            assert above[6:].replace(" ", "") == spelled(chain[0], vocabulary)
            assert below[6:].replace(" ", "") == spelled(chain[t], vocabulary)
            columns = zip(above[6:].ljust(500), signs[6:], below[6:].ljust(500), strict=False)
            for x, sign, z in columns:
                expected = "×" if z in " ×" else "|" if x == z else "~"
                assert sign == ("+" if x == " " else expected)
            assert signs.count("+") == int((edits.source == -1)[chain[t].mask].sum())


def test_counts_add_up() -> None:
    for chain, vocabulary in random_chains():
        edits = summarize(chain, vocabulary.size)
        columns = edit_columns(chain[0], chain[-1], edits, vocabulary)
        numbers = {fate: sum(column.fate is fate for column in columns) for fate in Fate}
        last = summary_of(chain, vocabulary).plain.splitlines()[-1]
        assert [int(word) for word in last.split() if word.isdigit()] == list(numbers.values())
        assert sum(numbers.values()) - numbers[Fate.INSERTED] == int(chain[0].lengths)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("marks", [False, True])
def test_long_chains_wrap_and_lose_nothing(aligned: bool, marks: bool) -> None:
    for chain, vocabulary in random_chains("a long sentence that does not fit"):
        narrow, wide = (
            render_chain(chain, vocabulary, width=width, aligned=aligned, marks=marks).plain
            for width in (24, 500)
        )
        lines = narrow.splitlines()
        assert max(map(cell_len, lines)) == 24
        # Behind the labels, which are repeated for each block.
        signs = Counter(sign for line in lines for sign in line[6:] if sign != " ")
        assert signs == Counter(
            sign for line in wide.splitlines() for sign in line[6:].replace(" ", "")
        )


def test_wrapped_rows_are_labelled_once() -> None:
    for chain, vocabulary in random_chains("a long sentence that does not fit"):
        lines = render_chain(chain, vocabulary, width=24).plain.splitlines()
        rows = "".join(line if line[2] == " " else f"\n{line}" for line in lines).split("\n")[1:]
        assert [row[:4] for row in rows] == [f"  x{digit}" for digit in "₀₁₂₃₄₅₆"]
        assert [row[6:].replace(" ", "") for row in rows] == [
            spelled(batch, vocabulary) for batch in chain
        ]


def test_long_summaries_wrap_with_all_three_lines() -> None:
    for chain, vocabulary in random_chains("a long sentence that does not fit"):
        wide = summary_of(chain[:4], vocabulary).plain.splitlines()
        *blocks, counts = summary_of(chain[:4], vocabulary, width=26).plain.split("\n\n")
        assert counts == wide[-1]
        joined = [
            "".join(block.split("\n")[row][6:].ljust(20) for block in blocks) for row in range(3)
        ]
        assert [line.rstrip() for line in joined] == [line[6:] for line in wide[:3]]
        assert {block.split("\n")[2][2:4] for block in blocks} == {"x₃"}


def test_colours_and_attributes_tell_all_fates_apart() -> None:
    chain = figure_2()
    text = render_chain(chain, LETTERS, width=80)
    row = text.plain.index("x₂") + 4
    kept, ins, del_, inserted, replaced = (style_of(text, row + k) for k in range(5))
    assert kept <= {"default"}
    assert ins == {"bold", "reverse", "#1f78c8"}
    assert del_ == {"bold", "reverse", "#d6307a"}
    assert inserted == {"bold", "#1f78c8"}
    assert replaced == {"underline", "#a0700a"}
    summary = summary_of(chain, LETTERS)
    deleted, replaced = summary.plain.index("de"), summary.plain.index("bc")
    # d is deleted in this step (a DEL stands below), e was deleted before.
    assert style_of(summary, deleted) == {"strike", "#d6307a"}
    assert style_of(summary, deleted + 1) == {"strike", "#d6307a"}
    assert style_of(summary, replaced) == {"underline", "#a0700a"}


def test_spaces_are_visible_and_recede() -> None:
    vocabulary = CharacterVocabulary.text8()
    x_0, x_1 = (Batch.from_lists([vocabulary.encode(text)]) for text in ("a b", "  b"))
    text = render_chain([x_0, x_1], vocabulary, width=80)
    assert text.plain.splitlines() == ["  x₀  a·b", "  x₁  ··b"]
    assert style_of(text, text.plain.index("·")) == {"dim"}
    new = text.plain.index("··")
    assert style_of(text, new) == {"underline", "#a0700a"}
    assert style_of(text, new + 1) == {"dim"}


def test_symbols_of_several_characters_keep_apart_and_aligned() -> None:
    vocabulary = IntegerVocabulary(512)
    x_0, x_1 = Batch.from_lists([[1, 300, 7]]), Batch.from_lists([[1, 2, 512, 7]])
    assert render_chain([x_0, x_1], vocabulary, width=80).plain.splitlines() == [
        "  x₀  1 300 7",
        "  x₁  1 2 + 7",
    ]
    edits = Edits.from_source(x_0, x_1, torch.tensor([[0, 1, -1, 2]]))
    assert render_summary(x_0, x_1, edits, vocabulary, t=1, width=80).plain.splitlines()[:3] == [
        "  x₀  1 300   7",
        "      | ~   + |",
        "  x₁  1 2   + 7",
    ]


def test_symbols_of_several_characters_wrap() -> None:
    chain = [Batch.from_lists([[300, 7, 300, 7, 300]])]
    assert render_chain(chain, IntegerVocabulary(512), width=16).plain.splitlines() == [
        "  x₀  300 7 300",
        "      7 300",
    ]


def test_empty_sequences() -> None:
    empty, one = Batch.from_lists([[]]), Batch.from_lists([[LETTERS.ins]])
    assert render_chain([empty, one], LETTERS, width=80).plain.splitlines() == [
        "  x₀  (empty)",
        "  x₁  +",
    ]
    assert summary_of([empty], LETTERS).plain.splitlines()[:2] == ["  x₀  (empty)", "  x₀  (empty)"]
    assert summary_of([empty, one], LETTERS).plain.splitlines()[:3] == [
        "  x₀",
        "      +",
        "  x₁  +",
    ]


def test_labels_line_up_beyond_ten_steps() -> None:
    chain = [Batch.from_lists([[0]])] * 11
    lines = render_chain(chain, LETTERS, width=80).plain.splitlines()
    assert (lines[9], lines[10]) == ("   x₉  a", "  x₁₀  a")


def test_the_legend_shows_every_sign() -> None:
    legend = render_legend().plain
    assert all(sign in legend for sign in "~+×")
    assert all(word in legend for word in ("INS", "DEL", "replaced", "inserted", "deleted"))
    assert max(map(len, legend.splitlines())) < 80


def test_one_sequence_at_a_time() -> None:
    two = Batch.from_lists([[0], [1]])
    with pytest.raises(ValueError, match="got a batch of 2"):
        render_chain([two], LETTERS, width=80)
