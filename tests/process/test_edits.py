"""Edit summaries: the paper's own example, and the definition chain by chain."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from indel import Batch
from indel.process import (
    INSERTED,
    Edits,
    Schedule,
    corrupt_chain,
    log_prob_edits,
    step_parents,
    summarize,
)
from support.cases import Case, oracle_steps

LETTERS = "abcdefghij"
INS, DEL = len(LETTERS), len(LETTERS) + 1


def letters(text: str) -> list[int]:
    """`+` is INS, `-` is DEL."""
    return [(LETTERS + "+-").index(letter) for letter in text]


def batch(*texts: str) -> Batch:
    return Batch.from_lists([letters(text) for text in texts])


FIGURE_2 = ["abcdef", "ab+cd-f", "a+-hijf+", "aghi+-f-"]


# ---------------------------------------------------------------- Figure 2


def test_steps_of_figure_2() -> None:
    """The arrows of the figure, from each row to the next."""
    chain = [batch(text) for text in FIGURE_2]
    arrows = [
        [0, 1, -1, 2, 3, 4, 5],
        [0, -1, 1, 2, 3, 4, 6, -1],
        [0, 1, 3, 4, -1, 5, 6, 7],
    ]
    for (before, after), expected in zip(itertools.pairwise(chain), arrows, strict=True):
        assert step_parents(before, after, len(LETTERS))[0].tolist() == expected


def test_summary_of_figure_2() -> None:
    """a, c, d, f have sources and e is deleted before f, as drawn.

    b's DEL stands right before h, which was inserted: a deletion–insertion pair, so that our
    summary has b ↦ h where the figure draws b deleted and h inserted.
    """
    edits = summarize([batch(text) for text in FIGURE_2], len(LETTERS))
    found = dict(zip(enumerate(FIGURE_2[-1]), edits.source[0].tolist(), strict=True))
    assert found == {
        (0, "a"): 0,
        (1, "g"): INSERTED,
        (2, "h"): 1,
        (3, "i"): 2,
        (4, "+"): INSERTED,
        (5, "-"): 3,
        (6, "f"): 5,
        (7, "-"): INSERTED,
    }
    assert edits.deletions[0].tolist() == [0, 0, 0, 0, 0, 0, 1, 0, 0]


def test_summaries_on_the_way_through_figure_2() -> None:
    chain = [batch(text) for text in FIGURE_2]
    expected = [
        ([0, 1, 2, 3, 4, 5], [0] * 7),
        ([0, 1, -1, 2, 3, 4, 5], [0] * 8),
        ([0, -1, 1, -1, 2, 3, 5, -1], [0, 0, 0, 0, 0, 0, 1, 0, 0]),
    ]
    for steps, (source, deletions) in enumerate(expected, start=1):
        edits = summarize(chain[:steps], len(LETTERS))
        assert edits.source[0].tolist() == source
        assert edits.deletions[0].tolist() == deletions


def test_rows_of_other_lengths_do_not_disturb_it() -> None:
    others = [["", "++", "ab", "ab"], ["abc", "---", "", ""], ["a", "-+", "b", "-"]]
    chain = [batch(*texts) for texts in zip(FIGURE_2, *others, strict=True)]
    edits = summarize(chain, len(LETTERS))
    alone = summarize([batch(text) for text in FIGURE_2], len(LETTERS))
    assert torch.equal(edits.source[0], alone.source[0])
    assert torch.equal(edits.deletions[0], alone.deletions[0])
    assert edits.source[1:, :2].tolist() == [[-1, -1], [-1, -1], [0, -1]]
    assert edits.deletions[1:, :3].tolist() == [[0, 0, 0], [3, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("chain", "source", "deletions"),
    [
        # The DEL before an insert is its source, however many inserted DELs lie between.
        (["a", "-+", "c"], [0], [0, 0]),
        (["a", "a+", "--+", "c"], [0], [0, 0]),
        # Not if it comes after, or if a token that stays stands between.
        (["a", "+-", "c"], [-1], [0, 1]),
        (["ab", "-b+", "bc"], [1, -1], [1, 0, 0]),
        # The nearest DEL pairs; those before it are deleted.
        (["abc", "---+", "j"], [2], [2, 0]),
        # The first insert takes it and the second finds none.
        (["a", "-++", "cd"], [0, -1], [0, 0, 0]),
        # A pair may die and pair again.
        (["a", "-+", "-+", "b"], [0], [0, 0]),
        (["a", "-+", "c", "-", ""], [], [1]),
        ([""], [], [0]),
        (["abc", "---", ""], [], [3]),
        (["ab", "a+b", "acb"], [0, -1, 1], [0, 0, 0, 0]),
    ],
)
def test_small_chains_by_hand(chain: list[str], source: list[int], deletions: list[int]) -> None:
    edits = summarize([batch(text) for text in chain], len(LETTERS))
    assert edits.source[0].tolist() == source
    assert edits.deletions[0].tolist() == deletions
    assert oracles.source_of_chain([letters(text) for text in chain], len(LETTERS)) == tuple(source)


# ---------------------------------------------------------------- any chain


@st.composite
def possible_chains(draw: st.DrawFn, size: int) -> list[tuple[int, ...]]:
    """x_0 and up to four steps, each anything that a step can do."""
    chain = [tuple(draw(st.lists(st.integers(0, size - 1), max_size=4)))]
    becomes = st.one_of(st.integers(0, size - 1), st.just(size + 1))
    for _ in range(draw(st.integers(0, 4))):
        after: list[int] = [size] * draw(st.sampled_from([0, 0, 1, 2]))
        for token in chain[-1]:
            if token != size + 1:
                after += [draw(becomes)] + [size] * draw(st.sampled_from([0, 0, 1]))
        chain.append(tuple(after))
    return chain


@st.composite
def possible_batches(draw: st.DrawFn) -> tuple[int, list[list[tuple[int, ...]]]]:
    size = draw(st.integers(1, 2))
    rows = draw(st.lists(possible_chains(size), min_size=1, max_size=3))
    steps = min(map(len, rows))
    return size, [row[:steps] for row in rows]


@settings(deadline=None, max_examples=120)
@given(possible_batches())
def test_summary_is_the_definition(drawn: tuple[int, list[list[tuple[int, ...]]]]) -> None:
    size, rows = drawn
    chain = [Batch.from_lists(sequences) for sequences in zip(*rows, strict=True)]
    edits = summarize(chain, size)
    for row, sequences in enumerate(rows):
        length = len(sequences[-1])
        source = oracles.source_of_chain(sequences, size)
        assert tuple(edits.source[row, :length].tolist()) == source
        assert (edits.source[row, length:] == INSERTED).all()
        assert edits.deletions[row, : length + 1].tolist() == deletions_of(source, sequences[0])
        assert not edits.deletions[row, length + 1 :].any()


def deletions_of(source: tuple[int, ...], x_0: tuple[int, ...]) -> list[int]:
    """Tokens of x_0 that nothing comes from, counted before the next token that has a source."""
    found, next_token = [], 0
    for origin in source:
        found.append(max(0, origin - next_token))
        next_token = max(next_token, origin + 1)
    return [*found, len(x_0) - next_token]


@st.composite
def processes(draw: st.DrawFn) -> tuple[tuple[oracles.OracleStep, ...], tuple[int, ...], int]:
    size = draw(st.integers(1, 2))
    steps = tuple(draw(st.lists(oracle_steps(size), min_size=1, max_size=3)))
    return steps, tuple(draw(st.lists(st.integers(0, size - 1), max_size=3))), draw(st.integers(0))


@settings(deadline=None, max_examples=40)
@given(processes())
def test_sampled_chains_have_edits_of_positive_probability(drawn) -> None:
    steps, x_0, seed = drawn
    schedule, size = Case(steps, x_0, ()).schedule, steps[0].vocab_size
    generator = torch.Generator().manual_seed(seed % 2**32)
    chain = corrupt_chain(schedule, Batch.from_lists([x_0] * 4), generator=generator)
    edits = summarize(chain, size)
    logp = log_prob_edits(schedule, chain[0], chain[-1], edits, len(steps))
    assert (logp > -torch.inf).all()
    for row in range(4):
        sequences = [tuple(batch.to_lists()[row]) for batch in chain]
        source = oracles.source_of_chain(sequences, size)
        assert tuple(edits.source[row, : len(sequences[-1])].tolist()) == source
        if len(sequences[-1]) <= 5:
            expected = oracles.edit_probs(steps, x_0, sequences[-1])[source]
            assert logp[row].exp().item() == pytest.approx(expected, rel=1e-9)


def test_paper_chains_have_edits_of_positive_probability() -> None:
    for delete_inserted in (None, 0.0):
        schedule = Schedule.paper(5, 6, 0.9, delete_inserted=delete_inserted)
        x_0 = Batch.from_lists([[0, 1, 2, 3, 4] * 3] * 50)
        generator = torch.Generator().manual_seed(1)
        chain = corrupt_chain(schedule, x_0, generator=generator)
        for t in range(schedule.num_steps + 1):
            edits = summarize(chain[: t + 1], schedule.vocab_size)
            logp = log_prob_edits(schedule, x_0, chain[t], edits, t)
            assert (logp > -torch.inf).all()


# ---------------------------------------------------------------- from the sources alone


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_what_lies_between_two_sources_was_deleted(data: st.DataObject) -> None:
    rows = data.draw(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=3)
    )
    sources = []
    for length, tokens in rows:
        chosen = sorted(data.draw(st.sets(st.integers(0, 5), max_size=min(length, tokens))))
        chosen = [origin for origin in chosen if origin < length]
        source = [*chosen, *[INSERTED] * (tokens - len(chosen))]
        order = data.draw(st.permutations(range(tokens)))
        places = sorted(order[: len(chosen)])
        source = [INSERTED] * tokens
        for place, origin in zip(places, chosen, strict=True):
            source[place] = origin
        sources.append(source)
    x_0 = Batch.from_lists([[0] * length for length, _ in rows])
    x_t = Batch.from_lists([[0] * tokens for _, tokens in rows])
    # Whatever stands at padding is ignored.
    padded = [source + [99] * (x_t.width - len(source)) for source in sources]
    edits = Edits.from_source(
        x_0, x_t, torch.tensor(padded, dtype=torch.int64).reshape(x_t.tokens.shape)
    )
    for row, (length, tokens) in enumerate(rows):
        assert edits.source[row].tolist() == sources[row] + [INSERTED] * (x_t.width - tokens)
        expected = deletions_of(tuple(sources[row]), (0,) * length)
        assert edits.deletions[row].tolist() == expected + [0] * (x_t.width - tokens)
        used = sum(origin >= 0 for origin in sources[row])
        assert edits.deletions[row].sum().item() + used == length


def test_what_stands_at_padding_has_no_probability() -> None:
    schedule = Schedule.paper(3, 4, 0.5)
    x_0, x_t = Batch.from_lists([[0, 1, 2], [1]]), Batch.from_lists([[0, 4, 3], [2]])
    clean = Edits.from_source(x_0, x_t, torch.tensor([[0, 1, -1], [0, -1, -1]]))
    dirty = Edits(torch.tensor([[0, 1, -1], [0, 0, 0]]), clean.deletions)
    expected = log_prob_edits(schedule, x_0, x_t, clean, 2)
    assert torch.equal(log_prob_edits(schedule, x_0, x_t, dirty, 2), expected)


def test_edits_can_be_compared() -> None:
    first, second = (summarize([batch(text) for text in FIGURE_2], len(LETTERS)) for _ in "12")
    assert (first == second) in (True, False)


def test_edits_can_be_moved() -> None:
    edits = summarize([batch(text) for text in FIGURE_2], len(LETTERS))
    moved = edits.to("cpu")
    assert torch.equal(moved.source, edits.source)
    assert torch.equal(moved.deletions, edits.deletions)


def test_a_chain_of_nothing_but_x_0_keeps_all() -> None:
    edits = summarize([Batch.from_lists([[0, 1, 1], [], [2]])], 3)
    assert edits.source.tolist() == [[0, 1, 2], [-1, -1, -1], [0, -1, -1]]
    assert not edits.deletions.any()
