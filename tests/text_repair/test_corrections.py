"""From corrections of letters to a repaired text: nothing is lost, and what is not mended stays."""

import random
import re
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indel.text_repair.corrections import MOST_ALTERNATIVES, mend
from indel.text_repair.repairer import Repairer
from indel.text_repair.results import Choice, Correction, Repair
from support.hostile_texts import anything, tricky
from support.menders import RandomMender, ScriptedMender

sentences = st.lists(
    st.sampled_from(["Teh", "cat's", "2nd", "naïve", "\n", "a@b.de", "WORD,", "so", "…", "你"]),
    max_size=12,
).map(" ".join)


def with_corrections(text: str, corrections: tuple[Correction, ...]) -> str:
    for each in reversed(corrections):
        assert text[each.start : each.end] == each.before
        text = text[: each.start] + each.after + text[each.end :]
    return text


def held(text: str) -> str:
    """What no repair may change or move: all but the letters of English and the plain space."""
    return re.sub("[A-Za-z ]", "", text)


@settings(deadline=None, max_examples=60)
@given(anything | tricky)
def test_without_corrections_the_text_is_the_same(text: str) -> None:
    (repair,) = mend([text], ScriptedMender({}, draws=2), agreement=0.5)
    assert repair == Repair(text, text, (), (), (), (text, text))


@settings(deadline=None, max_examples=60)
@given(anything | tricky | sentences, st.integers(0, 10**6), st.sampled_from([0.3, 0.5, 0.7, 1.0]))
def test_outside_the_corrections_the_text_is_the_same(
    text: str, seed: int, agreement: float
) -> None:
    (repair,) = mend([text], RandomMender(seed), agreement=agreement)
    assert repair.original == text
    assert repair.text == with_corrections(text, repair.corrections)
    for written in (repair.text, *repair.draws, *(each.text for each in repair.alternatives)):
        assert held(written) == held(text)
    places = sorted((*repair.corrections, *repair.doubts), key=lambda each: each.start)
    end = 0
    for each in places:
        assert end <= each.start < each.end
        assert text[each.start : each.end] == each.before
        assert sum(choice.probability for choice in each.choices) == pytest.approx(1)
        assert len({choice.text for choice in each.choices}) == len(each.choices)
        shares = [choice.probability for choice in each.choices]
        assert shares == sorted(shares, reverse=True)
        end = each.end
    for each in repair.corrections:
        assert enough(each, agreement)
        assert each.after != each.before
    for each in repair.doubts:
        assert not enough(each, agreement) or each.after == each.before


def enough(correction: Correction, agreement: float) -> bool:
    """The rule of docs/repair.md, written down once more."""
    shares = {choice.text: choice.probability for choice in correction.choices}
    best, typed = max(shares.values()), shares.get(correction.before, 0.0)
    return best >= (agreement if agreement < 0.5 else 0.5) and best - typed > 2 * agreement - 1.001


def test_corrections_are_made_where_enough_draws_agree() -> None:
    mender = ScriptedMender(
        {"teh": ["the", "the", "the", "teh"], "cta": ["cat", "cut", "cta", "cart"]}, draws=4
    )
    (repair,) = mend(["TEH CTA!"], mender, agreement=0.75)
    assert repair.text == "THE CTA!"
    made = Correction(0, 3, "TEH", (Choice("THE", 0.75), Choice("TEH", 0.25)))
    assert repair.corrections == (made,)
    (doubt,) = repair.doubts
    assert (doubt.start, doubt.end, doubt.before) == (4, 7, "CTA")
    assert {choice.text for choice in doubt.choices} == {"CAT", "CUT", "CTA", "CART"}
    assert repair.draws == ("THE CAT!", "THE CUT!", "THE CTA!", "TEH CART!")
    (strict,) = mend(["TEH CTA!"], mender, agreement=0.8)
    assert strict.text == "TEH CTA!"
    assert len(strict.doubts) == 2


def test_alternatives_differ_at_one_place_and_have_the_product_of_the_probabilities() -> None:
    mender = ScriptedMender(
        {"teh": ["the", "the", "the", "teh"], "cta": ["cat", "cat", "cut", "cta"]}, draws=4
    )
    (repair,) = mend(["teh cta"], mender, agreement=0.5)
    assert repair.text == "the cat"
    assert set(repair.alternatives) == {
        Choice("the cut", 0.75 * 0.25),
        Choice("the cta", 0.75 * 0.25),
        Choice("teh cat", 0.25 * 0.5),
    }
    assert repair.alternatives[-1].text == "teh cat"


@settings(deadline=None, max_examples=60)
@given(sentences, st.integers(0, 10**6))
def test_alternatives_are_ranked(text: str, seed: int) -> None:
    (repair,) = mend([text], RandomMender(seed, draws=5), agreement=0.4)
    shares = [each.probability for each in repair.alternatives]
    assert len(shares) <= MOST_ALTERNATIVES
    assert repair.text not in [each.text for each in repair.alternatives]
    answers = [
        next((choice.probability for choice in each.choices if choice.text == each.before), 0.0)
        for each in repair.doubts
    ] + [each.probability for each in repair.corrections]
    if prod(answers):
        assert shares == pytest.approx(sorted(shares, reverse=True))


def test_choices_that_differ_only_in_what_is_held_are_one() -> None:
    mender = ScriptedMender({"don t": ["dont", "don t", "dont t", "did t"]}, draws=4)
    (repair,) = mend(["i don't."], mender, agreement=0.5)
    (doubt,) = repair.doubts
    assert doubt.choices == (Choice("don't", 0.5), Choice("dont't", 0.25), Choice("did't", 0.25))


def test_places_where_nothing_can_be_changed_are_not_listed() -> None:
    mender = ScriptedMender({"two": ["too", "too"], "cafe": ["cafe", "cafe"]}, draws=2)
    (repair,) = mend(["a 2 café"], mender, agreement=0.5)
    assert repair == Repair("a 2 café", "a 2 café", (), (), (), ("a 2 café",) * 2)


def test_all_texts_go_to_the_mender_in_one_call_and_each_gets_its_own_back() -> None:
    mender = ScriptedMender({"teh": ["the"]}, draws=1)
    texts = ["Teh one", "", "no\n\nteh 2nd\n\nTEH", "4", "teh"]
    done: list[tuple[int, int]] = []
    repairs = mend(texts, mender, agreement=0.5, progress=lambda *counts: done.append(counts))
    assert mender.calls == [["teh one", "no", "teh two nd", "teh", "teh"]]
    assert [repair.text for repair in repairs] == [
        "The one",
        "",
        "no\n\nthe 2nd\n\nTHE",
        "4",
        "the",
    ]
    assert done == [(5, 5)]


def test_a_sentence_over_two_lines_is_seen_as_one() -> None:
    mender = ScriptedMender({"a apple": ["an apple"], "apple teh": ["apple the"]}, draws=1)
    (repair,) = mend(["he ate a\napple today"], mender, agreement=0.5)
    assert repair.text == "he ate an\napple today"


PIECES = (
    *(
        "teh",
        "wasstype",
        "becuase",
        "the",
        "cat's",
        "2nd",
        "WORD,",
        "iPhone",
        "I'm",
        "naïve",
        "1e308",
    ),
    *("a@b.de", "https://x.org/teh?q=1", "```", "<b>", "_", "%s", "-" * 40, "ab" * 100, "\0" * 50),
    *("\n", "\r\n", "\t", "  ", "\u00a0", "…", "你", "😀", "ß", "ﬂ", "e\u0301", "\u202e", "\udc80"),
)


def hostile_text(chance: random.Random) -> str:
    """Words, well and badly typed, among characters of any kind."""

    def piece() -> str:
        kind = chance.randrange(4)
        if kind == 0:
            return chr(chance.randrange(0x110000))
        if kind == 1:
            return "".join(chance.choices("etaoinshr", k=chance.randint(1, 12)))
        return chance.choice(PIECES)

    return "".join(piece() + chance.choice(["", " ", " "]) for _ in range(chance.randint(0, 12)))


@pytest.mark.slow
def test_a_thousand_hostile_texts_lose_nothing_with_the_bundled_words() -> None:
    texts = [hostile_text(random.Random(f"1 {number}")) for number in range(1000)]
    repairs = Repairer(agreement=0.3)(texts)
    for text, repair in zip(texts, repairs, strict=True):
        assert repair.original == text
        assert repair.text == with_corrections(text, repair.corrections), text
        for written in (repair.text, *(each.text for each in repair.alternatives)):
            assert held(written) == held(text), text
    assert sum(bool(repair.corrections) for repair in repairs) > 300
