"""The network's scores of texts in their context, and the weights that a fit finds for them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from indel import Batch
from indel.process import Schedule
from indel.text_repair.context import ContextScore
from indel.text_repair.lines import Mender
from indel.text_repair.pairs import Pair
from indel.text_repair.spelling import Place, Spelling
from indel.text_repair.tuning import Example, examples_of, starting_weights, tune
from indel.text_repair.typing_channel import TypingChannel
from indel.text_repair.votes import LetterCorrection
from indel.text_repair.weights import EVIDENCE, Weights
from indel.text_repair.windows import AFTER, BEFORE
from support.denoisers import letter_denoiser

LINE = "the caat sat on a mat"
KEPT, WRITTEN = EVIDENCE.index("context_kept"), EVIDENCE.index("context_written")


def place(*texts: str) -> Place:
    found = np.zeros((len(texts), len(EVIDENCE)))
    return Place(LINE, LetterCorrection(4, 8, (), ()), texts, found)


def test_scores_are_those_of_the_network() -> None:
    """Against a call of the network for each text alone, read off letter by letter."""
    denoiser = letter_denoiser()
    weights = Weights(context_kept=1.0, context_written=1.0)
    scorer = ContextScore(denoiser, weights, t_kept=3, t_written=9, reach=40)
    (scored,) = scorer([place("caat", "cat", "chat")])
    encode, del_ = denoiser.vocabulary.encode, denoiser.vocabulary.del_
    before, after = (BEFORE + "the ")[-40:], (" sat on a mat" + AFTER)[:40]
    for text, row in zip(scored.texts, scored.evidence, strict=True):
        whole = encode(before + text + after)
        for column, t, shown in (
            (KEPT, 3, whole),
            (WRITTEN, 9, encode(before) + [del_] * len(text) + encode(after)),
        ):
            with torch.inference_mode():
                output = denoiser(Batch.from_lists([shown]), t)
            tokens = output.logits_token[0].log_softmax(-1)
            none = output.logits_deletions[0].log_softmax(-1)[:, 0]
            inside = range(40, 40 + len(text))
            if column == KEPT:
                inside = range(40 - 8, 40 + len(text) + 8)
                expected = sum(float(none[at]) for at in range(inside.start, inside.stop + 1))
            else:
                expected = 0.0
            expected += sum(float(tokens[at, whole[at]]) for at in inside)
            assert row[column] == pytest.approx(expected, abs=1e-3)


def test_the_network_is_not_asked_where_it_cannot_matter() -> None:
    denoiser = letter_denoiser()
    clear = place("caat", "cat")
    clear.evidence[1, EVIDENCE.index("count")] = 20.0
    weights = Weights(count=1.0, context_kept=1.0)
    calls = []
    denoiser.register_forward_hook(lambda *_: calls.append(1))
    assert ContextScore(denoiser, weights)([clear])[0] is clear
    unsure = place("caat", "cat")
    assert ContextScore(denoiser, replace(weights, context_kept=0.0))([unsure])[0] is unsure
    assert not calls
    ContextScore(denoiser, weights)([unsure] * 3)
    assert len(calls) == 1


def test_long_texts_and_short_models_do_not_break() -> None:
    denoiser = letter_denoiser()
    scorer = ContextScore(denoiser, Weights(context_kept=1.0))
    (scored,) = scorer([place("x" * 100, "y" * 101)])
    assert np.isfinite(scored.evidence).all()


def test_a_fit_finds_the_weights_that_made_the_data() -> None:
    """Answers drawn with known weights: the fit finds them, and its probabilities are right."""
    generator = np.random.default_rng(0)
    true = Weights(count=1.5, typing=0.5, context_kept=-0.7)
    examples = []
    for _ in range(4000):
        evidence = np.zeros((3, len(EVIDENCE)))
        for name in ("count", "typing", "context_kept"):
            evidence[:, EVIDENCE.index(name)] = generator.normal(size=3)
        texts = ("a", "b", "c")
        found = Place("a", LetterCorrection(0, 1, (), ()), texts, evidence)
        right = int(generator.choice(3, p=found.probabilities(true)))
        examples.append(Example(found, right, texts[right]))
    tuned = tune(examples, Weights(), spread=10.0)
    assert tuned.kinds == ("count", "typing", "context_kept")
    for name in tuned.kinds:
        assert getattr(tuned.weights, name) == pytest.approx(getattr(true, name), abs=0.15)
    assert tuned.after < tuned.before == pytest.approx(math.log(3))
    assert tuned.wrong(0.9) >= tuned.wrong(0.4)


def test_examples_know_what_is_right_with_and_without_words() -> None:
    denoiser = letter_denoiser()
    channel = TypingChannel(denoiser.vocabulary, Schedule.paper(28, 32, 0.6))
    spelling = Spelling(channel, starting_weights(with_words=False))
    mender = Mender(denoiser, strength=4, draws=4, spelling=spelling)
    pairs = [Pair("the caat sat on a mat", "the cat sat on a mat")]
    examples = examples_of(pairs, mender)
    assert examples
    for each in examples:
        start, end = each.place.correction.start, each.place.correction.end
        before = LINE[start:end]
        assert each.intended == before.replace("caat", "cat")
        assert each.place.typed == before
        assert each.right == 0 or each.place.texts[each.right] == each.intended
        # The network was asked wherever nothing was clear.
        scores = each.place.evidence[:, KEPT]
        assert (scores != 0).all() or each.place.probabilities(spelling.weights).max() >= 0.99
