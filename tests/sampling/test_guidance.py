"""Samples that follow a source more, or less, than the model would: an enumerated law."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

import indel
from indel import Batch, CharacterVocabulary, RowSeeds
from indel.cli import run
from indel.model import Denoiser, DenoiserOutput
from indel.process import Schedule
from indel.sampling.generation import SamplingOptions
from indel.sampling.particles import HeldSamples, sample_held
from indel.sampling.patterns import Pattern
from support.conditional_chains import conditional_law, with_marks
from support.denoisers import tiny_denoiser
from support.frequencies import Outcome, chi_square_p
from support.held_chains import SCHEDULE

LETTERS = CharacterVocabulary("a\t")
PAIR = Pattern.parse("aa\t{}", LETTERS)
EMPTY = Pattern.parse("\t{}", LETTERS)


def labelled(seed: int = 1, never: float = -torch.inf) -> Denoiser:
    """Two deletions in a slot have this logit; a folder holds finite weights only."""
    denoiser = tiny_denoiser(
        SCHEDULE,
        LETTERS,
        seed=seed,
        max_length=40,
        max_deletions=2,
        frozen="source",
        drops_source=True,
    )
    with torch.no_grad():
        denoiser.deletions_head.bias.copy_(torch.tensor([0.0, -0.5, never]))
    return with_marks(denoiser, seed)


@dataclass
class Guided:
    """The network of a guided model, one position after the other."""

    denoiser: Denoiser
    strength: float
    dropped: int

    @property
    def schedule(self) -> Schedule:
        return self.denoiser.schedule

    def __call__(
        self, x: Batch, t: int, frozen: Tensor, *, open_slots: Tensor, start: bool = False
    ) -> DenoiserOutput:
        del open_slots  # only counts need it
        given = self.denoiser(x, t, frozen, start=start)
        rest = Batch.from_lists([x.to_lists()[0][self.dropped :]])
        free = self.denoiser(rest, t, frozen[:, self.dropped :], start=start)
        both = []
        for with_source, without in zip(given, free, strict=True):
            mixed = with_source.clone()
            for place in range(without.shape[1]):
                one = with_source[0, self.dropped + place].log_softmax(dim=0)
                two = without[0, place].log_softmax(dim=0)
                ratio = torch.where(two > -torch.inf, one - two, 0.0)
                mixed[0, self.dropped + place] = two + self.strength * ratio
            both.append(mixed)
        return DenoiserOutput(*both)


def drawn(denoiser: Denoiser, strength: float, rows: int = 3000) -> HeldSamples:
    options = SamplingOptions(guidance=strength)
    seeds = RowSeeds(torch.arange(rows))
    return sample_held(denoiser, PAIR, rows, generator=seeds, options=options)


def counted(samples: HeldSamples) -> dict[Outcome, int]:
    found: dict[Outcome, int] = {}
    for (gap,) in samples.gaps:
        key = (tuple(LETTERS.encode(gap)),)
        found[key] = found.get(key, 0) + 1
    return found


def test_samples_have_the_guided_law() -> None:
    """Values and lengths: every way of the guided process is enumerated."""
    denoiser, strength = labelled(), 3.0
    law = conditional_law(Guided(denoiser, strength, 2), PAIR)  # type: ignore[arg-type]
    assert chi_square_p(counted(drawn(denoiser, strength)), law) > 0.01
    assert chi_square_p(counted(drawn(denoiser, 1.0)), law) < 1e-3


def test_no_guidance_at_all_is_the_model_without_the_source() -> None:
    denoiser = labelled()
    law = conditional_law(denoiser, EMPTY)
    assert chi_square_p(counted(drawn(denoiser, 0.0)), law) > 0.01


def test_one_is_the_model_itself() -> None:
    denoiser = labelled()
    samples = sample_held(denoiser, PAIR, 50, generator=RowSeeds(torch.arange(50)))
    assert drawn(denoiser, 1.0, 50).x == samples.x


def test_a_row_depends_on_its_own_seed_alone() -> None:
    denoiser = labelled()
    together = drawn(denoiser, 3.0, 20).x.to_lists()
    options = SamplingOptions(guidance=3.0)
    alone = sample_held(denoiser, PAIR, 1, generator=RowSeeds(torch.tensor([13])), options=options)
    assert alone.x.to_lists() == [together[13]]
    for row in together:
        assert row[:3] == list(PAIR.tokens)


def test_bad_guidance_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    denoiser = labelled(never=-9.0)
    denoiser.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="guidance must be a number ≥ 0, got -1"):
        indel.infill(denoiser, "a\t{}", guidance=-1.0)
    with pytest.raises(ValueError, match="must end with the tab"):
        indel.infill(denoiser, "a{}", guidance=2.0)
    plain = tiny_denoiser(SCHEDULE, LETTERS, frozen="source")
    with pytest.raises(ValueError, match="some of them dropped"):
        indel.infill(plain, "a\t{}", guidance=2.0)
    assert run(["infill", str(tmp_path), "a\t{}", "-n", "2", "--guidance", "2"]) == 0
    assert run(["sample", str(tmp_path), "--prefix", "a\t", "--guidance", "2", "-n", "2"]) == 0
    capsys.readouterr()
    assert run(["infill", "text8", "a{}", "--guidance", "2"]) == 2
    assert "guidance needs a model trained with sources" in capsys.readouterr().err
    assert run(["sample", str(tmp_path), "--guidance", "2"]) == 2
    assert "--guidance needs a --prefix" in capsys.readouterr().err
    assert run(["infill", str(tmp_path), "a\t{}", "--guidance", "-1"]) == 2
