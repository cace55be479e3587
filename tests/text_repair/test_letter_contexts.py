"""How well letters fit between others, by contexts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from indel import CharacterVocabulary, Denoiser, Schedule
from indel.text_repair.letter_contexts import LetterContexts

LETTERS = "abc "
TEXT = "abc abc cab abc bca abc abc cab "


@pytest.fixture(scope="module")
def counted() -> Denoiser:
    vocabulary = CharacterVocabulary(LETTERS)
    schedule = Schedule.paper(vocabulary.size, num_steps=4, rate=0.5)
    model = Denoiser.from_preset("tiny", vocabulary, schedule, max_length=64, contexts=60)
    assert model.prior is not None
    model.prior.fit([np.array(vocabulary.encode(TEXT))] * 30)
    return model


@pytest.fixture(scope="module")
def contexts(counted: Denoiser) -> LetterContexts:
    found = LetterContexts.of(counted)
    assert found is not None
    return found


def by_hand(model: Denoiser, before: str, text: str) -> float:
    """log p(text | before) by following the list of transitions."""
    prior = model.prior
    assert prior is not None
    last, common = prior.last.tolist(), (prior.common / prior.common.sum()).tolist()
    kept = {}
    columns = (prior.source, prior.target, prior.prob)
    for source, target, prob in zip(*(each.tolist() for each in columns), strict=True):
        if prob > 0:
            kept[source, last[target]] = (target, prob)
    state, total = 0, 0.0
    for place, token in enumerate(model.vocabulary.encode(before + text)):
        target, prob = kept.get((state, token), (1 + token, 0.0))
        if place >= len(before):
            total += math.log(prob + math.exp(float(prior.log_rest[state])) * common[token])
        state = target
    return total


@pytest.mark.parametrize("before", ["", "a", "abc ab", "c"])
@pytest.mark.parametrize("text", ["c", "bc a", "cccc", ""])
@pytest.mark.parametrize("after", ["", " abc"])
def test_agrees_with_following_transitions(
    counted: Denoiser, contexts: LetterContexts, before: str, text: str, after: str
) -> None:
    found = contexts.log_probs(before, [text, "aaaaa"], after)
    assert found[0] == pytest.approx(by_hand(counted, before, text + after), abs=1e-4)


def test_the_next_letter_has_a_distribution(counted: Denoiser, contexts: LetterContexts) -> None:
    prior = counted.prior
    assert prior is not None
    total = sum(math.exp(each) for each in contexts.log_probs("ab", list(LETTERS), ""))
    assert 0.9 < total <= 1.0 + 1e-5  # the rest is that nothing follows
    likely, unlikely = contexts.log_probs("ab", ["c", "b"], "")
    assert likely > unlikely + 2


def test_without_counts_there_are_no_contexts() -> None:
    vocabulary = CharacterVocabulary(LETTERS)
    schedule = Schedule.paper(vocabulary.size, num_steps=4, rate=0.5)
    assert LetterContexts.of(Denoiser.from_preset("tiny", vocabulary, schedule)) is None
