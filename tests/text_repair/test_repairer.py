"""Repair from text to text, with a real network that has learned nothing."""

import re
from pathlib import Path

import pytest

import indel
from indel import IntegerVocabulary
from indel.model import Denoiser
from indel.process import Schedule
from indel.text_repair.repairer import Repairer, repair
from support.denoisers import letter_denoiser

TEXT = "Thsi sentsnetne,\n\twasstype “vssry” at 10:30 — by b@c.de… 😀\r\n\r\nТак! The\0 end\udc80"


@pytest.fixture(scope="module")
def denoiser() -> Denoiser:
    return letter_denoiser()


def test_it_is_part_of_the_package() -> None:
    assert indel.repair is repair
    assert indel.Repairer is Repairer


def test_the_seed_decides_and_the_batch_does_not(denoiser: Denoiser) -> None:
    def repaired(seed: int, batch_size: int, *others: str) -> indel.Repair:
        repairer = Repairer(denoiser, 4, 4, agreement=0.25, seed=seed, batch_size=batch_size)
        return repairer([TEXT, *others])[0]

    first = repaired(0, 64)
    assert first == repaired(0, 3) == repaired(0, 64, "another text")
    assert first == repair(TEXT, model=denoiser, strength=4, draws=4, agreement=0.25)
    assert first.draws != repaired(1, 64).draws


def test_draws_differ_and_lose_nothing(denoiser: Denoiser) -> None:
    found = repair(TEXT, model=denoiser, strength=5, draws=6)
    assert len(found.draws) == 6
    assert len(set(found.draws)) > 1
    for written in (found.text, *found.draws):
        assert re.sub("[A-Za-z ]", "", written) == re.sub("[A-Za-z ]", "", TEXT)


def test_a_bold_agreement_makes_corrections_and_a_strict_one_does_not(denoiser: Denoiser) -> None:
    # Small letters alone: capitals and punctuation are a reason to leave a word as it is.
    text = "thsi sentsnetne wasstype vssry babdly"
    bold = repair(text, model=denoiser, strength=6, draws=3, agreement=0.01)
    strict = repair(text, model=denoiser, strength=6, draws=3, agreement=1.0)
    assert bold.corrections
    assert bold.text != text
    assert strict.text == text
    assert strict.draws == bold.draws


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "A",
        "😀",
        "你好",
        "\0" * 1_000_000,
        "a" * 100_000,
        "e\u0301" * 200,
        "\ud800",
        "\n" * 999,
    ],
    ids=lambda text: f"{text[:1]!a} × {len(text)}",
)
def test_extreme_texts_come_back(denoiser: Denoiser, text: str) -> None:
    found = repair(text, model=denoiser, strength=2, draws=2, agreement=1.0)
    assert found.original == text
    assert re.sub("[A-Za-z ]", "", found.text) == re.sub("[A-Za-z ]", "", text)


@pytest.mark.slow
def test_a_hundred_thousand_letters(denoiser: Denoiser) -> None:
    text = "Thsi sentence is, in all, of 57 characters; nothing more.\n" * 1_750
    done = []
    repairer = Repairer(denoiser, 1, 1, agreement=1.0)
    (found,) = repairer([text], progress=lambda *counts: done.append(counts))
    assert len(text) > 100_000
    assert re.sub("[A-Za-z ]", "", found.text) == re.sub("[A-Za-z ]", "", text)
    assert done[-1][0] == done[-1][1] > 1_000


def test_progress_can_cancel(denoiser: Denoiser) -> None:
    class Cancelled(Exception):
        pass

    def cancel(_: int, __: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        Repairer(denoiser)([TEXT], progress=cancel)


def test_a_model_may_be_a_folder(denoiser: Denoiser, tmp_path: Path) -> None:
    denoiser.save_pretrained(tmp_path / "model")
    for model in (tmp_path / "model", str(tmp_path / "model")):
        assert repair(TEXT, model=model, draws=3) == repair(TEXT, model=denoiser, draws=3)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"agreement": 0.0}, r"agreement must be above 0 and at most 1, got 0\.0"),
        ({"agreement": 1.5}, r"got 1\.5"),
        ({"agreement": float("nan")}, "got nan"),
        ({"strength": 0}, "strength must lie in 1…31, got 0"),
        ({"strength": 33}, "got 33"),
        ({"draws": -1}, "draws must be at least 0, got -1"),
    ],
)
def test_bad_settings(denoiser: Denoiser, settings: dict[str, float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Repairer(denoiser, **settings)(["text"])


def test_a_model_of_numbers_cannot_repair_text() -> None:
    numbers = Denoiser.from_preset(
        "tiny", IntegerVocabulary(30), Schedule.paper(30, 10, 0.6), max_length=127
    )
    with pytest.raises(ValueError, match="must know a–z and the space"):
        Repairer(numbers)(["text"])


def test_a_single_text_is_not_a_sequence_of_texts(denoiser: Denoiser) -> None:
    with pytest.raises(TypeError, match="single text"):
        Repairer(denoiser)("text")


@pytest.fixture(scope="module")
def bundled() -> Repairer:
    return Repairer()


def test_swapped_letters_are_mended(bundled: Repairer) -> None:
    swapped = {
        "teh": "the",
        "agian": "again",
        "becuase": "because",
        "freind": "friend",
        "recieve": "receive",
        "thier": "their",
        "hte": "the",
        "siad": "said",
        "taht": "that",
        "woudl": "would",
        "poeple": "people",
        "knwo": "know",
    }
    repairs = bundled([f"i think that {word} is right" for word in swapped])
    right = [
        repair.text == f"i think that {meant} is right"
        for repair, meant in zip(repairs, swapped.values(), strict=True)
    ]
    assert sum(right) >= 10, dict(zip(swapped, right, strict=True))


def test_correct_modern_sentences_stay(bundled: Repairer) -> None:
    path = Path(__file__).parent.parent / "data" / "correct_sentences.txt"
    sentences = path.read_text(encoding="utf-8").splitlines()
    assert len(sentences) == 200
    changed = [each for repair in bundled(sentences) for each in repair.corrections]
    words = sum(len(sentence.split()) for sentence in sentences)
    assert len(changed) <= words / 1000, [(each.before, each.after) for each in changed]


def test_the_words_of_the_issue(bundled: Repairer) -> None:
    text = "Priya texted me from her iPhone, so I googled it."
    assert bundled([text])[0].text == text
    (mended,) = bundled(["please recieve it in a seperate box"])
    assert mended.text == "please receive it in a separate box"


def test_words_run_together_with_more_errors(bundled: Repairer) -> None:
    (found,) = bundled(["thisn sentsnetne wasstype vssry babdly"])
    assert found.text == "this sentence was type very badly"


def test_no_call_of_the_network_by_default(bundled: Repairer) -> None:
    calls = []
    hook = bundled.mender.denoiser.register_forward_hook(lambda *_: calls.append(1))
    assert bundled(["teh cat"])[0].text == "the cat"
    hook.remove()
    assert not calls
    assert bundled.mender.draws == 0
