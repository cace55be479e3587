"""Embeddings of a token between its neighbors."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from indel import Batch, CharacterVocabulary, Denoiser, Schedule
from indel.model.trigrams import TrigramEmbedding
from indel.training.optimizers import make_optimizers
from support.small_runs import very_small

VOCABULARY = CharacterVocabulary("acgt")


def denoiser(trigrams: int) -> Denoiser:
    schedule = Schedule.paper(4, 4, 0.6)
    generator = torch.Generator().manual_seed(0)
    found = Denoiser.from_preset(
        "tiny", VOCABULARY, schedule, trigrams=trigrams, generator=generator
    )
    if found.trigrams is not None:
        torch.nn.init.normal_(found.trigrams.table.weight, generator=generator)
    return found.eval()


def test_every_group_of_three_has_a_row_of_its_own_where_there_is_room() -> None:
    table = TrigramEmbedding(5, 4, 125, 2)
    groups = torch.cartesian_prod(*[torch.arange(5)] * 3)
    rows = table.row(groups)[:, 1]
    assert sorted(rows.tolist()) == list(range(125))


def test_groups_share_rows_evenly_where_there_is_no_room() -> None:
    table = TrigramEmbedding(50, 49, 1000, 2)
    groups = torch.cartesian_prod(*[torch.arange(50)] * 3)
    counts = torch.bincount(table.row(groups)[:, 1], minlength=1000)
    assert counts.sum() == 50**3
    assert counts.max() <= 2 * 125
    assert counts.min() >= 125 // 2


def test_a_token_is_seen_with_its_neighbors_and_nothing_further() -> None:
    table = TrigramEmbedding(5, 4, 125, 3)
    torch.nn.init.normal_(table.table.weight, generator=torch.Generator().manual_seed(0))
    one, other = torch.tensor([[0, 1, 2, 3, 0, 4]]), torch.tensor([[0, 1, 2, 3, 1, 4]])
    same = (table(one) == table(other)).all(dim=-1)[0]
    assert same.tolist() == [True, True, True, False, False, False]


def test_padding_changes_nothing() -> None:
    model = denoiser(343)
    sequences = [VOCABULARY.encode("gattaca"), VOCABULARY.encode("cat")]
    together = model(Batch.from_lists(sequences), 2)
    alone = model(Batch.from_lists(sequences[1:]), 2)
    torch.testing.assert_close(together.logits_token[1:, :3], alone.logits_token)
    torch.testing.assert_close(together.logits_deletions[1:, :4], alone.logits_deletions)


def test_they_are_saved_and_trained(tmp_path: Path) -> None:
    model = denoiser(343)
    model.save_pretrained(tmp_path)
    again = Denoiser.from_pretrained(tmp_path)
    assert again.config == model.config
    x = Batch.from_lists([VOCABULARY.encode("gattaca")])
    assert torch.equal(again(x, 3).logits_token, model(x, 3).logits_token)
    assert not torch.equal(denoiser(0)(x, 3).logits_token, model(x, 3).logits_token)
    optimizers = make_optimizers(model, very_small().optimizer)
    trained = [w for o in optimizers for group in o.param_groups for w in group["params"]]
    assert model.trigrams is not None
    assert sum(w is model.trigrams.table.weight for w in trained) == 1


def test_a_negative_number_of_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="trigrams must be an integer ≥ 0, got -1"):
        denoiser(-1)
