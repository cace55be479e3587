"""The Insertion–Deletion Transformer: targets, phases, infilling and repair."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations
from math import exp
from typing import Any

import pytest
import torch

from indel.batch import Batch
from indel.comparison.insertion_deletion_transformer import InsertionDeletionTransformer, build
from support.comparison_toys import BACKBONE, WORDS, trained, untrained


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def model() -> InsertionDeletionTransformer:
    learned: InsertionDeletionTransformer = trained(build, {}, steps=150)
    return learned


def slot_law(y: list[int], kept: tuple[int, ...], order: str) -> list[list[float]]:
    """The targets of each slot by the definition, for the kept places of y."""
    laws = []
    for before, after in zip((-1, *kept), (*kept, len(y)), strict=True):
        missing = list(range(before + 1, after))
        law = [0.0] * 5
        if not missing:
            law[4] = 1.0
        middle = (missing[0] + missing[-1]) / 2 if missing else 0.0
        weights = [exp(-abs(i - middle) / 0.7) if order == "tree" else 1.0 for i in missing]
        for place, weight in zip(missing, weights, strict=True):
            law[y[place]] += weight / sum(weights)
        laws.append(law)
    return laws


@pytest.mark.parametrize("order", ["tree", "uniform"])
def test_slot_targets_are_right_for_every_subsequence(order: str) -> None:
    """All tokens differ, so that each subsequence lies in the data in one way only."""
    model = build(4, BACKBONE, 6, {"order": order, "tree_temperature": 0.7})
    y = [2, 0, 3, 1]
    subsets = [each for size in range(5) for each in combinations(range(4), size)]
    x = Batch.from_lists([[y[place] for place in each] for each in subsets])
    targets = model.slot_targets(x, Batch.from_lists([y] * len(subsets)).widened(6))
    for row, kept in enumerate(subsets):
        want = torch.tensor(slot_law(y, kept, order))
        assert torch.allclose(targets[row, : len(kept) + 1], want, atol=1e-6)
        assert not targets[row, len(kept) + 1 :].any()


def test_the_loss_is_the_cross_entropy_of_the_targets() -> None:
    """An empty sequence has one slot, which ends, and nothing to delete but what was inserted."""
    model = untrained(build, {"own_share": 0.0})
    with torch.no_grad():
        logits = model.slot_logits(Batch.from_lists([[]]))
        want = -torch.log_softmax(logits, dim=2)[0, 0, model.end]
        got = model.loss(Batch.from_lists([[]]), generator=seeded())[0]
    assert torch.allclose(got, want, atol=1e-5)


def test_it_generates_the_words(model: InsertionDeletionTransformer) -> None:
    drawn = model.generate(150, generator=seeded())
    counts = Counter(map(tuple, drawn.sequences))
    hits = [counts[tuple(word)] for word in WORDS]
    assert sum(hits) > 75
    assert min(hits) > 5
    assert drawn.calls < 60


def test_the_deletion_phase_removes_inserted_errors(model: InsertionDeletionTransformer) -> None:
    noisy = Batch.from_lists([[0, 1, 2, 2, 3], [3, 3, 0, 2], [1, 3, 2, 1, 2, 1], *WORDS])
    with torch.no_grad():
        deleted = (model.delete_logits(noisy) > 0) & noisy.mask
    assert deleted.sum(dim=1).tolist() == [1, 1, 1, 0, 0, 0]
    assert deleted[0, 2] or deleted[0, 3]
    assert deleted[1, 3]
    assert deleted[2, 1]


def test_infilling_keeps_what_is_given_and_the_length(model: InsertionDeletionTransformer) -> None:
    left, right, wanted = [[0, 1], [3], [], [2, 2]], [[3], [0], [], []], [1, 1, 4, 3]
    for each in (model, untrained(build, {"phases": 2})):
        drawn = each.infill(left, right, wanted, generator=seeded())
        free = each.infill(left, right, None, generator=seeded())
        for row, known, end, size in zip(drawn.sequences, left, right, wanted, strict=True):
            assert row[: len(known)] == known
            assert row[len(row) - len(end) :] == end
            assert len(row) == len(known) + size + len(end)
        for row, known, end in zip(free.sequences, left, right, strict=True):
            assert row[: len(known)] == known
            assert row[len(row) - len(end) :] == end
            assert len(known) + len(end) <= len(row) <= each.max_length
    answers = model.infill([[0, 1]] * 20, [[3]] * 20, [1] * 20, generator=seeded()).sequences
    assert answers.count([0, 1, 2, 3]) > 12


def test_repair_mends_a_typo(model: InsertionDeletionTransformer) -> None:
    noisy = Batch.from_lists([[0, 1, 1, 3], [3, 3, 0, 2], [0, 1, 2, 3]])
    drawn = model.repair(noisy, generator=seeded())
    assert drawn.sequences == [[0, 1, 2, 3], [3, 3, 0], [0, 1, 2, 3]]


def test_padding_and_other_rows_change_nothing() -> None:
    model = untrained(build, {})
    rows = [[0, 1, 2, 3], [], [3, 1]]
    wide = Batch.from_lists(rows).widened(7)
    with torch.no_grad():
        together = model.delete_logits(wide), model.slot_logits(wide)
        for row, each in enumerate(rows):
            alone = Batch.from_lists([each])
            for whole, part in zip(
                together, (model.delete_logits(alone), model.slot_logits(alone)), strict=True
            ):
                assert torch.allclose(whole[row, : part.shape[1]], part[0], atol=1e-4)
    for row, want in zip(rows, model.repair(wide, generator=seeded()).sequences, strict=True):
        assert model.repair(Batch.from_lists([row]), generator=seeded()).sequences == [want]


def test_it_has_no_likelihood() -> None:
    model = build(4, BACKBONE, 6, {})
    assert model.likelihood_kind == "none"
    assert model.negative_log_likelihood(Batch.from_lists(WORDS), generator=seeded()) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"phases": 0}, "phases must be an integer ≥ 1, got 0"),
        (
            {"order": "three"},
            "order must be one of tree, uniform; got 'three', did you mean 'tree'?",
        ),
        ({"corruption": -0.5}, "corruption must lie in [0, 1], got -0.5"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        build(4, BACKBONE, 6, options)


def test_longer_data_is_refused() -> None:
    with pytest.raises(ValueError, match="at most max_length = 6 tokens, got 7"):
        build(4, BACKBONE, 6, {}).loss(Batch.from_lists([[0] * 7]), generator=seeded())
