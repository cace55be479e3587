"""A denoiser that starts from counts: fitted, saved, resumed, corrected by its network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import indel
from indel import Batch, CharacterVocabulary, Denoiser, Schedule
from indel.training import train
from indel.training.counting import fit_counts
from indel.training.optimizers import make_optimizers
from support.small_runs import final, records, very_small

VOCABULARY = CharacterVocabulary("acgt")
TEXTS = ["gattacagattaca", "gattaca", "tagtagtag"] * 30


@pytest.fixture(autouse=True)
def _count_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indel.training.counting.TOKENS", 20_000)


def denoiser(contexts: int = 40, rate: float = 0.6) -> Denoiser:
    schedule = Schedule.paper(4, 4, rate)
    generator = torch.Generator().manual_seed(0)
    found = Denoiser.from_preset(
        "tiny", VOCABULARY, schedule, contexts=contexts, generator=generator
    )
    if found.prior is not None:
        found.prior.fit([np.array(VOCABULARY.encode(text)) for text in TEXTS])
        torch.nn.init.normal_(found.prior.inputs.weight, std=0.1, generator=generator)
    return found.eval()


def bound(model: Denoiser) -> float:
    texts = indel.evaluate(model, ["gattaca", "tagtagtag"] * 8, progress=False)
    return texts.bits_per_token.mean


def test_counts_alone_explain_the_data_before_any_training() -> None:
    with_counts, without = denoiser(), denoiser(contexts=0)
    assert bound(with_counts) < 0.5 * bound(without)


def test_without_data_all_tokens_are_alike() -> None:
    schedule = Schedule.paper(4, 4, 0.6)
    model = Denoiser.from_preset("tiny", VOCABULARY, schedule, contexts=40).eval()
    assert model.prior is not None
    assert not model.prior.fitted
    tables = schedule.tables(model.device)
    seen, t = Batch.from_lists([VOCABULARY.encode("gatt")]), torch.tensor([3])
    source = model.prior(tables, model.edit_weights(tables.jump), seen, t, 5)[0][:, :-1]
    torch.testing.assert_close(source[..., :4], source[..., :1].expand(-1, -1, 4))


def test_padding_changes_nothing() -> None:
    model = denoiser()
    sequences = [VOCABULARY.encode("gattaca"), VOCABULARY.encode("cat")]
    together = model(Batch.from_lists(sequences), 2)
    alone = model(Batch.from_lists(sequences[1:]), 2)
    torch.testing.assert_close(together.logits_token[1:, :3], alone.logits_token)
    torch.testing.assert_close(together.logits_deletions[1:, :4], alone.logits_deletions)


def test_it_is_saved_in_full_and_half_precision(tmp_path: Path) -> None:
    model = denoiser()
    model.save_pretrained(tmp_path / "full")
    again = Denoiser.from_pretrained(tmp_path / "full")
    assert again.config == model.config
    x = Batch.from_lists([VOCABULARY.encode("gattaca")])
    assert torch.equal(again(x, 3).logits_token, model(x, 3).logits_token)
    model.half().save_pretrained(tmp_path / "half")
    half = Denoiser.from_pretrained(tmp_path / "half")
    torch.testing.assert_close(
        half(x, 3).logits_token, again(x, 3).logits_token, atol=0.02, rtol=0.02
    )


def test_counts_are_not_trained_but_how_far_they_are_trusted_is() -> None:
    model = denoiser()
    assert model.prior is not None
    optimizers = make_optimizers(model, very_small().optimizer)
    trained = [w for o in optimizers for group in o.param_groups for w in group["params"]]
    for weight in (model.prior.trust, model.prior.share, model.prior.inputs.weight):
        assert sum(w is weight for w in trained) == 1
    assert not any(w is model.prior.prob for w in trained)


def test_a_run_takes_counts_of_its_data_and_resumes_with_the_same_bits(tmp_path: Path) -> None:
    changes = {"model__contexts": 200, "training__steps": 10}
    train(very_small(**changes), tmp_path / "whole")
    train(very_small(**changes | {"training__steps": 5}), tmp_path / "parts")
    train(very_small(**changes), tmp_path / "parts", resume=True)
    whole, parts = final(tmp_path / "whole"), final(tmp_path / "parts")
    assert whole.weights.keys() == parts.weights.keys()
    for name, weight in whole.weights.items():
        assert torch.equal(weight, parts.weights[name]), name
    assert (whole.weights["prior.prob"] > 0).sum() > 20
    assert records(tmp_path / "whole")[-1] == records(tmp_path / "parts")[-1]


def test_a_network_without_counts_may_start_a_run_with_them(tmp_path: Path) -> None:
    train(very_small(training__steps=2), tmp_path / "plain")
    start = str(tmp_path / "plain" / "checkpoints" / "step-00000002" / "model")
    config = very_small(training__steps=1, model__contexts=200, model__start=start)
    train(config, tmp_path / "counted")
    assert (final(tmp_path / "counted").weights["prior.prob"] > 0).any()


def test_counts_of_a_model_stay_where_it_starts_a_run(tmp_path: Path) -> None:
    model = denoiser()
    assert model.prior is not None
    before = model.prior.prob.clone()
    fit_counts(model, indel.Sequences(["ccc", "ccca", "cca"] * 20, VOCABULARY))
    assert torch.equal(model.prior.prob, before)


def test_a_run_with_fewer_contexts_than_its_start_counts_anew(tmp_path: Path) -> None:
    train(very_small(training__steps=1, model__contexts=200), tmp_path / "first")
    start = str(tmp_path / "first" / "checkpoints" / "step-00000001" / "model")
    config = very_small(training__steps=1, model__contexts=100, model__start=start)
    prior = train(config, tmp_path / "second").model.prior
    assert prior is not None
    assert len(prior.last) == 100
    assert prior.fitted


@pytest.mark.parametrize(
    ("contexts", "message"),
    [
        (-1, "contexts must be an integer"),
        (3, "contexts must be 0 or at least 5, one for each token and one for the start, got 3"),
        (10**9, "contexts must be an integer"),
    ],
)
def test_impossible_numbers_of_contexts_are_refused(contexts: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        denoiser(contexts)


def test_what_does_not_go_with_counts_is_refused() -> None:
    other = {"other_schedules": (Schedule.paper(4, 6, 0.6),), "noise_levels": True}
    with pytest.raises(ValueError, match="contexts cannot go with several numbers of steps"):
        Denoiser.from_preset("tiny", VOCABULARY, Schedule.paper(4, 4, 0.6), contexts=40, **other)
    frozen = torch.tensor([[True, False]])
    with pytest.raises(ValueError, match="must be told open_slots"):
        denoiser()(Batch.from_lists([[0, 1]]), 2, frozen)


def test_a_run_without_counts_may_start_from_a_model_with_them(tmp_path: Path) -> None:
    train(very_small(training__steps=1, model__contexts=200), tmp_path / "first")
    start = str(tmp_path / "first" / "checkpoints" / "step-00000001" / "model")
    train(very_small(training__steps=1, model__start=start), tmp_path / "second")
    assert not any(name.startswith("prior.") for name in final(tmp_path / "second").weights)
