"""Strings that are no molecule, mended: p_θ(x_0 | x_t = the string), until it is one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from indel.batch import Batch
from indel.bound.likelihood import evaluation_mode
from indel.levenshtein import edit_distance
from indel.model import Denoiser
from indel.molecules.chemistry import canonical, parsed
from indel.randomness import RowSeeds, seeds_for
from indel.sampling.generation import denoise_from
from indel.vocabularies import CharacterVocabulary, Vocabulary
from indel.vocabularies.smiles import SmilesVocabulary, smiles_tokens


@dataclass(frozen=True)
class Mended:
    """What a string was made into."""

    original: str
    smiles: str | None
    """The molecule, as drawn; None if no draw was one."""
    edits: int
    """Tokens that differ (Levenshtein)."""
    votes: int
    """How many draws are this molecule."""
    t: int
    """The time that the string was taken to be at; 0: it was a molecule already."""


def mend(model: Denoiser, smiles: str, *, draws: int = 32, seed: int = 0) -> Mended:
    """The molecule that a broken SMILES string most likely was.

    The string is taken for an x_t at t = 1 and 32 x_0 are drawn from p_θ(x_0 | x_t); if none of
    them is a molecule, t doubles, up to half of the steps. Of the molecules the one that most draws
    agree on is taken, the nearest of those that tie. What the model has no token for is left out
    first.

    Args:
        model: A denoiser of SMILES.
        smiles: The string.
        draws: How many x_0 are drawn at each t.
        seed: The same seed gives the same answer.

    Returns:
        `Mended`: `.smiles`, `.edits`, `.votes`, `.t`.

    Reference: docs/molecules.md
    """
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    if parsed(smiles) is not None:
        return Mended(smiles, smiles, edits=0, votes=draws, t=0)
    tokens = readable_tokens(smiles, model.vocabulary)
    limit = model.config.max_length
    if len(tokens) > limit:
        raise ValueError(f"{smiles[:40]!r} has {len(tokens)} tokens, the model takes {limit}")
    t, last = 1, max(1, model.schedule.num_steps // 2)
    while True:
        found = _drawn(model, tokens, t, draws, seed)
        if found is not None or t >= last:
            text, votes = found or (None, 0)
            edits = 0 if text is None else edit_distance(tokens, model.vocabulary.encode(text))
            return Mended(smiles, text, edits, votes, t)
        t = min(2 * t, last)


def readable_tokens(smiles: str, vocabulary: Vocabulary) -> list[int]:
    """The tokens of a string that the vocabulary knows, without what it cannot read.

    >>> vocabulary = SmilesVocabulary.moses()
    >>> vocabulary.decode(readable_tokens("CC[nHc1?[Si]", vocabulary))
    'CCnc1'
    """
    if isinstance(vocabulary, CharacterVocabulary):
        return vocabulary.encode("".join(each for each in smiles if each in vocabulary.characters))
    if not isinstance(vocabulary, SmilesVocabulary):
        raise ValueError(f"mending needs a model of SMILES, this one has {vocabulary!r:.80}")
    found: list[int] = []
    place = 0
    while place < len(smiles):
        for length in range(min(len(smiles) - place, 12), 0, -1):
            piece = smiles[place : place + length]
            try:
                one = smiles_tokens(piece)
            except ValueError:
                continue
            if one == [piece]:
                found += vocabulary.encode(piece) if piece in vocabulary.tokens else []
                place += length
                break
        else:
            place += 1
    return found


def _drawn(
    model: Denoiser, tokens: list[int], t: int, draws: int, seed: int
) -> tuple[str, int] | None:
    """The molecule that most draws agree on, and how many; None if none is a molecule."""
    generator = RowSeeds(seeds_for(seed, "mend", t * draws, draws).to(model.device))
    x_t = Batch.from_lists([tokens] * draws, device=model.device)
    with evaluation_mode(model):
        texts = denoise_from(model, x_t, t, generator=generator).texts
    votes = Counter[str]()
    spelled: dict[str, tuple[int, str]] = {}
    for text in texts:
        if (molecule := parsed(text)) is not None:
            name = canonical(molecule)
            votes[name] += 1
            distance = edit_distance(tokens, model.vocabulary.encode(text))
            spelled[name] = min(spelled.get(name, (distance, text)), (distance, text))
    if not votes:
        return None
    best = max(votes, key=lambda name: (votes[name], -spelled[name][0], name))
    return spelled[best][1], votes[best]
