"""What the network itself would edit: one call gives the probabilities of all single edits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from indel.batch import Batch
from indel.log_space import logsumexp
from indel.model import Denoiser
from indel.model.edit_weights import EditWeights
from indel.model.reverse import log_deleted, log_values
from indel.text_repair.results import Choice
from indel.text_repair.votes import SPACE, LetterCorrection

_SLOTS = 6  # of a window, those in which a letter is most likely missing
_LETTERS = 3  # that are proposed for one place
_REACH = 12  # letters on either side of a slot that say which one is missing there

_Around = tuple[str, str]
"""The letters before and after a slot."""
_Letters = list[tuple[str, float]]
"""Letters that may be missing, with log-probabilities."""


@dataclass
class _Stretch:
    """Whole words of a window, how they are written now, and all ways that were proposed."""

    typed: str
    now: str = ""
    odds_now: float = 0.0
    proposed: dict[str, float] = field(default_factory=dict)
    """log p(text) / p(as typed), of the likeliest way to get there by single edits."""

    def __post_init__(self) -> None:
        self.now = self.typed

    def propose(self, text: str, odds: float) -> None:
        """One more edit of how it is written now."""
        text, total = SPACE.join(text.split()), self.odds_now + odds
        if text and text != self.typed and total > self.proposed.get(text, -math.inf):
            self.proposed[text] = total


@dataclass(frozen=True)
class Proposals:
    """Ways to write the words of a text, by the network's guess of the edits p̃(a | x_t = text).

    p̃(v) says what a letter should be by what stands around it, whatever stands there itself. So
    one call gives the odds of each letter v, and of "inserted by mistake", against what stands
    there, z: p̃(v) C[v, z] / p̃(z) C[z, z] with the channel C = Ā_{t−1} Q_t; and for each slot
    p̃(n > 0) / p̃(0). Which letter is missing there is read off where a DEL stands in a second call.
    Further rounds start from the likeliest writing so far.

    Paper: App. B.4
    """

    denoiser: Denoiser
    t: int
    rounds: int = 2
    least: float = 0.02
    """Edits that are less likely than this, in relation to none, are not proposed."""
    most: int = 12
    """Proposals for one stretch."""
    batch_size: int = 64

    def __call__(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None
    ) -> list[list[LetterCorrection]]:
        """The stretches of each text that may be written otherwise, with the odds as shares."""
        found: list[list[LetterCorrection]] = []
        for first in range(0, len(texts), self.batch_size):
            found += self._of(texts[first : first + self.batch_size])
            if progress is not None:
                progress(len(found), len(texts))
        return found

    def _of(self, texts: Sequence[str]) -> list[list[LetterCorrection]]:
        lines = [[_Stretch(word) for word in text.split(SPACE)] for text in texts]
        guesses = self._called(texts)
        lines = [
            _joined(line, guess, math.log(self.least))
            for line, guess in zip(lines, guesses, strict=True)
        ]
        waiting, known = list(lines), dict[_Around, _Letters]()
        for number in range(self.rounds):
            # What was joined still reads the same: the first round has its guesses already.
            found = guesses if number == 0 else self._called(_written(waiting))
            self._propose(waiting, found, known)
            waiting = [line for line in waiting if _advance(line)]
            if not waiting:
                break
        return [self._corrections(line) for line in lines]

    def _propose(
        self,
        lines: Sequence[list[_Stretch]],
        guesses: Sequence[_Guess],
        known: dict[_Around, _Letters],
    ) -> None:
        """Add all likely single edits of how the stretches are written now."""
        slots: list[tuple[int, int]] = []
        for number, (line, guess) in enumerate(zip(lines, guesses, strict=True)):
            for stretch, start in _placed(line):
                self._edit_letters(stretch, start, guess)
            slots += [(number, slot) for slot in guess.likely_slots(math.log(self.least))]
        texts = _written(lines)
        written = self._missing_letters([(texts[number], slot) for number, slot in slots], known)
        for (number, slot), letters in zip(slots, written, strict=True):
            for stretch, start in _placed(lines[number]):
                place = slot - start
                if 0 <= place <= len(stretch.now):
                    for letter, logp in letters:
                        text = stretch.now[:place] + letter + stretch.now[place:]
                        stretch.propose(text, guesses[number].missing[slot].item() + logp)

    def _edit_letters(self, stretch: _Stretch, start: int, guess: _Guess) -> None:
        """Replace or take out a letter, or swap two."""
        now, characters = stretch.now, self.denoiser.vocabulary
        for place in range(len(now)):
            row = guess.odds[start + place]
            values = torch.nonzero(row > math.log(self.least))[:, 0].tolist()
            for value in values:
                letter = "" if value == characters.size else str(characters.decode([value]))
                stretch.propose(now[:place] + letter + now[place + 1 :], row[value].item())
        for place in range(len(now) - 1):
            first, second = characters.encode(now[place : place + 2])
            odds = guess.odds[start + place, second] + guess.odds[start + place + 1, first]
            if first != second and odds > math.log(self.least):
                swapped = now[:place] + now[place + 1] + now[place] + now[place + 2 :]
                stretch.propose(swapped, odds.item())

    def _missing_letters(
        self, slots: Sequence[tuple[str, int]], known: dict[_Around, _Letters]
    ) -> list[_Letters]:
        """The likeliest letters of each slot with their log-probabilities: a DEL is put there.

        What is known already, of the same letters around, is not asked again.
        """
        around = [
            (text[max(0, slot - _REACH) : slot], text[slot : slot + _REACH]) for text, slot in slots
        ]
        asked = [each for each in dict.fromkeys(around) if each not in known]
        for first in range(0, len(asked), self.batch_size):
            some = asked[first : first + self.batch_size]
            known |= zip(some, self._letters_between(some), strict=True)
        return [known[each] for each in around]

    def _letters_between(self, around: Sequence[_Around]) -> list[_Letters]:
        vocabulary = self.denoiser.vocabulary
        rows = [
            [*vocabulary.encode(before), vocabulary.del_, *vocabulary.encode(after)]
            for before, after in around
        ]
        logits, _ = self._logits(rows)
        at = torch.tensor([len(before) for before, _ in around], device=logits.device)
        chosen = logits[torch.arange(len(rows), device=logits.device), at, : vocabulary.size]
        best = torch.log_softmax(chosen, dim=-1).topk(min(_LETTERS, vocabulary.size), dim=-1)
        return [
            [
                (str(vocabulary.decode([token])), value)
                for token, value in zip(tokens, values, strict=True)
            ]
            for values, tokens in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]

    def _called(self, texts: Sequence[str]) -> list[_Guess]:
        vocabulary, found = self.denoiser.vocabulary, []
        for first in range(0, len(texts), self.batch_size):
            rows = [vocabulary.encode(text) for text in texts[first : first + self.batch_size]]
            logits_token, logits_deletions = self._logits(rows)
            for row, token, deletions in zip(rows, logits_token, logits_deletions, strict=True):
                letters = torch.tensor(row, device=token.device, dtype=torch.long)
                weighed = token[: len(row)] + self._channel[:, letters].T
                odds = weighed - weighed.gather(1, letters[:, None])
                missing = logsumexp(deletions[:, 1:], dim=-1) - deletions[:, 0]
                found.append(_Guess(odds, missing[: len(row) + 1]))
        return found

    @cached_property
    def _channel(self) -> Float[Tensor, "values tokens"]:
        """log Σ_y Ā_{t−1}[v, y] Q_t[y, z] for each letter v; the last row is that of inserts."""
        tables = self.denoiser.schedule.tables(self.denoiser.device)
        size = self.denoiser.vocabulary.size
        # Where only one value has probability, the combination with q is the row of that value.
        certain = torch.full((1, size + 1, size + 1), -math.inf, dtype=tables.dtype)
        certain[0].fill_diagonal_(0.0)
        t = torch.tensor([self.t], device=self.denoiser.device)
        values = log_values(tables, certain.to(t.device), t, self._weights)[0]
        # Where q inserts nothing, that row has no probability at all.
        values = values.nan_to_num(nan=-math.inf)
        letters = torch.arange(size, device=t.device)
        columns = tables.step.columns(t[:, None], letters[None])[0].log()
        return logsumexp(values[:, None, :] + columns[None], dim=-1).float()

    @cached_property
    def _weights(self) -> EditWeights:
        return self.denoiser.edit_weights(self.denoiser.schedule.tables(self.denoiser.device).jump)

    @torch.inference_mode()
    def _logits(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Logits of the tokens' sources, and log p̃(n) of the deletions that q can make."""
        x_t = Batch.from_lists(rows, device=self.denoiser.device)
        t = torch.full((len(rows),), self.t, device=x_t.device)
        output = self.denoiser(x_t, t)
        return output.logits_token.float(), log_deleted(
            output.logits_deletions.float(), t, self._weights
        )

    def _corrections(self, line: Sequence[_Stretch]) -> list[LetterCorrection]:
        found, start = [], 0
        for stretch in line:
            end = start + len(stretch.typed)
            if stretch.proposed:
                best = sorted(stretch.proposed.items(), key=lambda item: (-item[1], item[0]))
                odds = {stretch.typed: 0.0, **dict(best[: self.most])}
                total = torch.tensor(list(odds.values())).logsumexp(dim=0).item()
                choices = [Choice(text, math.exp(each - total)) for text, each in odds.items()]
                choices.sort(key=lambda choice: -choice.probability)
                found.append(LetterCorrection(start, end, tuple(choices), ()))
            start = end + 1
        return found


@dataclass(frozen=True)
class _Guess:
    """The log-odds of single edits of a text."""

    odds: Float[Tensor, "length values"]
    """log p̃(v)/p̃(as it stands) for each letter v, then for a letter that was inserted."""
    missing: Float[Tensor, " slots"]
    """log p̃(n > 0)/p̃(0) for the slot before each letter, and at the end."""

    def likely_slots(self, least: float) -> list[int]:
        """The slots in which something may be missing, the likeliest of them."""
        best = self.missing.topk(min(_SLOTS, len(self.missing)))
        return [
            slot
            for slot, odds in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            if odds > least
        ]


def _written(lines: Sequence[Sequence[_Stretch]]) -> list[str]:
    """Each line as it is written now."""
    return [SPACE.join(stretch.now for stretch in line) for line in lines]


def _placed(line: Sequence[_Stretch]) -> list[tuple[_Stretch, int]]:
    """The stretches of a line, and where each begins as it is written now."""
    found, start = [], 0
    for stretch in line:
        found.append((stretch, start))
        start += len(stretch.now) + 1
    return found


def _joined(line: list[_Stretch], guess: _Guess, least: float) -> list[_Stretch]:
    """Words with a space between them that may be there by mistake become one stretch."""
    found: list[_Stretch] = []
    end = -1
    for stretch in line:
        odds = guess.odds[end, -1].item() if end >= 0 else -math.inf
        if found and odds > least and SPACE not in found[-1].typed:
            before = found.pop()
            joined = _Stretch(before.typed + SPACE + stretch.typed)
            joined.propose(before.typed + stretch.typed, odds)
            found.append(joined)
        else:
            found.append(replace(stretch))
        end += len(stretch.typed) + 1
    return found


def _advance(line: Sequence[_Stretch]) -> bool:
    """Write each stretch in its likeliest way; whether that changes anything."""
    changed = False
    for stretch in line:
        options = {stretch.typed: 0.0, **stretch.proposed}
        now = max(options, key=lambda text: options[text])
        changed |= now != stretch.now
        stretch.now, stretch.odds_now = now, options[now]
    return changed
