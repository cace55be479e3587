"""The oracle of the edit models against tables of its own."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise, product

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from indel.batch import Batch
from indel.comparison.shortest_edits import (
    DELETED,
    kept_tokens,
    random_subsequence,
    randomly_corrupted,
    shortest_edits,
)
from indel.levenshtein import edit_distance
from support.frequencies import chi_square_p

tokens = st.lists(st.integers(0, 2), max_size=7)
pairs = st.lists(st.tuples(tokens, tokens), min_size=1, max_size=5)


def indel_distance(x: list[int], y: list[int]) -> int:
    """The fewest insertions and deletions, by the recursion on prefixes."""
    row = list(range(len(y) + 1))
    for i, first in enumerate(x, start=1):
        above, row = row, [i]
        for j, second in enumerate(y, start=1):
            best = min(above[j], row[j - 1]) + 1
            row.append(min(best, above[j - 1]) if first == second else best)
    return row[-1]


@settings(max_examples=60, deadline=None)
@given(pairs)
def test_the_edits_are_right_and_as_few_as_possible(
    each: list[tuple[list[int], list[int]]],
) -> None:
    x, y = Batch.from_lists(a for a, _ in each), Batch.from_lists(b for _, b in each)
    edits = shortest_edits(x, y.widened(9))
    for row, (before, after) in enumerate(each):
        source = edits.source[row].tolist()
        kept = [place for place in source[: len(before)] if place != DELETED]
        assert kept == sorted(set(kept)), "kept tokens stay in order"
        assert [after[place] for place in kept] == [
            token for token, place in zip(before, source, strict=False) if place != DELETED
        ]
        assert all(place == DELETED for place in source[len(before) :]), "padding is not kept"
        missing = edits.missing[row].tolist()
        bounds = [-1, *kept, len(after)]
        gaps = [second - first - 1 for first, second in pairwise(bounds)]
        assert missing == gaps + [0] * (len(missing) - len(gaps))
        changes = len(before) - len(kept) + sum(missing)
        assert changes == indel_distance(before, after)
        assert edit_distance(before, after) <= changes <= 2 * edit_distance(before, after)


def test_all_pairs_of_short_sequences() -> None:
    words = [list(word) for size in range(5) for word in product((0, 1), repeat=size)]
    every = [(a, b) for a in words for b in words]
    x, y = Batch.from_lists(a for a, _ in every), Batch.from_lists(b for _, b in every)
    edits = shortest_edits(x, y)
    deletions = (edits.deleted & x.mask).sum(dim=1)
    found = (deletions + edits.missing.sum(dim=1)).tolist()
    assert found == [indel_distance(a, b) for a, b in every]


def test_a_subsequence_is_deleted_and_inserted_back() -> None:
    """Deletions and insertions are inverses: y less what is missing is x, and the other way."""
    generator = torch.Generator().manual_seed(0)
    y = Batch(torch.randint(3, (200, 12), generator=generator), torch.randint(13, (200,)))
    x = random_subsequence(y, generator=generator)
    insertions, deletions = shortest_edits(x, y), shortest_edits(y, x)
    assert not (insertions.deleted & x.mask).any()
    assert not deletions.missing.any()
    assert torch.equal(insertions.missing.sum(dim=1), (deletions.deleted & y.mask).sum(dim=1))
    assert kept_tokens(y, deletions.deleted) == x
    corrupted = randomly_corrupted(y, 3, rate=torch.full((200, 1), 0.4), generator=generator)
    there, back = shortest_edits(corrupted, y), shortest_edits(y, corrupted)
    # Of several longest common subsequences each may take another one, of the same length.
    common, other = kept_tokens(corrupted, there.deleted), kept_tokens(y, back.deleted)
    assert torch.equal(common.lengths, other.lengths)
    assert torch.equal(there.missing.sum(dim=1), (back.deleted & y.mask).sum(dim=1))


def test_every_size_and_then_every_subset_is_equally_likely() -> None:
    law = {
        (subset,): 0.25 / len(list(combinations(range(3), size)))
        for size in range(4)
        for subset in combinations(range(3), size)
    }
    y = Batch.from_lists([[0, 1, 2]] * 6000)
    drawn = random_subsequence(y, generator=torch.Generator().manual_seed(1))
    counts = Counter((tuple(row),) for row in drawn.to_lists())
    assert chi_square_p(counts, law) > 1e-3
    each_token = {(subset,): 0.125 for size in range(4) for subset in combinations(range(3), size)}
    assert chi_square_p(counts, each_token) < 1e-6


def test_corruption_keeps_the_rate() -> None:
    y = Batch.from_lists([[0] * 50] * 100)
    generator = torch.Generator().manual_seed(1)
    x = randomly_corrupted(y, 1000, rate=torch.full((100, 1), 0.2), generator=generator)
    added = float((x.lengths - 50).sum()) / 5000
    changed = float((x.mask & (x.tokens != 0)).sum()) / 5000 - added
    assert abs(added - 0.1) < 0.02
    assert abs(changed - 0.1) < 0.02
    same = randomly_corrupted(y, 1000, rate=torch.zeros(100, 1), generator=generator)
    assert same == y
