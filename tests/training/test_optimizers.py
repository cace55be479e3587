"""Optimizers, learning rates and averages of weights."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from indel.model import Denoiser
from indel.training import TrainingConfig
from indel.training.averages import WeightAverage
from indel.training.config import OptimizerSection
from indel.training.learning_rates import (
    constant,
    cyclical_cosine,
    flat,
    rate_factor,
    reciprocal_square_root,
)
from indel.training.optimizers import _ITERATIONS, _QUINTIC, Muon, make_optimizers, orthogonalized
from support.small_runs import very_small


def denoiser_of(config: TrainingConfig) -> Denoiser:
    return config.denoiser(config.open_data())


@pytest.mark.parametrize("shape", [(8, 8), (5, 12), (12, 5)])
def test_orthogonalised_singular_values_are_near_one(shape: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(20, *shape, generator=generator)
    found = orthogonalized(matrices, torch.float32)
    values = torch.linalg.svdvals(found)
    # Values below a hundredth of the norm are beyond the reach of four iterations.
    reached = torch.linalg.svdvals(matrices) > 0.02 * torch.linalg.matrix_norm(matrices)[:, None]
    assert values[reached].min() > 0.5
    assert values.max() < 1.3
    # The factors U and V stay: UᵀXV is diagonal.
    u, _, vh = torch.linalg.svd(matrices, full_matrices=False)
    rotated = u.mT @ found @ vh.mT
    off_diagonal = rotated - torch.diag_embed(rotated.diagonal(dim1=1, dim2=2))
    assert off_diagonal.abs().max() < 1e-4
    assert torch.linalg.svdvals(matrices).max() > 3  # they were not near one before


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_update_is_in_float32_whatever_the_products_are_in(dtype: torch.dtype) -> None:
    matrix = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
    half = matrix.bfloat16()
    found = orthogonalized(half, dtype)
    assert found.dtype == torch.float32
    assert torch.equal(found, orthogonalized(half.float(), dtype))
    assert torch.equal(orthogonalized(torch.zeros(3, 3), dtype), torch.zeros(3, 3))
    assert (found - orthogonalized(half, torch.float32)).abs().max() < 0.1


def test_stacked_matrices_are_orthogonalised_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    grad = torch.randn(12, 4, generator=generator)
    grad[:4] *= 100.0  # as one matrix, this part would hide the others
    together, apart = torch.zeros(12, 4), [torch.zeros(4, 4) for _ in range(3)]
    weights = [torch.nn.Parameter(weight) for weight in (together, *apart)]
    for weight, part in zip(weights, (grad, *grad.chunk(3)), strict=True):
        weight.grad = part.clone()
    Muon([{"params": weights[:1], "parts": 3}], lr=0.1).step()
    Muon([{"params": weights[1:]}], lr=0.1).step()
    torch.testing.assert_close(weights[0], torch.cat(weights[1:]))
    with pytest.raises(ValueError, match="3 equal parts"):
        Muon([{"params": [torch.nn.Parameter(torch.zeros(4, 4))], "parts": 3}], lr=0.1)


@pytest.mark.parametrize("activation", ["relu", "gated-gelu"])
def test_every_parameter_has_one_optimizer(activation: str) -> None:
    config = very_small(model__backbone="t5", model__activation=activation)
    denoiser = denoiser_of(config)
    denoiser.length.requires_grad_(False)
    muon, adam = make_optimizers(denoiser, config.optimizer)
    assert isinstance(muon, Muon)
    names = {id(weight): name for name, weight in denoiser.named_parameters()}
    by_muon = {
        names[id(weight)]: group["parts"]
        for group in muon.param_groups
        for weight in group["params"]
    }
    by_adam = [names[id(w)] for group in adam.param_groups for w in group["params"]]
    layer = "backbone.layers.0"
    assert by_muon == {
        f"{layer}.attention.qkv.weight": 3,
        f"{layer}.attention.out.weight": 1,
        f"{layer}.feedforward.inner.weight": 2 if activation == "gated-gelu" else 1,
        f"{layer}.feedforward.outer.weight": 1,
    }
    trained = {name for name, weight in denoiser.named_parameters() if weight.requires_grad}
    assert sorted([*by_muon, *by_adam]) == sorted(trained)
    assert not any(name.startswith("length") for name in trained)


@pytest.mark.parametrize("name", ["adam", "adamw", "muon"])
def test_optimizers_lower_the_loss_of_a_quadratic(name: str) -> None:
    config = very_small(optimizer__name=name)
    denoiser = denoiser_of(config)
    optimizers = make_optimizers(denoiser, config.optimizer)

    def distance() -> torch.Tensor:
        return torch.stack([(w - 0.1).square().sum() for w in denoiser.parameters()]).sum()

    before = distance().item()
    for _ in range(20):
        denoiser.zero_grad()
        distance().backward()
        for optimizer in optimizers:
            optimizer.step()
    assert distance().item() < before


def test_learning_rates_have_the_papers_shapes() -> None:
    steps = range(20_000)
    flat = [constant(n, warm_up=5000) for n in steps]
    assert flat[0] == 1 / 5000
    assert flat[2499] == 0.5
    assert set(flat[4999:]) == {1.0}
    root = [reciprocal_square_root(n, warm_up=5000) for n in steps]
    assert root[:5000] == flat[:5000]
    assert root[19_999] == pytest.approx(0.5)
    assert all(a > b for a, b in pairwise(root[4999:]))
    cosine = [cyclical_cosine(n, period=1000) for n in steps]
    assert cosine[0] == 1.0 == cosine[1000] == cosine[7000]
    assert cosine[500] == pytest.approx(0.5)
    assert cosine[250] == pytest.approx((1 + math.sqrt(0.5)) / 2)
    assert cosine[999] < 1e-5
    assert cyclical_cosine(0, period=1000, warm_up=10) == pytest.approx(0.1)


@pytest.mark.parametrize("schedule", ["constant", "reciprocal-square-root", "cosine", "flat"])
def test_every_schedule_is_reached_by_its_name(schedule: str) -> None:
    section = OptimizerSection(schedule=schedule, warm_up=10, period=100)  # type: ignore[arg-type]
    expected = {
        "constant": constant(50, warm_up=10),
        "reciprocal-square-root": reciprocal_square_root(50, warm_up=10),
        "cosine": cyclical_cosine(50, period=100, warm_up=10),
        "flat": flat(50, warm_up=10, steps=60, cool_down=0.4),
    }
    assert rate_factor(section, 50, steps=60) == expected[schedule]
    assert len(set(expected.values())) == 4


def test_average_follows_the_weights() -> None:
    layer = torch.nn.Linear(1, 1, bias=False)
    average = WeightAverage(layer, 0.9)
    expected = weight = layer.weight.item()
    for update in range(200):
        weight += 0.01
        with torch.no_grad():
            layer.weight.fill_(weight)
        average.update()
        decay = min(0.9, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * weight
    assert average.averages[0].item() == pytest.approx(expected, rel=1e-5)
    with average.in_place():
        assert layer.weight.item() == pytest.approx(expected, rel=1e-5)
    assert layer.weight.item() == pytest.approx(weight, rel=1e-6)


def test_flat_rates_do_not_know_the_end_before_they_fall() -> None:
    def factors(steps: int) -> list[float]:
        return [flat(n, warm_up=4, steps=steps, cool_down=0.25) for n in range(steps)]

    short, long = factors(40), factors(80)
    assert short[:30] == long[:30]
    assert short[30:] == pytest.approx([left / 10 for left in range(10, 0, -1)])
    assert short[31] < long[31] == 1.0


def test_embeddings_have_their_own_rate() -> None:
    config = very_small(optimizer__embedding_learning_rate=0.5)
    denoiser = denoiser_of(config)
    _, adam = make_optimizers(denoiser, config.optimizer)
    rates = {id(w): group["lr"] for group in adam.param_groups for w in group["params"]}
    assert rates[id(denoiser.embedding.weight)] == 0.5
    assert denoiser.time_embedding is not None
    assert rates[id(denoiser.time_embedding.weight)] == 0.5
    assert rates[id(denoiser.deletions_head.weight)] == config.optimizer.learning_rate


@pytest.mark.parametrize("shape", [(6, 16), (16, 6), (5, 40)])
def test_both_ways_to_orthogonalise_agree(shape: tuple[int, int]) -> None:
    """Oblong matrices take the Gram matrix; the definition is the product with the matrix."""
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    wide = (matrix.T if shape[0] > shape[1] else matrix).double()
    wide = wide / wide.norm()
    a, b, c = _QUINTIC
    for _ in range(_ITERATIONS):
        square = wide @ wide.T
        wide = a * wide + b * square @ wide + c * square @ square @ wide
    expected = wide.T if shape[0] > shape[1] else wide
    torch.testing.assert_close(
        orthogonalized(matrix, torch.float32).double(), expected, atol=1e-4, rtol=1e-3
    )
