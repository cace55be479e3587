"""Edit flow: a Markov process in continuous time that inserts, deletes and substitutes tokens.

Havasi, Karrer, Gat, Chen: Edit Flows, flow matching with edit operations (2025). The path from
noise x_0 to data x_1 is in `edit_paths`; docs/relatives.md derives the loss and the bound.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from indel import checks
from indel.batch import Batch
from indel.comparison.edit_moves import (
    applied,
    between,
    between_mask,
    gap_slots,
    joined,
    leap,
    most_probable_edits,
    slot_mask,
)
from indel.comparison.edit_paths import BLANK, EditPath, EditSource, PendingEdits
from indel.comparison.interface import Drawn
from indel.comparison.requirements import refuse_longer
from indel.comparison.slot_encoder import SlotEncoder
from indel.log_space import weighted
from indel.model.backbones import BackboneConfig
from indel.randomness import index_at

ALIGNMENTS = ("all", "sampled")
# κ = 1 − v² with v uniform: the weight 2/v has finite variance, that of a uniform κ has not.
# Below this v nothing is drawn: 1 − v² would be rounded to 1.
SMALLEST_V = 1e-6


@dataclass(frozen=True)
class EditFlowOptions:
    """What can be chosen."""

    blank: float = 0.5
    """Chance that a token of x_1 has none in x_0: it is inserted. Else it has a uniform one."""
    extra: float = 0.5
    """Chance that a gap of x_1 has a uniform token in x_0: it is deleted."""
    alignments: str = "all"
    """The loss: all alignments of x_κ with x_1 summed, or the one that was drawn."""
    steps: int = 64
    """Leaps of `generate` and `infill`, a network call each."""
    exponent: float = 3.0
    """κ(t) = t^exponent at the leaps t = 0, 1/steps, …, 1."""
    repair_start: float = 0.9
    """The κ at which a corrupted sequence is taken for x_κ."""
    repair_steps: int = 8
    likelihood_draws: int = 4
    """Times κ that the bound is averaged over for each sequence."""

    def __post_init__(self) -> None:
        checks.choice("alignments", self.alignments, ALIGNMENTS)
        for name in ("steps", "repair_steps", "likelihood_draws"):
            checks.integer(name, getattr(self, name), least=1)
        checks.number("exponent", self.exponent, least=0.0, more=True)
        checks.number("repair_start", self.repair_start, least=0.0, below=1.0)


class EditFlow(nn.Module):
    """Rates u_θ(edit | x, κ) = expected pending edits / (1 − κ), which a network estimates.

    The expected insertions of a slot are (1 − κ) e^f Q(v); a position becomes v or goes with
    probability ∝ (1 − κ) e^f against staying. So u_θ is finite up to κ = 1, and so is the bound.
    """

    name = "edit-flow"
    likelihood_kind: Literal["exact", "bound", "none"] = "bound"
    length_counts: Tensor
    prob_length: Tensor

    def __init__(
        self,
        vocabulary_size: int,
        backbone: BackboneConfig,
        max_length: int,
        options: EditFlowOptions,
    ) -> None:
        super().__init__()
        checks.integer("vocabulary_size", vocabulary_size, least=1)
        checks.integer("max_length", max_length, least=1)
        self.options = options
        self.source = EditSource(vocabulary_size, options.blank, options.extra)
        self.max_length = max_length
        # x_κ has at most each token of x_1 and one in each gap.
        self.room = 2 * max_length + 1
        self.encoder = SlotEncoder(vocabulary_size, backbone, max_length=self.room, levels=True)
        width = backbone.width
        self.missing_rate = nn.Linear(width, 1)
        self.missing_token = nn.Linear(width, vocabulary_size)
        self.extra_token = nn.Linear(width, 1)
        for head in (self.missing_rate, self.missing_token, self.extra_token):
            nn.init.normal_(head.weight, std=width**-0.5)
            nn.init.zeros_(head.bias)
        self.register_buffer("length_counts", torch.zeros(max_length + 1, dtype=torch.float64))
        lengths = self.source.prob_length(max_length)
        self.register_buffer("prob_length", lengths, persistent=False)

    # ---------------------------------------------------------------- the network

    def log_expected(self, x: Batch, kappa: Float[Tensor, " batch"]) -> PendingEdits:
        """log of the expected pending edits; −inf for edits that this source never needs."""
        left = 1.0 - kappa.double()
        hidden = self.encoder(x, left.sqrt())
        prior = left.log().to(hidden.dtype)[:, None, None]
        tokens = functional.log_softmax(self.missing_token(hidden), dim=2)
        insert = tokens + self.missing_rate(hidden) + prior
        if not self.source.inserts:
            insert = torch.full_like(insert, -torch.inf)
        hidden = hidden[:, :-1]
        stays = self.encoder.token_logits(hidden, self.source.vocab_size)
        value, extra = stays + prior, self.extra_token(hidden) + prior
        if not self.source.substitutes:
            value = torch.full_like(value, -torch.inf)
        if not self.source.deletes:
            extra = torch.full_like(extra, -torch.inf)
        logits = torch.cat([torch.where(_own(x, stays.shape[2]), stays, value), extra], dim=2)
        return PendingEdits(insert, functional.log_softmax(logits, dim=2))

    @torch.no_grad()
    def expected(self, x: Batch, kappa: float) -> PendingEdits:
        """The expected pending edits at one κ for all rows."""
        found = self.log_expected(x, torch.full((len(x),), kappa, device=x.device))
        return PendingEdits(found.insert.exp(), found.token.exp())

    # ---------------------------------------------------------------- loss and bound

    def loss(self, x_0: Batch, *, generator: torch.Generator) -> Float[Tensor, " batch"]:
        """The bound's estimate at one κ (for `sampled` alignments: of a looser bound)."""
        if self.training:
            self._count_lengths(x_0)
        every = self.options.alignments == "all"
        return self._bound(x_0, every, generator=generator)

    @torch.no_grad()
    def negative_log_likelihood(
        self, x_0: Batch, *, generator: torch.Generator
    ) -> Float[Tensor, " batch"]:
        """−log p_θ(x_1) ≤ KL(|x_0|) + E_κ Σ_edits [m log(m / m_θ) − m + m_θ] / (1 − κ)."""
        draws = range(self.options.likelihood_draws)
        each = [self._bound(x_0, True, generator=generator) for _ in draws]
        return torch.stack(each).mean(dim=0)

    def _bound(
        self, x_1: Batch, every: bool, *, generator: torch.Generator
    ) -> Float[Tensor, " batch"]:
        v = _spread_uniform(len(x_1), generator).to(x_1.device)
        kappa = 1.0 - v.square()
        x, pending = self.source.path(x_1, generator=generator).at(kappa)
        if every:
            pending = self.source.expected_edits(x_1, x, kappa)
        divergence = edit_divergence(x, pending, self.log_expected(x, kappa))
        # dκ / (1 − κ) = (2 / v) dv
        return self.length_divergence(x_1.lengths) + (2.0 / v).to(divergence.dtype) * divergence

    def length_divergence(self, lengths: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """KL(q(|x_0| | |x_1|) ‖ p(|x_0|)): given its length, x_0 is uniform under both."""
        refuse_longer(lengths, self.max_length)
        law, known = self._source_lengths(), self.prob_length[lengths]
        return (torch.xlogy(known, known) - weighted(known, law.log())).sum(dim=1).float()

    def _data_lengths(self) -> Float[Tensor, " lengths"]:
        """The law of |x_1| as counted in training, with one more count spread over all."""
        counts = self.length_counts + 1.0 / len(self.length_counts)
        return counts / counts.sum()

    def _source_lengths(self) -> Float[Tensor, " lengths"]:
        return self._data_lengths() @ self.prob_length

    @torch.no_grad()
    def _count_lengths(self, x_1: Batch) -> None:
        refuse_longer(x_1.lengths, self.max_length)
        self.length_counts += torch.bincount(x_1.lengths, minlength=len(self.length_counts))

    # ---------------------------------------------------------------- sampling

    @torch.no_grad()
    def generate(self, count: int, *, generator: torch.Generator) -> Drawn:
        """Leap from x_0 ~ p(x_0) at κ = 0 to κ = 1."""
        law = self._source_lengths().expand(count, -1)
        x = self._noise(_draw(law, generator), generator)
        for kappa, share in self._leaps():
            expected = self.expected(x, kappa)
            x = leap(x, expected, share, generator=generator, limit=self.room)
        return Drawn(x.to_lists(), self.options.steps)

    @torch.no_grad()
    def infill(
        self,
        left: list[list[int]],
        right: list[list[int]],
        lengths: list[int] | None,
        *,
        generator: torch.Generator,
    ) -> Drawn:
        """The gap flows from noise to data beside paths of the given parts, drawn once.

        The network sees the given parts as noisy as all of x_κ is; they come out as they are.
        A known length is a matter of how much noise the gap starts with, and of the last edits.
        """
        device = self.length_counts.device
        parts = [Batch.from_lists(rows, device=device) for rows in (left, right)]
        paths = [
            _without_end_gap(self.source.path(part, generator=generator), part, last=number == 0)
            for number, part in enumerate(parts)
        ]
        given = parts[0].lengths + parts[1].lengths
        wanted = None if lengths is None else torch.tensor(lengths, device=device)
        sizes = self._gap_lengths(given, generator) if wanted is None else wanted
        refuse_longer(sizes, self.max_length)
        gap = self._noise(_draw(self.prob_length[sizes], generator), generator)
        # Where nothing can be deleted, what is over the wanted length could not be mended.
        capped = wanted is not None and not self.source.deletes
        most = sizes if capped else (self.room - given).clamp_min(0)
        for kappa, share in self._leaps():
            now = torch.full((len(given),), kappa, dtype=torch.float64, device=device)
            (before, _), (after, _) = (path.at(now) for path in paths)
            gap = self._gap_leap(before, gap, after, kappa, share, most, generator=generator)
        calls = self.options.steps
        if wanted is not None:
            gap, more = self._forced(parts[0], gap, parts[1], wanted)
            calls += more
        return Drawn(joined(parts[0], gap, parts[1]).to_lists(), calls)

    def _gap_leap(
        self,
        before: Batch,
        gap: Batch,
        after: Batch,
        kappa: float,
        share: float,
        most: Int[Tensor, " batch"],
        *,
        generator: torch.Generator,
    ) -> Batch:
        """One leap of the gap alone, in the middle of the noisy given parts."""
        x = joined(before, gap, after)
        limit = most + before.lengths + after.lengths
        ends = before.lengths, after.lengths
        free = between_mask(x, *ends), gap_slots(x, *ends)
        expected = self.expected(x, kappa)
        x = leap(x, expected, share, generator=generator, free=free, limit=limit)
        return between(x, *ends)

    def _forced(
        self, left: Batch, gap: Batch, right: Batch, wanted: Int[Tensor, " batch"]
    ) -> tuple[Batch, int]:
        """Insert or delete what is likeliest, one token at a time, until the gap has its length."""
        calls, (kappa, _) = 0, self._leaps()[-1]
        while bool((gap.lengths != wanted).any()):
            x = joined(left, gap, right)
            ends = left.lengths, right.lengths
            tokens_free, slots_free = between_mask(x, *ends), gap_slots(x, *ends)
            expected, calls = self.expected(x, kappa), calls + 1
            inserts = torch.full_like(slots_free, BLANK, dtype=torch.int64)
            slot = expected.insert.sum(dim=2).masked_fill(~slots_free, -1.0).argmax(dim=1)
            rows = torch.arange(len(x), device=x.device)
            # Without insertions the network has no opinion of them, and all tokens are alike.
            token = expected.insert[rows, slot].argmax(dim=1)
            short, long = gap.lengths < wanted, gap.lengths > wanted
            inserts[rows, slot] = torch.where(short, token, BLANK)
            tokens = x.tokens.clone()
            if bool(long.any()):
                worst = expected.token[..., -1].masked_fill(~tokens_free, -1.0).argmax(dim=1)
                tokens[rows[long], worst[long]] = BLANK
            gap = between(applied(x, tokens, inserts), *ends)
        return gap, calls

    @torch.no_grad()
    def repair(self, noisy: Batch, *, generator: torch.Generator) -> Drawn | None:
        """Take the sequence for x_κ at a late κ and make the most probable edits up to κ = 1.

        Without substitutions and deletions it cannot.
        """
        del generator
        if not (self.source.substitutes and self.source.deletes):
            return None
        x, steps = noisy.to(self.length_counts.device), self.options.repair_steps
        for step in range(steps):
            kappa = 1.0 - (1.0 - self.options.repair_start) * (1.0 - step / steps)
            limit = x.lengths.clamp_min(self.room)
            x = most_probable_edits(x, self.expected(x, kappa), limit=limit)
        return Drawn(x.to_lists(), steps)

    def _leaps(self) -> list[tuple[float, float]]:
        """κ at each leap, and the share of the pending edits that the leap to the next κ makes."""
        steps, exponent = self.options.steps, self.options.exponent
        kappas = [(step / steps) ** exponent for step in range(steps + 1)]
        return [(now, (then - now) / (1.0 - now)) for now, then in pairwise(kappas)]

    def _noise(self, lengths: Int[Tensor, " batch"], generator: torch.Generator) -> Batch:
        """Uniform tokens."""
        shape = (len(lengths), int(lengths.max()) if len(lengths) else 0)
        size = self.source.vocab_size
        tokens = torch.randint(size, shape, generator=generator, device=generator.device)
        return Batch(tokens.to(lengths.device), lengths)

    def _gap_lengths(
        self, given: Int[Tensor, " batch"], generator: torch.Generator
    ) -> Int[Tensor, " batch"]:
        """Lengths of gaps from the law of the whole length, given that it is at least as long."""
        sizes = torch.arange(self.max_length + 1, device=given.device)
        whole = sizes + given[:, None]
        law = self._data_lengths()[whole.clamp_max(self.max_length)]
        law = law.masked_fill(whole > self.max_length, 0.0)
        # What is too long already gets an empty gap.
        law[:, 0] += (given > self.max_length).to(law.dtype)
        return _draw(law, generator)


def edit_divergence(
    x: Batch, pending: PendingEdits, log_expected: PendingEdits
) -> Float[Tensor, " batch"]:
    """Σ_edits [m log(m / m_θ) − m + m_θ], the Bregman divergence of x log x; 0 iff m = m_θ."""
    insert = _generalized_kl(pending.insert, log_expected.insert)
    insert = insert.masked_fill(~slot_mask(x)[..., None], 0.0)
    token = _generalized_kl(pending.token, log_expected.token)
    # A token that stays as it is is no edit.
    no_edit = _own(x, token.shape[2]) | ~x.mask[..., None]
    return insert.sum(dim=(1, 2)) + token.masked_fill(no_edit, 0.0).sum(dim=(1, 2))


def build(
    vocabulary_size: int, backbone: BackboneConfig, max_length: int, options: dict[str, Any]
) -> EditFlow:
    """A new edit flow; options are the fields of `EditFlowOptions`."""
    defaults = asdict(EditFlowOptions())
    values = checks.fields("the options of edit-flow", options, [], defaults=defaults)
    return EditFlow(vocabulary_size, backbone, max_length, EditFlowOptions(**values))


def _generalized_kl(
    mean: Float[Tensor, "*shape"], log_mean: Float[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    return torch.xlogy(mean, mean) - weighted(mean, log_mean) - mean + log_mean.exp()


def _own(x: Batch, values: int) -> Tensor:
    """Where the value is the token that stands there."""
    return x.tokens[..., None] == torch.arange(values, device=x.device)


def _spread_uniform(rows: int, generator: torch.Generator) -> Float[Tensor, "{rows}"]:
    """One number in (0, 1] for each row, uniform, and evenly spread over the rows."""
    where = generator.device
    place = torch.randperm(rows, generator=generator, device=where).double()
    offset = 1.0 - torch.rand(rows, generator=generator, device=where).double()
    return ((place + offset) / max(rows, 1)).clamp_min(SMALLEST_V)


def _draw(law: Float[Tensor, "batch entries"], generator: torch.Generator) -> Int[Tensor, " batch"]:
    noise = torch.rand(len(law), generator=generator, device=generator.device)
    return index_at(law.cumsum(dim=1), noise.to(law))


def _without_end_gap(path: EditPath, part: Batch, *, last: bool) -> EditPath:
    """The path without noise in the gap that the part shares with what is filled in."""
    site = 2 * part.lengths if last else torch.zeros_like(part.lengths)
    before = path.before.scatter(1, site[:, None], BLANK)
    return EditPath(before, path.after, path.times, path.vocab_size)
