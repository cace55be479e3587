"""Training with frozen spans and sources: settings, runs, what their models can do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import indel
from indel import load
from indel.cli import run
from indel.data import open_data
from indel.process import Schedule
from indel.training import TrainingError, train
from support.denoisers import tiny_denoiser
from support.small_runs import VERY_SMALL, final, very_small

SPANS = {"training__frozen": "spans"}


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spans") / "run"
    train(very_small(**SPANS), folder)
    return folder


def pairs_file(folder: Path) -> Path:
    words = ["ab", "abc", "cab", "bca", "aab", "cc", "bab", "acb", "bb", "ca"]
    file = folder / "pairs.tsv"
    file.write_text("".join(f"{word}\t{word[::-1]}\n" for word in words))
    return file


def test_the_model_says_what_it_was_trained_with(spans: Path, tmp_path: Path) -> None:
    model = load(spans)
    assert model.config.frozen == "spans"
    assert model.marks is not None
    assert bool((model.marks.weight != 0).any(dim=1).all())
    # A folder from before has no such field.
    train(very_small(training__steps=1), tmp_path / "plain")
    plain = load(tmp_path / "plain")
    plain.save_pretrained(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    fields = json.loads(path.read_text())
    assert fields.pop("frozen") == "nothing"
    path.write_text(json.dumps(fields))
    (tmp_path / "model" / "checksums.json").unlink()
    assert load(tmp_path / "model").config == plain.config


def test_a_resumed_run_ends_with_the_same_bits(spans: Path, tmp_path: Path) -> None:
    train(very_small(training__steps=10, **SPANS), tmp_path / "run")
    train(very_small(**SPANS), tmp_path / "run", resume=True)
    whole, parts = final(spans).weights, final(tmp_path / "run").weights
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_accumulation_trains_as_one_batch(tmp_path: Path) -> None:
    """What is frozen, and its noise, belong to a row and not to a micro-batch."""
    train(very_small(training__steps=5, **SPANS), tmp_path / "one")
    train(very_small(training__steps=5, training__accumulate=4, **SPANS), tmp_path / "four")
    one, four = final(tmp_path / "one").weights, final(tmp_path / "four").weights
    for name, weight in one.items():
        torch.testing.assert_close(weight, four[name], rtol=1e-3, atol=1e-4)


def test_training_may_start_from_a_model_without_marks(tmp_path: Path) -> None:
    train(very_small(training__steps=3), tmp_path / "plain")
    model = load(tmp_path / "plain")
    model.save_pretrained(tmp_path / "model")
    still = {"optimizer__learning_rate": 1e-12, "optimizer__muon_learning_rate": 1e-12}
    config = very_small(model__start=str(tmp_path / "model"), training__steps=1, **still, **SPANS)
    train(config, tmp_path / "marked")
    weights = final(tmp_path / "marked").weights
    for name, before in model.state_dict().items():
        torch.testing.assert_close(weights[name], before, rtol=0, atol=1e-6)
    assert float(weights["marks.weight"].abs().max()) < 1e-6


def test_evaluate_reports_the_conditional_bound(
    spans: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["evaluate", str(spans), "--examples", "8", "--samples", "0", "--json"]
    assert run(settings) == 0
    both = json.loads(capsys.readouterr().out)
    given = both["conditional_nats_per_sequence"]["mean"]
    assert given < both["nats_per_sequence"]["mean"]
    stream = open_data("arithmetic", **_options(), seed=0)
    same = indel.evaluate(load(spans), stream, examples=8, frozen="spans")
    assert same.nats_per_sequence.mean == pytest.approx(given, rel=1e-5)
    assert run([*settings, "--frozen", "nothing"]) == 0
    assert "conditional_nats_per_sequence" not in json.loads(capsys.readouterr().out)
    assert run([*settings, "--frozen", "half"]) == 2
    assert "--frozen must be nothing, spans or source" in capsys.readouterr().err
    assert run([*settings, "--frozen", "source"]) == 2
    assert "in which the tab" in capsys.readouterr().err


def test_evaluate_refuses_a_model_that_has_learned_nothing_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_denoiser(Schedule.paper(512, 4, 0.6), max_length=64, max_deletions=None).save_pretrained(
        tmp_path
    )
    arguments = ["evaluate", str(tmp_path), "--data", "arithmetic", "--examples", "2"]
    assert run([*arguments, "--samples", "0", "--frozen", "spans"]) == 2
    assert "was not trained with frozen tokens" in capsys.readouterr().err


def test_infilling_uses_what_was_learned(spans: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["infill", str(spans), "3 {} 5 {1,2} 7", "-n", "4", "--json"]) == 0
    for line in capsys.readouterr().out.splitlines():
        sample = json.loads(line)
        words = sample["text"].split()
        assert (words[0], words[-1]) == ("3", "7")
        assert sample["ids"][len(sample["gaps"][0].split()) + 1] == 5
        assert len(sample["gaps"][1].split()) in (1, 2)


def test_pairs_are_trained_with_their_source_frozen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = pairs_file(tmp_path), tmp_path / "run"
    small = [f"--set={name}={json.dumps(VERY_SMALL[name])}" for name in VERY_SMALL if _fits(name)]
    arguments = ["train", f"pairs:{file}", "--scale", "tiny", "--out", str(out), *small]
    assert run(arguments) == 0
    model = load(out)
    assert model.config.frozen == "source"
    capsys.readouterr()
    assert run(["infill", str(out), "cab\t{}", "-n", "3"]) == 0
    assert all(line.startswith("cab\t") for line in capsys.readouterr().out.splitlines())
    assert run(["evaluate", str(out), "--examples", "2", "--json"]) == 0
    assert "conditional_bits_per_token" in json.loads(capsys.readouterr().out)


def test_bad_settings_are_refused(tmp_path: Path) -> None:
    for name, value, message in (
        ("frozen_share", 1.5, "training.frozen_share must"),
        ("frozen_share", -0.5, "training.frozen_share must"),
        ("drop_source", 0.5, "training.drop_source must be 0 unless"),
    ):
        with pytest.raises(ValueError, match=message):
            very_small(**{f"training__{name}": value})
    with pytest.raises(ValueError, match="in which the tab"):
        train(very_small(training__frozen="source"), tmp_path / "run")
    letters = indel.CharacterVocabulary("AC\tGT")
    schedule = indel.Schedule.paper(5, 4, 0.6)
    model = indel.Denoiser.from_preset("tiny", letters, schedule)
    with pytest.raises(TrainingError, match="but the model was made with frozen = 'nothing'"):
        indel.train(
            model, ["ACGT", "AC", "GT"], tmp_path / "x", settings={"training.frozen": "spans"}
        )
    pairs = ["A\tC", "C\tG", "G\tT"]
    model = indel.Denoiser.from_preset("tiny", letters, schedule, frozen="source")
    with pytest.raises(TrainingError, match="made with drops_source = False"):
        indel.train(model, pairs, tmp_path / "y", settings={"training.drop_source": 0.5})
    with pytest.raises(ValueError, match="drops_source needs frozen = 'source'"):
        indel.Denoiser.from_preset("tiny", letters, schedule, drops_source=True)


def test_bad_pairs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.tsv"
    file.write_text("ab\tba\nabc\nca\tac\n")
    assert run(["train", f"pairs:{file}", "--out", str(tmp_path / "run")]) == 2
    assert "pair 2 must be a source, one tab and a target, got 'abc'" in capsys.readouterr().err
    file.write_text("ab\tba\nabc\tc\tc\nca\tac\n")
    assert run(["train", f"pairs:{file}", "--out", str(tmp_path / "run")]) == 2
    assert "pair 2 must be" in capsys.readouterr().err


def _options() -> dict[str, int]:
    start = "data.options."
    return {k.removeprefix(start): v for k, v in VERY_SMALL.items() if k.startswith(start)}


def _fits(name: str) -> bool:
    return not name.startswith("data.")
