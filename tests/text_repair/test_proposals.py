"""The network's own edits: odds by Bayes' rule, and texts that they lead to."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from indel.batch import Batch
from indel.model import Denoiser
from indel.model.denoiser import DenoiserOutput
from indel.text_repair.lines import Mender
from indel.text_repair.proposals import Proposals
from support.denoisers import letter_denoiser


class Scripted(Denoiser):
    """A denoiser that believes what it is told, whatever it sees: an answer for each position."""

    letters: str
    """What it believes to stand at each place; "+" is an insert."""
    missing: dict[int, str]
    """Slots in which one letter is missing, and which."""

    def forward(self, x_t: Batch, t: torch.Tensor | int) -> DenoiserOutput:
        size, del_ = self.vocabulary.size, self.vocabulary.del_
        token = torch.zeros(len(x_t), x_t.width, size + 1)
        deletions = torch.zeros(len(x_t), x_t.width + 1, self.max_deletions + 1)
        deletions[..., 0] = 20.0
        for row, tokens in enumerate(x_t.to_lists()):
            slot = tokens.index(del_) if del_ in tokens else None
            for place, value in enumerate(tokens):
                if place == slot:
                    wanted = self.missing.get(place, "x")
                    value = self.vocabulary.encode(wanted)[0]
                elif slot is None and place < len(self.letters) == len(tokens):
                    wanted = self.letters[place]
                    value = size if wanted == "+" else self.vocabulary.encode(wanted)[0]
                token[row, place, value] = 20.0
            if slot is None and len(tokens) == len(self.letters):
                for place in self.missing:
                    deletions[row, place, 1] = 25.0
        return DenoiserOutput(token, deletions)


def scripted(letters: str, missing: dict[int, str] | None = None, *, rate: float = 0.6) -> Scripted:
    plain = letter_denoiser(rate=rate)
    model = Scripted(plain.config)
    model.letters, model.missing = letters, missing or {}
    return model.eval()


def best(model: Denoiser, text: str, *, t: int = 3, rounds: int = 2) -> dict[str, str]:
    """The likeliest writing of each stretch that may be written otherwise."""
    (found,) = Proposals(model, t, rounds=rounds)([text])
    return {text[each.start : each.end]: each.choices[0].text for each in found}


@pytest.mark.parametrize(
    ("letters", "missing", "expected"),
    [
        ("the cat", {}, {"tje": "the"}),
        ("t+e cat", {}, {"tje": "te"}),
        ("tje cat", {7: "s"}, {"cat": "cats"}),
        ("tje cat", {0: "s"}, {"tje": "stje"}),
        ("tej cat", {}, {"tje": "tej"}),
        ("tje+cat", {}, {"tje cat": "tjecat"}),
        ("tje cat", {5: " "}, {"cat": "c at"}),
        ("tje c t", {}, {"cat": "c t"}),
    ],
)
def test_what_the_network_believes_is_proposed(
    letters: str, missing: dict[int, str], expected: dict[str, str]
) -> None:
    assert best(scripted(letters, missing), "tje cat") == expected


def test_a_network_that_would_change_nothing_proposes_nothing() -> None:
    assert best(scripted("tje cat"), "tje cat") == {}


def test_a_model_in_place_never_inserts_or_deletes() -> None:
    assert best(scripted("t+e cat", {0: "s"}, rate=0.0), "tje cat") == {}
    assert best(scripted("the cat", rate=0.0), "tje cat") == {"tje": "the"}


def test_two_rounds_find_two_errors() -> None:
    """The first edit changes the length, the second is found in the new text."""

    class Twice(Scripted):
        def forward(self, x_t: Batch, t: torch.Tensor | int) -> DenoiserOutput:
            self.letters = {4: "+hem", 3: "them"[1:]}.get(x_t.width, "")
            return super().forward(x_t, t)

    model = Twice(letter_denoiser().config).eval()
    model.letters, model.missing = "", {}
    assert best(model, "xhen", rounds=1) == {"xhen": "hen"}
    assert best(model, "xhen", rounds=2) == {"xhen": "hem"}


@pytest.mark.parametrize("t", [2, 3, 8])
@pytest.mark.parametrize("rate", [0.0, 0.6])
def test_odds_are_those_of_bayes_rule(t: int, rate: float) -> None:
    """p̃(v) Σ_y Ā_{t−1}[v, y] Q_t[y, z], the matrices multiplied out step by step."""
    model = letter_denoiser(rate=rate)
    schedule, size = model.schedule, model.vocabulary.size
    kept = np.eye(size)
    for s in range(1, t):
        kept = kept @ schedule.step(s).transition.matrix().numpy()
    last = schedule.step(t)
    channel = kept @ last.transition.matrix().numpy() * (1 - last.delete)
    tokens = model.vocabulary.encode("cat")
    logits = model(Batch.from_lists([tokens]), t).logits_token[0].detach().double()
    guess = Proposals(model, t)._called(["cat"])[0]
    for place, z in enumerate(tokens):
        weight = logits[place, :size].exp().numpy() * channel[:, z]
        expected = np.log(weight / weight[z])
        np.testing.assert_allclose(guess.odds[place, :size], expected, atol=1e-4)
    inserted = guess.odds[:, size]
    assert bool(torch.isinf(inserted).all()) == (rate == 0.0)
    assert bool(torch.isinf(guess.missing).all()) == (rate == 0.0)


def test_shares_are_probabilities_and_do_not_depend_on_the_batch() -> None:
    model = letter_denoiser()
    texts = ["the cat sat on the mat", "a", "it was one of the first"]
    together = Proposals(model, 8, batch_size=2)(texts)
    alone = [Proposals(model, 8)([text])[0] for text in texts]
    assert any(together)
    for one, other in zip(together, alone, strict=True):
        assert [(c.start, c.end) for c in one] == [(c.start, c.end) for c in other]
        for a, b in zip(one, other, strict=True):
            assert sum(choice.probability for choice in a.choices) == pytest.approx(1.0)
            assert [c.text for c in a.choices] == [c.text for c in b.choices]
            shares = [c.probability for c in b.choices]
            assert [c.probability for c in a.choices] == pytest.approx(shares, rel=1e-3)


def test_a_mender_without_words_and_draws_asks_the_network() -> None:
    model = scripted("the cat")
    line = "tje cat"
    mender = Mender(model, draws=0, width=7, overlap=3)
    (repair,) = mender([line])
    assert [(c.start, c.end, c.choices[0].text) for c in repair.corrections] == [(0, 3, "the")]
    assert repair.corrections[0].choices[0].probability > 1 - math.exp(-5)
