"""The yardstick: exact, normalised, causal, and sampled as it says."""

import itertools
import math
from collections import Counter

import pytest
import torch

from indel import Batch
from indel.comparison.autoregressive import Autoregressive, build
from indel.model.transformer import TransformerConfig
from support.frequencies import chi_square_p
from support.small_methods import small_method

SIZE, LONGEST = 2, 3
EVERY = [list(row) for n in range(LONGEST + 1) for row in itertools.product(range(SIZE), repeat=n)]


def toy(seed: int = 0) -> Autoregressive:
    method = small_method("autoregressive", SIZE, LONGEST, seed=seed)
    assert isinstance(method, Autoregressive)
    return method


def nats(method: Autoregressive, rows: list[list[int]]) -> torch.Tensor:
    return method.negative_log_likelihood(Batch.from_lists(rows), generator=torch.Generator())


def by_prefixes(method: Autoregressive, row: list[int]) -> float:
    """−log p(row), with one call of the network for each token, which sees the prefix alone."""
    total = 0.0
    for place, token in enumerate([*row, SIZE]):
        if place == LONGEST:
            break  # EOS is certain
        logp = method.log_probs(torch.tensor([row[:place]], dtype=torch.int64).reshape(1, place))
        total -= float(logp[0, -1, token].detach())
    return total


def test_the_likelihood_is_the_sum_over_tokens() -> None:
    method = toy()
    expected = [by_prefixes(method, row) for row in EVERY]
    assert nats(method, EVERY).tolist() == pytest.approx(expected, abs=1e-5)
    loss = method.loss(Batch.from_lists(EVERY), generator=torch.Generator())
    assert loss.tolist() == pytest.approx(expected, abs=1e-5)


def test_the_probabilities_of_all_sequences_sum_to_one() -> None:
    for seed in range(3):
        prob = nats(toy(seed), EVERY).neg().exp()
        assert float(prob.sum()) == pytest.approx(1.0, abs=1e-6)
        assert float(prob.min()) > 0.0
    assert float(nats(toy(), EVERY[1:]).neg().exp().sum()) < 0.999


def test_a_sequence_that_is_too_long_has_no_probability() -> None:
    long = [[0] * (LONGEST + 1)]
    assert nats(toy(), long).tolist() == [math.inf]
    with pytest.raises(ValueError, match="max_length = 3, got 4 tokens in row 0"):
        toy().loss(Batch.from_lists(long), generator=torch.Generator())


def frequencies(method: Autoregressive) -> Counter[tuple[tuple[int, ...], ...]]:
    drawn = method.generate(4000, generator=torch.Generator().manual_seed(1))
    assert drawn.calls == LONGEST
    return Counter((tuple(row),) for row in drawn.sequences)


def test_samples_have_the_probabilities() -> None:
    method = toy()
    prob = nats(method, EVERY).neg().exp().tolist()
    law = {(tuple(row),): each for row, each in zip(EVERY, prob, strict=True)}
    assert chi_square_p(frequencies(method), law) > 1e-3
    with torch.no_grad():
        method.embedding.weight[SIZE] *= 0.9  # EOS
    assert chi_square_p(frequencies(method), law) < 1e-6


def test_it_sees_neither_what_follows_a_gap_nor_errors() -> None:
    method, generator = toy(), torch.Generator()
    assert method.infill([[0]], [[1]], [1], generator=generator) is None
    assert method.infill([[0]], [[1]], None, generator=generator) is None
    assert method.repair(Batch.from_lists([[0]]), generator=generator) is None


def test_bad_options_and_backbones_are_refused() -> None:
    stack = TransformerConfig(width=8, num_layers=1, num_heads=1, head_width=8, feedforward_width=8)
    with pytest.raises(ValueError, match="needs a rotary backbone"):
        build(SIZE, stack, LONGEST, {})
    with pytest.raises(ValueError, match="unknown: rate"):
        build(SIZE, stack, LONGEST, {"rate": 0.5})
