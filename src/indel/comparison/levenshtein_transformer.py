"""Levenshtein Transformer: delete tokens, insert placeholders, fill them, until nothing changes.

Gu, Wang, Zhao: Levenshtein Transformer (2019). Three classifiers on one stack imitate the shortest
edit sequence to the data (`shortest_edits`), from subsequences of the data, from corrupted data,
and from what the model itself proposes. docs/relatives.md says what was chosen without a source
sentence.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from indel import checks
from indel.batch import PADDING, Batch, spread
from indel.comparison.edit_moves import (
    between_mask,
    chosen,
    gap_slots,
    mixed,
    slot_mask,
)
from indel.comparison.interface import Drawn
from indel.comparison.requirements import refuse_longer
from indel.comparison.shortest_edits import (
    corrupted_up_to,
    deletion_cost,
    kept_tokens,
    random_subsequence,
    shortest_edits,
)
from indel.comparison.slot_encoder import SlotEncoder
from indel.model.backbones import BackboneConfig


@dataclass(frozen=True)
class LevenshteinOptions:
    """What can be chosen."""

    own_share: float = 0.5
    """How often deletions are learned from the model's own proposals, else from corrupted data."""
    drop_share: float = 0.5
    """How often insertions are learned from a random subsequence of the data, else from corrupted
    data of which the oracle has deleted what is wrong."""
    corruption: float = 0.3
    """The largest share of corrupted tokens; each sequence has its own, uniform up to this."""
    temperature: float = 1.0
    """Of the tokens that are filled in, and of the placeholders of the first round."""
    rounds: int = 10
    """The most rounds of refinement; a round calls the network three times."""

    def __post_init__(self) -> None:
        for name in ("own_share", "drop_share", "corruption"):
            checks.probability(name, getattr(self, name))
        checks.number("temperature", self.temperature, least=0.0)
        checks.integer("rounds", self.rounds, least=1)


class LevenshteinTransformer(nn.Module):
    """P(delete x_i), P(number of placeholders in a slot), P(token of a placeholder)."""

    name = "levenshtein-transformer"
    likelihood_kind: Literal["exact", "bound", "none"] = "none"

    def __init__(
        self,
        vocabulary_size: int,
        backbone: BackboneConfig,
        max_length: int,
        options: LevenshteinOptions,
    ) -> None:
        super().__init__()
        checks.integer("vocabulary_size", vocabulary_size, least=1)
        checks.integer("max_length", max_length, least=1)
        self.options, self.max_length = options, max_length
        self.vocab_size = vocabulary_size
        self.placeholder = vocabulary_size
        # Corrupted data may have a token more for each.
        self.encoder = SlotEncoder(
            vocabulary_size + 1, backbone, max_length=2 * max_length, levels=False
        )
        width = backbone.width
        self.delete_head = nn.Linear(width, 1)
        # A slot is seen from both sides, as in the paper.
        self.count_head = nn.Linear(2 * width, max_length + 1)
        for head in (self.delete_head, self.count_head):
            nn.init.normal_(head.weight, std=head.in_features**-0.5)
            nn.init.zeros_(head.bias)

    # ---------------------------------------------------------------- the classifiers

    def delete_logits(self, x: Batch) -> Float[Tensor, "batch length"]:
        """log odds that each token goes."""
        found: Tensor = self.delete_head(self.encoder(x)[:, :-1])
        return found[..., 0]

    def count_logits(self, x: Batch) -> Float[Tensor, "batch slots counts"]:
        """How many placeholders each slot gets: 0…max_length."""
        hidden = self.encoder(x)
        before = functional.pad(hidden, (0, 0, 1, 0))[:, :-1]
        found: Tensor = self.count_head(torch.cat([before, hidden], dim=2))
        return found

    def token_logits(self, x: Batch) -> Float[Tensor, "batch length tokens"]:
        """What each token is, which matters where it is a placeholder."""
        return self.encoder.token_logits(self.encoder(x)[:, :-1], self.vocab_size)

    # ---------------------------------------------------------------- training

    def loss(self, x_0: Batch, *, generator: torch.Generator) -> Float[Tensor, " batch"]:
        """−log of what the oracle does: its placeholders, their tokens, and its deletions."""
        refuse_longer(x_0.lengths, self.max_length)
        corrupted = corrupted_up_to(
            x_0, self.vocab_size, self.options.corruption, generator=generator
        )
        nearly_right = kept_tokens(corrupted, shortest_edits(corrupted, x_0).deleted)
        dropped = random_subsequence(x_0, generator=generator)
        partial = mixed(dropped, nearly_right, self.options.drop_share, generator)
        missing = shortest_edits(partial, x_0).missing
        counts = functional.log_softmax(self.count_logits(partial), dim=2)
        logp = counts.gather(2, missing[..., None])[..., 0]
        total = -logp.masked_fill(~slot_mask(partial), 0.0).sum(dim=1)

        with_holes = self.with_placeholders(partial, missing)
        holes = with_holes.mask & (with_holes.tokens == self.placeholder)
        logits = self.token_logits(with_holes)
        logp = functional.log_softmax(logits, dim=2)
        right = x_0.widened(with_holes.width).tokens.clamp_min(0)
        logp = logp.gather(2, right[..., None])[..., 0]
        total = total - logp.masked_fill(~holes, 0.0).sum(dim=1)

        own = self._filled(with_holes, logits.detach(), self.options.temperature, generator)
        wrong = mixed(own, corrupted, self.options.own_share, generator)
        return total + deletion_cost(self.delete_logits(wrong), wrong, x_0)

    def negative_log_likelihood(self, x_0: Batch, *, generator: torch.Generator) -> None:
        """None: refinement defines no tractable p(x), nor is its loss a bound on one."""
        del x_0, generator

    # ---------------------------------------------------------------- refinement

    def with_placeholders(self, x: Batch, counts: Int[Tensor, "batch slots"]) -> Batch:
        """x with so many placeholders right before each token and at the end."""
        counts = counts.masked_fill(~slot_mask(x), 0)
        laid = spread(x.tokens, x.mask, counts)
        filled = laid.tokens.masked_fill(laid.tokens == PADDING, self.placeholder)
        return Batch(filled, laid.lengths)

    @torch.no_grad()
    def generate(self, count: int, *, generator: torch.Generator) -> Drawn:
        """Refine from the empty sequence."""
        device = self.delete_head.weight.device
        x = Batch.from_lists([[]] * count, device=device)
        nothing = torch.zeros(count, dtype=torch.int64, device=device)
        return self._refined(x, nothing, nothing, generator, self.options.temperature)

    @torch.no_grad()
    def repair(self, noisy: Batch, *, generator: torch.Generator) -> Drawn:
        """Refine from the corrupted sequence; each choice is the most probable one."""
        noisy = noisy.to(self.delete_head.weight.device)
        nothing = torch.zeros_like(noisy.lengths)
        return self._refined(noisy, nothing, nothing, generator, 0.0)

    @torch.no_grad()
    def infill(
        self,
        left: list[list[int]],
        right: list[list[int]],
        lengths: list[int] | None,
        *,
        generator: torch.Generator,
    ) -> Drawn:
        """Refine from both parts together; nothing of them goes, and nothing comes between them.

        With a known length the gap gets that many placeholders, and what is deleted in it becomes a
        placeholder again.
        """
        device = self.delete_head.weight.device
        rows = [[*one, *other] for one, other in zip(left, right, strict=True)]
        first, last = (torch.tensor(list(map(len, part)), device=device) for part in (left, right))
        known = None if lengths is None else torch.tensor(lengths, device=device)
        x = Batch.from_lists(rows, device=device)
        return self._refined(x, first, last, generator, self.options.temperature, known)

    def _refined(
        self,
        x: Batch,
        left: Int[Tensor, " batch"],
        right: Int[Tensor, " batch"],
        generator: torch.Generator,
        temperature: float,
        known: Int[Tensor, " batch"] | None = None,
    ) -> Drawn:
        """Rounds of deletion, placeholders and tokens, until a round changes nothing."""
        calls = 0
        for number in range(self.options.rounds):
            last = x
            deleted = (self.delete_logits(x) > 0) & x.mask & between_mask(x, left, right)
            first = number == 0
            calls += 1
            if known is None:
                x = kept_tokens(x, deleted)
                logits = self.count_logits(x)
                calls += 1
                drawn = temperature if first else 0.0
                counts = chosen(logits, drawn, generator)
                counts = counts.masked_fill(~gap_slots(x, left, right), 0)
                room = (self.max_length - x.lengths).clamp_min(0)[:, None]
                before = counts.cumsum(dim=1) - counts
                holes = self.with_placeholders(x, counts.minimum((room - before).clamp_min(0)))
            elif first:
                slots = torch.arange(x.width + 1, device=x.device)
                at_gap = slots == left[:, None]
                holes = self.with_placeholders(x, torch.where(at_gap, known[:, None], 0))
            else:
                holes = Batch(x.tokens.masked_fill(deleted, self.placeholder), x.lengths)
            calls += 1
            x = self._filled(holes, self.token_logits(holes), temperature, generator)
            # Tokens that went and came back are no change either.
            if x == last:
                break
        return Drawn(x.to_lists(), calls)

    def _filled(
        self,
        holes: Batch,
        logits: Float[Tensor, "batch length tokens"],
        temperature: float,
        generator: torch.Generator,
    ) -> Batch:
        tokens = chosen(logits, temperature, generator)
        is_hole = holes.tokens == self.placeholder
        return Batch(torch.where(is_hole, tokens, holes.tokens), holes.lengths)


def build(
    vocabulary_size: int, backbone: BackboneConfig, max_length: int, options: dict[str, Any]
) -> LevenshteinTransformer:
    """A new Levenshtein Transformer; options are the fields of `LevenshteinOptions`."""
    defaults = asdict(LevenshteinOptions())
    name = "the options of levenshtein-transformer"
    values = checks.fields(name, options, [], defaults=defaults)
    return LevenshteinTransformer(
        vocabulary_size, backbone, max_length, LevenshteinOptions(**values)
    )
