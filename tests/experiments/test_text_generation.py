"""Figure 4 of an untrained model: what it shows is what happened, in text, HTML and picture."""

from __future__ import annotations

from indel.drawing.letter_rows import Look
from indel.experiments.paper_numbers import SENTENCE
from indel.experiments.text_generation import DRAWS, as_text, generated, repaired
from support.denoisers import letter_denoiser


def test_generation_starts_with_markers_alone_and_ends_settled() -> None:
    rows = generated(letter_denoiser(10, rate=0.6))
    assert (rows[0].name, rows[-1].name) == ("0", "10")
    assert {letter.look for letter in rows[0].letters} == {Look.SETTLED}
    assert set(rows[-1].text) == {"×"}


def test_repair_shows_the_sentence_and_draws_that_are_reproducible() -> None:
    model = letter_denoiser(10, rate=0.6)
    rows = repaired(model, 3)
    assert [row.name for row in rows] == ["typed", *map(str, range(1, DRAWS + 1))]
    assert rows[0].text == SENTENCE
    assert rows == repaired(model, 3)
    assert len({row.text for row in rows[1:]}) > 1


def test_in_place_repair_keeps_the_length() -> None:
    for row in repaired(letter_denoiser(10, rate=0.0), 3):
        assert len(row.text) == len(SENTENCE)
        assert {letter.look for letter in row.letters} <= {Look.SETTLED, Look.REPLACED}


def test_text_has_every_section_and_no_marks_in_repairs() -> None:
    model = letter_denoiser(10, rate=0.6)
    repairs = repaired(model, 3)
    text = as_text([("Generation", generated(model)), ("Repair", repairs)])
    generation, _, repair = text.partition("\nRepair\n")
    assert generation.startswith("Generation\n")
    assert "×" in generation
    assert "×" not in repair
    assert f"typed  {SENTENCE}" in repair
