"""Edits of a whole batch at once: tokens that go or change, and one new token per slot."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from indel.batch import Batch, pack
from indel.comparison.edit_paths import BLANK, PendingEdits, interleaved
from indel.randomness import index_at, uniform


def applied(
    x: Batch,
    tokens: Int[Tensor, "batch length"],
    inserts: Int[Tensor, "batch slots"],
    *,
    limit: Int[Tensor, " batch"] | int | None = None,
) -> Batch:
    """Each token of x becomes `tokens` there, after the slot's `inserts`; BLANK is nothing.

    With a limit the rightmost inserts that would make a sequence longer are left out.

    >>> x = Batch.from_lists([[5, 6]])
    >>> applied(x, torch.tensor([[-1, 7]]), torch.tensor([[-1, 3, 4]])).to_lists()
    [[3, 7, 4]]
    """
    tokens = tokens.masked_fill(~x.mask, BLANK)
    inserts = inserts.masked_fill(~slot_mask(x), BLANK)
    if limit is not None:
        new = inserts != BLANK
        room = limit - (tokens != BLANK).sum(dim=1)
        inserts = inserts.masked_fill(new.cumsum(dim=1) > room[:, None], BLANK)
    sites = interleaved(inserts, tokens)
    present = sites != BLANK
    return Batch(pack(sites, present, fill=BLANK), present.sum(dim=1)).trimmed()


def slot_mask(x: Batch) -> Bool[Tensor, "batch slots"]:
    """True at the slots before each token and before the end."""
    return torch.arange(x.width + 1, device=x.device) <= x.lengths[:, None]


def joined(*parts: Batch) -> Batch:
    """The sequences of several batches one after the other, row by row."""
    tokens = torch.cat([part.tokens for part in parts], dim=1)
    mask = torch.cat([part.mask for part in parts], dim=1)
    return Batch(pack(tokens, mask, fill=BLANK), mask.sum(dim=1)).trimmed()


def between(x: Batch, left: Int[Tensor, " batch"], right: Int[Tensor, " batch"]) -> Batch:
    """The sequences without their first `left` and last `right` tokens."""
    kept = between_mask(x, left, right)
    return Batch(pack(x.tokens, kept, fill=BLANK), kept.sum(dim=1)).trimmed()


def mixed(first: Batch, second: Batch, share: float, generator: torch.Generator) -> Batch:
    """For each row the first with probability `share`, else the second."""
    takes = uniform(generator, len(first), 1, dtype=torch.float32).to(first.device) < share
    width = max(first.width, second.width)
    tokens = torch.where(takes, first.widened(width).tokens, second.widened(width).tokens)
    return Batch(tokens, torch.where(takes[:, 0], first.lengths, second.lengths)).trimmed()


def between_mask(
    x: Batch, left: Int[Tensor, " batch"], right: Int[Tensor, " batch"]
) -> Bool[Tensor, "batch length"]:
    """The positions between the first `left` and the last `right` tokens."""
    places = torch.arange(x.width, device=x.device)
    return (places >= left[:, None]) & (places < (x.lengths - right)[:, None])


def gap_slots(
    x: Batch, left: Int[Tensor, " batch"], right: Int[Tensor, " batch"]
) -> Bool[Tensor, "batch slots"]:
    """The slots there, those at both ends included."""
    slots = torch.arange(x.width + 1, device=x.device)
    return (slots >= left[:, None]) & (slots <= (x.lengths - right)[:, None])


def chosen(
    logits: Float[Tensor, "batch places values"], temperature: float, generator: torch.Generator
) -> Int[Tensor, "batch places"]:
    """Draw by softmax(logits / temperature); at temperature 0 take the most probable."""
    if temperature == 0.0:
        return logits.argmax(dim=2)
    noise = uniform(generator, *logits.shape[:2], dtype=torch.float64).to(logits.device)
    prob = torch.softmax(logits.double() / temperature, dim=2)
    return index_at(prob.cumsum(dim=2), noise)


def leap(
    x: Batch,
    expected: PendingEdits,
    share: float,
    *,
    generator: torch.Generator,
    free: tuple[Bool[Tensor, "batch length"], Bool[Tensor, "batch slots"]] | None = None,
    limit: Int[Tensor, " batch"] | int | None = None,
) -> Batch:
    """A τ-leap: each position and slot by itself makes each expected edit with chance `share`.

    A position is replaced by v or deleted with probability share · expected; a slot gets one token
    with probability min(1, share · Σ_v expected), in proportion to these.
    """
    rows, width, _ = expected.token.shape
    noise = uniform(generator, rows, 3 * width + 2, dtype=torch.float64).to(x.device)
    prob = share * expected.token.double()
    tokens = index_at(_stay_or(x, prob).cumsum(dim=2), noise[:, :width])
    weights = expected.insert.double()
    happens = noise[:, width : 2 * width + 1] < share * weights.sum(dim=2)
    inserts = index_at(weights.cumsum(dim=2), noise[:, 2 * width + 1 :])
    return _edited(x, tokens, inserts, happens, expected, free, limit)


def most_probable_edits(
    x: Batch, expected: PendingEdits, *, limit: Int[Tensor, " batch"] | int | None = None
) -> Batch:
    """Each position becomes what it is likeliest to be; slots that miss ½ a token or more get one.

    Nothing is drawn.
    """
    tokens = _stay_or(x, expected.token.double()).argmax(dim=2)
    happens = expected.insert.sum(dim=2) >= 0.5
    return _edited(x, tokens, expected.insert.argmax(dim=2), happens, expected, None, limit)


def _stay_or(
    x: Batch, prob: Float[Tensor, "batch length values"]
) -> Float[Tensor, "batch length values"]:
    """The probabilities of all edits, with what is left for the token as it is."""
    own = x.tokens.clamp_min(0)[..., None]
    edits = prob.scatter(2, own, 0.0)
    return edits.scatter(2, own, (1.0 - edits.sum(dim=2, keepdim=True)).clamp_min(0.0))


def _edited(
    x: Batch,
    tokens: Int[Tensor, "batch length"],
    inserts: Int[Tensor, "batch slots"],
    happens: Bool[Tensor, "batch slots"],
    expected: PendingEdits,
    free: tuple[Tensor, Tensor] | None,
    limit: Int[Tensor, " batch"] | int | None,
) -> Batch:
    tokens = tokens.masked_fill(tokens == expected.token.shape[2] - 1, BLANK)
    if free is not None:
        tokens = torch.where(free[0], tokens, x.tokens)
        happens = happens & free[1]
    return applied(x, tokens, inserts.masked_fill(~happens, BLANK), limit=limit)
