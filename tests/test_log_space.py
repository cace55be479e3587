"""Sums in log space are right, and their gradients finite, where a probability is zero."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from indel.log_space import finite, logaddexp, logsumexp, safe_log, weighted

INF = math.inf
VALUES = [-INF, -800.0, -1.5, 0.0, 2.0, 300.0]
PAIRS = torch.cartesian_prod(torch.tensor(VALUES), torch.tensor(VALUES)).double()


def gradient(function: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    leaves = [each.clone().requires_grad_() for each in inputs]
    total = function(*leaves)
    # −inf itself must not spoil the sum that is derived.
    torch.where(total == -INF, 0.0, total).sum().backward()
    return [leaf.grad for leaf in leaves]


def test_logaddexp() -> None:
    a, b = PAIRS.unbind(dim=1)
    total = logaddexp(a, b)
    largest = torch.maximum(a, b)
    exact = [
        -INF if top == -INF else top + math.log(math.exp(x - top) + math.exp(y - top))
        for x, y, top in zip(a.tolist(), b.tolist(), largest.tolist(), strict=True)
    ]
    assert total.tolist() == pytest.approx(exact, abs=1e-12)
    grad_a, grad_b = gradient(logaddexp, a, b)
    share = torch.where(total == -INF, 0.0, (a - total).exp())
    torch.testing.assert_close(grad_a, share)
    torch.testing.assert_close(grad_b, torch.where(total == -INF, 0.0, 1.0 - share))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_logsumexp(dim: int, keepdim: bool) -> None:
    values = torch.tensor([[-INF, -INF, -INF], [0.0, -INF, 1.0], [-900.0, -901.0, -INF]]).double()
    total = logsumexp(values, dim=dim, keepdim=keepdim)
    torch.testing.assert_close(total, torch.logsumexp(values, dim=dim, keepdim=keepdim))
    (grad,) = gradient(lambda each: logsumexp(each, dim=dim, keepdim=keepdim), values)
    expected = torch.softmax(values, dim=dim).nan_to_num(0.0)
    torch.testing.assert_close(grad, expected)


def test_torch_alone_has_no_gradient_where_every_summand_is_zero() -> None:
    """Why these functions are there; once torch has one, they can go."""
    nothing = torch.full((3,), -INF)
    (grad,) = gradient(lambda each: logsumexp(each, dim=0), nothing)
    assert grad.tolist() == [0.0, 0.0, 0.0]
    values = nothing.clone().requires_grad_()
    torch.logaddexp(values, values).sum().backward()
    assert bool(values.grad.isnan().all())


def test_safe_log() -> None:
    values = torch.tensor([0.0, 1e-30, 0.5, 2.0])
    assert safe_log(values).tolist() == values.log().tolist()
    assert safe_log(values)[0] == -INF
    (grad,) = gradient(safe_log, values)
    torch.testing.assert_close(grad, torch.tensor([0.0, 1e30, 2.0, 0.5]))


def test_weighted() -> None:
    weight = torch.tensor([0.0, 0.5, 0.0, 0.25])
    logp = torch.tensor([-INF, -INF, -3.0, -2.0])
    # What never happens costs nothing; what happens and cannot be is not hidden.
    assert weighted(weight, logp).tolist() == [0.0, -INF, 0.0, -0.5]
    _, grad = gradient(weighted, weight[[0, 2, 3]], logp[[0, 2, 3]])
    assert grad.tolist() == [0.0, 0.0, 0.25]


def test_finite() -> None:
    assert finite(torch.tensor([-INF, 3.0, -1.0])).tolist() == [0.0, 3.0, -1.0]
