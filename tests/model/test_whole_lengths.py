"""Gaps that share a whole length, against a sum over all their lengths."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from indel.model import Denoiser
from indel.model.saving import CHECKSUMS, WEIGHTS
from indel.model.whole_lengths import weighed_gaps
from support.held_chains import held_denoiser

COUNT = 7
WEIGHTS_OF_LENGTH = torch.tensor([0.0, 0.0, 0.3, 0.0, 1.0, 0.2, 0.0, 0.5], dtype=torch.float64)


def laws(slots: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(2, slots, COUNT, generator=generator).softmax(dim=-1)


def enumerated(law: np.ndarray, gaps: list[int], frozen: int) -> np.ndarray:
    found = law.copy()
    found[gaps] = 0.0
    for lengths in itertools.product(range(COUNT), repeat=len(gaps)):
        total = frozen + sum(lengths)
        if total >= len(WEIGHTS_OF_LENGTH):
            continue
        p = math.prod(law[place, n] for place, n in zip(gaps, lengths, strict=True))
        for place, n in zip(gaps, lengths, strict=True):
            found[place, n] += p * float(WEIGHTS_OF_LENGTH[total])
    found[gaps] /= found[gaps].sum(axis=1, keepdims=True)
    return found


@pytest.mark.parametrize("gaps", [[[2], [0, 3]], [[0, 1, 3], [1, 2]]])
def test_gaps_that_share_a_length_are_weighed_together(gaps: list[list[int]]) -> None:
    law, frozen = laws(4, seed=0), torch.tensor([2, 0])
    is_gap = torch.zeros(2, 4, dtype=torch.bool)
    for row, places in enumerate(gaps):
        is_gap[row, places] = True
    found = weighed_gaps(law, is_gap, frozen, WEIGHTS_OF_LENGTH)
    for row, places in enumerate(gaps):
        exact = enumerated(law[row].numpy(), places, int(frozen[row]))
        assert found[row].numpy() == pytest.approx(exact, abs=1e-6)
        other = enumerated(law[row].numpy(), places, int(frozen[row]) + 1)
        assert np.abs(found[row].numpy() - other).max() > 0.01


def test_more_frozen_tokens_than_any_length_leave_the_law_as_it_is() -> None:
    law = laws(2, seed=1)
    is_gap = torch.ones(2, 2, dtype=torch.bool)
    found = weighed_gaps(law, is_gap, torch.tensor([9, 8]), WEIGHTS_OF_LENGTH)
    assert torch.allclose(found, law)


def test_a_folder_without_lengths_is_loaded(tmp_path: Path) -> None:
    denoiser = held_denoiser(0, longest=3, contexts=8)
    denoiser.save_pretrained(tmp_path)
    weights = load_file(tmp_path / WEIGHTS)
    del weights["prior.lengths"]
    save_file(weights, tmp_path / WEIGHTS)
    (tmp_path / CHECKSUMS).unlink()
    loaded = Denoiser.from_pretrained(tmp_path)
    assert loaded.prior is not None
    assert not bool(loaded.prior.lengths.any())
