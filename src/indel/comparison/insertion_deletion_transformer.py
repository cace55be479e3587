"""Insertion–Deletion Transformer: insert until no slot wants a token, then delete what is wrong.

Ruis, Stern, Proskurnia, Chan: Insertion-Deletion Transformer (2020), on Stern et al.: Insertion
Transformer (2019). Insertions are learned in random order, from random subsequences of the data;
deletions from the model's own insertions. docs/relatives.md says what was chosen.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from indel import checks
from indel.batch import Batch
from indel.comparison.edit_moves import (
    applied,
    between_mask,
    chosen,
    gap_slots,
    mixed,
    slot_mask,
)
from indel.comparison.edit_paths import BLANK
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

ORDERS = ("tree", "uniform")


@dataclass(frozen=True)
class InsertionDeletionOptions:
    """What can be chosen."""

    order: str = "tree"
    """The targets of a slot: its middle token first, as in a balanced tree, or all tokens alike."""
    tree_temperature: float = 1.0
    """A token d places off the middle has weight ∝ exp(−d / temperature)."""
    own_share: float = 0.75
    """How often deletions are learned from the model's own insertions, else from corrupted data."""
    corruption: float = 0.3
    """The largest share of corrupted tokens."""
    temperature: float = 1.0
    """Of the tokens that are inserted."""
    phases: int = 3
    """The most insertion phases; all but the last are followed by a deletion phase."""

    def __post_init__(self) -> None:
        checks.choice("order", self.order, ORDERS)
        checks.number("tree_temperature", self.tree_temperature, least=0.0, more=True)
        checks.probability("own_share", self.own_share)
        checks.probability("corruption", self.corruption)
        checks.number("temperature", self.temperature, least=0.0)
        checks.integer("phases", self.phases, least=1)


class InsertionDeletionTransformer(nn.Module):
    """p(token or end | slot) and P(delete x_i), two heads of one stack that is told the phase."""

    name = "insertion-deletion-transformer"
    likelihood_kind: Literal["exact", "bound", "none"] = "none"

    def __init__(
        self,
        vocabulary_size: int,
        backbone: BackboneConfig,
        max_length: int,
        options: InsertionDeletionOptions,
    ) -> None:
        super().__init__()
        checks.integer("vocabulary_size", vocabulary_size, least=1)
        checks.integer("max_length", max_length, least=1)
        self.options, self.max_length = options, max_length
        self.vocab_size = vocabulary_size
        self.end = vocabulary_size
        # Each slot of a whole sequence may get one token too many.
        self.encoder = SlotEncoder(
            vocabulary_size, backbone, max_length=2 * max_length + 1, levels=True
        )
        self.slot_head = nn.Linear(backbone.width, vocabulary_size + 1)
        self.delete_head = nn.Linear(backbone.width, 1)
        for head in (self.slot_head, self.delete_head):
            nn.init.normal_(head.weight, std=backbone.width**-0.5)
            nn.init.zeros_(head.bias)

    # ---------------------------------------------------------------- the classifiers

    def slot_logits(self, x: Batch) -> Float[Tensor, "batch slots values"]:
        """Which token is missing right before each token and at the end, or none (`end`)."""
        phase = torch.zeros(len(x), device=x.device)
        found: Tensor = self.slot_head(self.encoder(x, phase))
        return found

    def delete_logits(self, x: Batch) -> Float[Tensor, "batch length"]:
        """log odds that each token goes."""
        phase = torch.ones(len(x), device=x.device)
        found: Tensor = self.delete_head(self.encoder(x, phase)[:, :-1])
        return found[..., 0]

    # ---------------------------------------------------------------- training

    def slot_targets(self, x: Batch, y: Batch) -> Float[Tensor, "batch slots values"]:
        """The law of the next insertion of each slot of x, a subsequence of y.

        Where a slot misses y_a … y_b, token y_i has weight ∝ exp(−|i − (a+b)/2| / temperature), or
        all have the same; a slot that misses nothing has `end`. Zero behind the last slot.
        """
        missing = shortest_edits(x, y).missing
        slots = slot_mask(x)
        # The first missing token of each slot is preceded by all earlier ones and the tokens of x.
        places = torch.arange(x.width + 1, device=x.device)
        start = missing.cumsum(dim=1) - missing + places
        token = torch.arange(y.width, device=x.device)
        inside = (token >= start[..., None]) & (token < (start + missing)[..., None])
        if self.options.order == "tree":
            middle = start + (missing - 1) / 2
            off = (token - middle[..., None]).abs() / self.options.tree_temperature
        else:
            off = torch.zeros(inside.shape, device=x.device)
        weight = torch.softmax(off.neg().masked_fill(~inside, -torch.inf), dim=2)
        weight = weight.masked_fill(~inside, 0.0)
        values = functional.one_hot(y.tokens.clamp_min(0), self.vocab_size + 1).to(weight.dtype)
        targets = weight @ values
        targets[..., self.end] = (slots & (missing == 0)).to(weight.dtype)
        return targets.masked_fill(~slots[..., None], 0.0)

    def loss(self, x_0: Batch, *, generator: torch.Generator) -> Float[Tensor, " batch"]:
        """Cross-entropy of the slots, and of the deletions after the model's own insertions."""
        refuse_longer(x_0.lengths, self.max_length)
        partial = random_subsequence(x_0, generator=generator)
        logits = self.slot_logits(partial)
        logp = functional.log_softmax(logits, dim=2)
        total = -(self.slot_targets(partial, x_0) * logp).sum(dim=(1, 2))

        own = self._inserted(partial, logits.detach(), self.options.temperature, generator)
        corrupted = corrupted_up_to(
            x_0, self.vocab_size, self.options.corruption, generator=generator
        )
        wrong = mixed(own, corrupted, self.options.own_share, generator)
        return total + deletion_cost(self.delete_logits(wrong), wrong, x_0)

    def negative_log_likelihood(self, x_0: Batch, *, generator: torch.Generator) -> None:
        """None: p(x) sums over all orders of insertion and all that was deleted on the way."""
        del x_0, generator

    def _inserted(
        self,
        x: Batch,
        logits: Float[Tensor, "batch slots values"],
        temperature: float,
        generator: torch.Generator,
        *,
        limit: Int[Tensor, " batch"] | int | None = None,
    ) -> Batch:
        """One token in each slot at once, but for those that end."""
        tokens = chosen(logits, temperature, generator)
        inserts = tokens.masked_fill(tokens == self.end, BLANK)
        return applied(x, x.tokens, inserts, limit=limit)

    # ---------------------------------------------------------------- phases

    @torch.no_grad()
    def generate(self, count: int, *, generator: torch.Generator) -> Drawn:
        """Insert into the empty sequence, delete, insert again."""
        device = self.delete_head.weight.device
        x = Batch.from_lists([[]] * count, device=device)
        nothing = torch.zeros(count, dtype=torch.int64, device=device)
        return self._phases(x, nothing, nothing, generator, self.options.temperature)

    @torch.no_grad()
    def repair(self, noisy: Batch, *, generator: torch.Generator) -> Drawn:
        """Delete from the corrupted sequence first; each choice is the most probable one."""
        noisy = noisy.to(self.delete_head.weight.device)
        nothing = torch.zeros_like(noisy.lengths)
        x = kept_tokens(noisy, self.delete_logits(noisy) > 0)
        drawn = self._phases(x, nothing, nothing, generator, 0.0)
        return Drawn(drawn.sequences, drawn.calls + 1)

    @torch.no_grad()
    def infill(
        self,
        left: list[list[int]],
        right: list[list[int]],
        lengths: list[int] | None,
        *,
        generator: torch.Generator,
    ) -> Drawn:
        """Insert and delete between both parts alone.

        With a known length slots go on until the gap has it, and then no further.
        """
        device = self.delete_head.weight.device
        rows = [[*one, *other] for one, other in zip(left, right, strict=True)]
        x = Batch.from_lists(rows, device=device)
        first, last = (torch.tensor(list(map(len, part)), device=device) for part in (left, right))
        known = None if lengths is None else torch.tensor(lengths, device=device)
        return self._phases(x, first, last, generator, self.options.temperature, known)

    def _phases(
        self,
        x: Batch,
        left: Int[Tensor, " batch"],
        right: Int[Tensor, " batch"],
        generator: torch.Generator,
        temperature: float,
        known: Int[Tensor, " batch"] | None = None,
    ) -> Drawn:
        calls = 0
        for phase in range(self.options.phases):
            x, more = self._insertion_phase(x, left, right, generator, temperature, known)
            calls += more
            if phase == self.options.phases - 1:
                break
            deleted = (self.delete_logits(x) > 0) & between_mask(x, left, right)
            calls += 1
            if not bool(deleted.any()):
                break
            x = kept_tokens(x, deleted)
        return Drawn(x.to_lists(), calls)

    def _insertion_phase(
        self,
        x: Batch,
        left: Int[Tensor, " batch"],
        right: Int[Tensor, " batch"],
        generator: torch.Generator,
        temperature: float,
        known: Int[Tensor, " batch"] | None,
    ) -> tuple[Batch, int]:
        """Insert until every slot has ended, or the sequence is as long as it may be."""
        limit: Int[Tensor, " batch"] | int = x.lengths.clamp_min(self.max_length)
        if known is not None:
            limit = left + right + known
        calls, going_on = 0, torch.ones_like(left, dtype=torch.bool)
        while bool(going_on.any()):
            logits = self.slot_logits(x)
            calls += 1
            open_slots = gap_slots(x, left, right) & going_on[:, None]
            logits = self._only_in(logits, ~open_slots)
            if known is not None:
                logits = self._not_all_end(logits, x.lengths < limit)
            before = x.lengths
            x = self._inserted(x, logits, temperature, generator, limit=limit)
            # A sequence has ended once all of its slots have, whatever the others of the batch do.
            going_on = x.lengths > before
        return x, calls

    def _only_in(
        self, logits: Float[Tensor, "batch slots values"], closed: Tensor
    ) -> Float[Tensor, "batch slots values"]:
        """Slots that are closed end."""
        ends = torch.arange(logits.shape[2], device=logits.device) == self.end
        return logits.masked_fill(closed[..., None] & ~ends, -torch.inf)

    def _not_all_end(
        self, logits: Float[Tensor, "batch slots values"], short: Tensor
    ) -> Float[Tensor, "batch slots values"]:
        """Of a sequence that is too short, the slot that is least likely to end does not."""
        logp_end = torch.log_softmax(logits, dim=2)[..., self.end]
        least = logp_end.argmin(dim=1)
        rows = torch.arange(len(logits), device=logits.device)[short]
        logits = logits.clone()
        logits[rows, least[short], self.end] = -torch.inf
        return logits


def build(
    vocabulary_size: int, backbone: BackboneConfig, max_length: int, options: dict[str, Any]
) -> InsertionDeletionTransformer:
    """A new Insertion–Deletion Transformer; options: fields of `InsertionDeletionOptions`."""
    defaults = asdict(InsertionDeletionOptions())
    name = "the options of insertion-deletion-transformer"
    values = checks.fields(name, options, [], defaults=defaults)
    return InsertionDeletionTransformer(
        vocabulary_size, backbone, max_length, InsertionDeletionOptions(**values)
    )
