"""The Levenshtein Transformer: its training data, refinement, infilling and repair."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
import torch

from indel.batch import Batch
from indel.comparison.levenshtein_transformer import LevenshteinTransformer, build
from indel.comparison.shortest_edits import kept_tokens, random_subsequence, shortest_edits
from support.comparison_toys import BACKBONE, WORDS, trained, untrained


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def model() -> LevenshteinTransformer:
    learned: LevenshteinTransformer = trained(build, {}, steps=150, rows=24)
    return learned


def test_placeholders_and_deletions_are_inverses_in_the_training_data() -> None:
    model, generator = build(4, BACKBONE, 12, {}), seeded()
    y = Batch(torch.randint(4, (100, 12), generator=generator), torch.randint(13, (100,)))
    x = random_subsequence(y, generator=generator)
    holes = model.with_placeholders(x, shortest_edits(x, y).missing)
    assert torch.equal(holes.lengths, y.lengths)
    is_hole = holes.tokens == model.placeholder
    assert torch.equal(holes.tokens[~is_hole], y.widened(holes.width).tokens[~is_hole])
    assert kept_tokens(holes, is_hole) == x
    filled = Batch(torch.where(is_hole, y.widened(holes.width).tokens, holes.tokens), y.lengths)
    assert filled == y


def test_the_loss_is_that_of_the_oracle() -> None:
    """With one token in all, the draws of the loss are known, and so is every classifier's term."""
    model = untrained(build, {"own_share": 1.0, "drop_share": 0.0, "corruption": 0.0})
    y = Batch.from_lists([[2, 1, 0]])
    with torch.no_grad():
        # Nothing is dropped, so nothing is missing, and nothing is to be deleted.
        counts = torch.log_softmax(model.count_logits(y), dim=2)[0, :, 0].sum()
        stays = torch.nn.functional.logsigmoid(-model.delete_logits(y)).sum()
        assert torch.allclose(model.loss(y, generator=seeded())[0], -counts - stays, atol=1e-4)


def test_refinement_reaches_a_fixed_point_on_the_words(model: LevenshteinTransformer) -> None:
    """Words stay as they are, and samples end after fewer rounds than allowed."""
    again = model.repair(Batch.from_lists(WORDS), generator=seeded())
    assert again.sequences == WORDS
    assert again.calls == 3, "one round sees that nothing changes"
    # One sample at a time: a batch goes on until its last sequence has ended.
    alone = [model.generate(1, generator=seeded(seed)) for seed in range(12)]
    assert sum(drawn.calls < 3 * model.options.rounds for drawn in alone) >= 10
    for drawn in alone:
        if drawn.calls < 3 * model.options.rounds:
            fixed = model.repair(Batch.from_lists(drawn.sequences), generator=seeded())
            assert fixed.sequences == drawn.sequences


def test_it_generates_the_words(model: LevenshteinTransformer) -> None:
    counts = Counter(map(tuple, model.generate(150, generator=seeded()).sequences))
    hits = [counts[tuple(word)] for word in WORDS]
    assert sum(hits) > 75
    assert min(hits) > 5


def test_infilling_keeps_what_is_given_and_the_length(model: LevenshteinTransformer) -> None:
    left, right, wanted = [[0, 1], [3], [], [2, 2]], [[3], [0], [], []], [1, 1, 4, 3]
    for each in (model, untrained(build, {"rounds": 3})):
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
    assert model.infill([[0, 1]], [[3]], [1], generator=seeded()).sequences == [[0, 1, 2, 3]]


def test_repair_mends_a_typo(model: LevenshteinTransformer) -> None:
    noisy = Batch.from_lists([[0, 1, 1, 3], [0, 1, 2, 3]])
    drawn = model.repair(noisy, generator=seeded())
    assert drawn.sequences == [[0, 1, 2, 3], [0, 1, 2, 3]]


def test_padding_and_other_rows_change_nothing() -> None:
    model = untrained(build, {"rounds": 2})
    rows = [[0, 1, 2, 3], [], [3, 1]]
    wide = Batch.from_lists(rows).widened(7)
    with torch.no_grad():
        together = model.delete_logits(wide), model.count_logits(wide), model.token_logits(wide)
        for row, each in enumerate(rows):
            alone = Batch.from_lists([each])
            for whole, part in zip(
                together,
                (model.delete_logits(alone), model.count_logits(alone), model.token_logits(alone)),
                strict=True,
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
        ({"rounds": 0}, "rounds must be an integer ≥ 1, got 0"),
        ({"own_share": 1.5}, "own_share must lie in [0, 1], got 1.5"),
        ({"round": 3}, "unknown: round"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        build(4, BACKBONE, 6, options)


def test_longer_data_is_refused() -> None:
    with pytest.raises(ValueError, match="at most max_length = 6 tokens, got 7"):
        build(4, BACKBONE, 6, {}).loss(Batch.from_lists([[0] * 7]), generator=seeded())
