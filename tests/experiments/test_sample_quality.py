"""How good samples are: measures that know the right answer."""

import json
from pathlib import Path

import pytest

from indel.batch import Batch
from indel.data import open_data
from indel.experiments.report_details import ngrams_text, samples_text, steps_text
from indel.experiments.sample_quality import sample_quality


def test_real_text_has_known_words_and_noise_has_few() -> None:
    data = open_data("text8-sample")
    real = sample_quality(data.examples(0, 20, "train"), data, "valid")
    noise = Batch.from_lists([data.vocabulary.encode("qzx jvq wwk zzpt xkcdq") for _ in range(20)])
    spoilt = sample_quality(noise, data, "valid")
    assert real["known_words"][0] == pytest.approx(1.0)
    assert spoilt["known_words"][0] == 0.0
    # A small sample does not have all words of its other parts, but most.
    assert 0.3 < real["known_words_of_text"][0] < 1.0
    assert real["known_words_of_text"] == spoilt["known_words_of_text"]


def test_arithmetic_has_error_rate_and_valid_share() -> None:
    data = open_data("arithmetic")
    right = data.examples(0, 4, "valid")
    assert sample_quality(right, data, "valid") == {"error_rate": [0, 0], "valid_rate": [1, 0]}
    wrong = sample_quality(Batch.from_lists([[5, 9, 5, 9], [2, 3, 4, 5]]), data, "valid")
    assert 0.0 < wrong["error_rate"][0] < 1.0
    assert wrong["valid_rate"][0] < 1.0


def test_the_report_shows_them(tmp_path: Path) -> None:
    runs = [{"rate": 0.6, "final": {"known_words": [0.5, 0.01]}}, {"rate": 0.0, "final": {}}]
    text = samples_text({"runs": runs})
    assert "| 0.6 insert/delete | 50.0 ± 1.0 |" in text
    assert "| in place | – |" in text
    assert samples_text({"runs": runs[1:]}) == ngrams_text(tmp_path) == ""
    steps = [{"rate": 0.6, "final": {"steps": [[1.25, 0.1], [0.5, 0.1]]}}]
    assert "| 1 | 1.25 |\n| 2 | 0.50 |" in steps_text({"runs": steps})
    assert steps_text({"runs": runs}) == ""
    record = {"bits_per_character": [4.0, 3.25], "train_characters": 9, "command": "indel …"}
    (tmp_path / "ngrams.json").write_text(json.dumps(record))
    assert "| 4.000 | 3.250 |" in ngrams_text(tmp_path)
